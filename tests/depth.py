"""What proves depth and takes long is marked `depth`: it is in `make test-all`, and not in `make test`."""

from collections.abc import Iterable
from typing import Any

import pytest


def few_of(every: Iterable[Any], *few: Any) -> list[Any]:
    """All of a long table as parameters; those that stand for the others are never left out."""
    table = [*every]
    assert not [each for each in few if each not in table]
    return [each if each in few else pytest.param(each, marks=pytest.mark.depth) for each in table]
