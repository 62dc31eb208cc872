"""Word vectors that come with their package: nothing is downloaded, and no text leaves this machine."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from sessions_app.search.embeddings import Matrix, of_length_one


class Words:
    name = "wordllama"
    dims = 256
    # Of 100,000 pieces that have nothing to do with a question, one or two come nearer.
    near = 0.28

    def vectors(self, texts: Sequence[str]) -> Matrix:
        found: Matrix = self._model.embed(list(texts))
        return of_length_one(found)

    @cached_property
    def _model(self) -> Any:
        """90 MB, imports included: only where something is compared, and from then on."""
        import wordllama

        # Without a folder it looks for its weights in the network.
        folder = Path(wordllama.__file__).parent
        return wordllama.WordLlama.load(dim=self.dims, cache_dir=folder, disable_download=True)


def make() -> Words:
    return Words()
