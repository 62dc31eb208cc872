"""The vectors of all pieces in one file, which processes of a machine share by mapping it into memory.

A record keeps its place; that of a piece that is gone is emptied and used again. Components are bytes, with
a scale for each vector: half of the size of two-byte floats, compared eight times as fast, in the same order.
It is a cache: whatever is wrong with it is mended by deleting it.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sessions_app.search.embeddings import Matrix

GROWS_BY = 1024  # records
BLOCK = 2048  # compared together, so that a copy of them stays in the processor's cache

Ids = NDArray[np.int64]


class Vectors:
    def __init__(self, path: Path, dims: int) -> None:
        self._path = path
        self._record = np.dtype(
            [
                ("chunk", "<i8"),  # 0: nobody's
                ("workspace", "<i8"),
                ("text", "<u4"),  # a checksum of the text whose vector it is
                ("scale", "<f4"),
                ("vector", "i1", (dims,)),
            ]
        )
        self._mapped: tuple[tuple[int, int], Any] | None = None

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether we are the only writer on this machine, for as long as this lasts."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def chunks(self) -> Ids:
        """Whose vectors there are, in order."""
        held: Ids = self._records()["chunk"]
        return np.sort(held[held > 0])

    def forget(self, gone: Ids) -> None:
        if len(gone):
            records = self._records(writable=True)
            records["chunk"][np.isin(records["chunk"], gone)] = 0

    def add(self, chunks: Ids, workspaces: Ids, texts: NDArray[np.uint32], vectors: Matrix) -> None:
        """The id is written last: a reader beside us takes no half vector for a whole one."""
        places = self._free(len(chunks))
        records = self._records(writable=True)
        largest = np.abs(vectors).max(axis=1)
        scale = np.divide(largest, 127, out=np.ones_like(largest), where=largest > 0)
        records["vector"][places] = np.rint(vectors / scale[:, None]).astype(np.int8)
        records["scale"][places] = scale
        records["workspace"][places] = workspaces
        records["text"][places] = texts
        records["chunk"][places] = chunks

    def nearest(
        self, vector: NDArray[np.float32], workspaces: Ids, *, near: float, most: int
    ) -> list[tuple[int, int]]:
        """Of these workspaces the nearest ones, nearest first: each chunk with the checksum of its text."""
        records = self._records()
        likeness = np.empty(len(records), np.float32)
        for start in range(0, len(records), BLOCK):
            block = records[start : start + BLOCK]
            likeness[start : start + BLOCK] = block["vector"].astype(np.float32) @ vector
        with np.errstate(over="ignore", invalid="ignore"):  # where it holds garbage, that is near to nothing
            likeness *= records["scale"]
        wanted = (likeness >= near) & (records["chunk"] > 0) & np.isin(records["workspace"], workspaces)
        places = np.flatnonzero(wanted)
        if len(places) > most:
            places = places[np.argpartition(-likeness[places], most)[:most]]
        places = places[np.argsort(-likeness[places])]
        return [(int(records["chunk"][place]), int(records["text"][place])) for place in places]

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def _free(self, count: int) -> Ids:
        while True:
            free = np.flatnonzero(self._records()["chunk"] == 0)
            if len(free) >= count:
                return free[:count]
            self._grow(count - len(free))

    def _grow(self, missing: int) -> None:
        """By bytes, not by a hole: where a hole finds no room on the disk, the process that fills it is
        ended, and where bytes do not, there is an OSError."""
        empty = bytes(GROWS_BY * self._record.itemsize)
        with self._path.open("ab") as file:
            for _ in range(missing // GROWS_BY + 1):
                file.write(empty)

    def _records(self, *, writable: bool = False) -> Any:
        """The file as it is now. What was mapped before is kept while it is still the whole of it."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return np.empty(0, self._record)
        count = found.st_size // self._record.itemsize
        if not count:
            return np.empty(0, self._record)
        if writable:
            return np.memmap(self._path, self._record, "r+", shape=(count,))
        state = (found.st_ino, count)
        if self._mapped is None or self._mapped[0] != state:
            self._mapped = state, np.memmap(self._path, self._record, "r", shape=(count,))
        return self._mapped[1]
