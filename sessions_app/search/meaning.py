"""By meaning: each piece has a vector, and what is near to that of a question may be an answer to it.

It is imported where it is used, and only with an embedder: numpy is 14 MB in each process that has it.
"""

import logging
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from django.conf import settings

from sessions_app.search import embeddings
from sessions_app.search.embeddings import Embedder, Matrix, NoEmbedder
from sessions_app.search.models import Chunk
from sessions_app.search.vectors import Ids, Vectors

log = logging.getLogger(__name__)

AT_ONCE = 500  # pieces
# A server of vectors that is away or slow is not waited for by every search: threads that wait for it
# answer nobody else. So few ask at a time, others wait so many seconds and look for words, and who got no
# answer lets all others go without for so long.
ASK_AT_ONCE = 2
IN_LINE = 1.0
QUIET = 30.0

_readers: dict[tuple[str, Path], tuple[Embedder, Vectors]] = {}  # what searches keeps what it loaded
_reading = threading.Lock()
_asking = threading.Semaphore(ASK_AT_ONCE)


class _Quiet:
    def __init__(self) -> None:
        self._until = 0.0

    def begin(self) -> None:
        self._until = time.monotonic() + QUIET

    def lasts(self) -> bool:
        return time.monotonic() < self._until


_quiet = _Quiet()


def catch_up() -> int:
    """Each piece that has none gets its vector, and one that is gone loses it. How many were made.

    What it loads it lets go again: most of the time there is nothing to do.
    """
    try:
        embedder = embeddings.make()
        vectors = _vectors(embedder)
        with vectors.alone() as is_alone:
            return _catch_up(embedder, vectors) if is_alone else 0
    except (NoEmbedder, OSError) as error:
        log.warning("What is new is found by its words alone: %s", error)
        return 0


class Nearest:
    """Pieces that may be about the same as a text."""

    def __init__(self, text: str, workspaces: Collection[int]) -> None:
        self._checksums: dict[int, int] = {}
        self._among = np.fromiter(workspaces, np.int64)
        self._vector: Matrix | None = None
        if workspaces and not _quiet.lasts() and _asking.acquire(timeout=IN_LINE):
            try:
                self._embedder, self._vectors = _reader()
                self._vector = self._embedder.vectors([text])[0]
            except NoEmbedder as error:
                _quiet.begin()
                log.warning("Looked for by words alone: %s", error)
            finally:
                _asking.release()

    def first(self, most: int) -> list[int]:
        """Nearest first. None where the file cannot be read: it is only a cache."""
        if self._vector is None:
            return []
        near = self._embedder.near
        try:
            nearest = self._vectors.nearest(self._vector, self._among, near=near, most=most)
        except (OSError, ValueError) as error:
            log.warning("Looked for by words alone, as the file of vectors cannot be read: %s", error)
            return []
        self._checksums = dict(nearest)
        return list(self._checksums)

    def are_of(self, chunks: Iterable[Chunk]) -> bool:
        """Whether the vectors were those of what these chunks say."""
        return all(self._checksums[chunk.pk] == _checksum(chunk.text) for chunk in chunks)


def make_anew() -> None:
    """The vectors are of another database than this one, such as one before it was restored: the next pass
    makes them again."""
    log.warning("The vectors were not those of this index, and are made again.")
    _vectors(_reader()[0]).remove()


def _catch_up(embedder: Embedder, vectors: Vectors) -> int:
    there = np.fromiter(Chunk.objects.order_by().values_list("pk", flat=True).iterator(), np.int64)
    held = vectors.chunks()
    vectors.forget(np.setdiff1d(held, there))
    missing = np.setdiff1d(there, held)
    for ids, workspaces, texts in _pieces(missing):
        checksums = np.array([_checksum(text) for text in texts], np.uint32)
        vectors.add(ids, workspaces, checksums, embedder.vectors(texts))
    return len(missing)


def _pieces(ids: Ids) -> Iterator[tuple[Ids, Ids, Sequence[str]]]:
    for start in range(0, len(ids), AT_ONCE):
        asked = Chunk.objects.filter(pk__in=ids[start : start + AT_ONCE].tolist())
        rows = list(asked.values_list("pk", "manifest__workspace_id", "text"))
        if rows:
            chunks, workspaces, texts = zip(*rows, strict=True)
            yield np.array(chunks, np.int64), np.array(workspaces, np.int64), texts


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _vectors(embedder: Embedder) -> Vectors:
    name = f"{embedder.name}-{embedder.dims}.vectors"
    return Vectors(settings.PARACHUTE_HOME / "search" / name, embedder.dims)


def _reader() -> tuple[Embedder, Vectors]:
    which = (settings.PARACHUTE_EMBEDDER, settings.PARACHUTE_HOME)
    with _reading:
        if which not in _readers:
            embedder = embeddings.make()
            _readers[which] = embedder, _vectors(embedder)
        return _readers[which]
