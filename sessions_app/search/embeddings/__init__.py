"""The seam to what turns a text into a vector, so that near vectors are near meanings.

A backend is a module with `make()`; the setting `PARACHUTE_EMBEDDER` names it, and where it is empty things
are found by their words alone.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


class NoEmbedder(Exception):
    """It cannot be asked now; its text is for a log."""


class Embedder(Protocol):
    name: str  # vectors of two names are never compared
    dims: int
    near: float  # from this on two texts are about one thing; less is chance

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """A row a text, of length one; zeros for a text in which nothing is known. Raises `NoEmbedder`."""
        ...


def make() -> Embedder:
    """Costs little: a backend loads what it needs when it is first asked for vectors."""
    backend: Any = import_module(settings.PARACHUTE_EMBEDDER)
    made: Embedder = backend.make()
    return made


def of_length_one(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    ones: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return ones
