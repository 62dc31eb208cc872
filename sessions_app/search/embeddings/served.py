"""A server of one's own that speaks the usual `POST …/embeddings` (Ollama, llama.cpp, TEI, vLLM).

It is sent what is in the vaults and chats, so it stands only where the operator names it.
"""

import json
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from http.client import HTTPException

import numpy as np
from django.conf import settings

from sessions_app.search.embeddings import Matrix, NoEmbedder, of_length_one

PATIENCE = 20.0  # seconds
AT_ONCE = 64
LARGEST = 32 << 20  # bytes of an answer


class Served:
    near = 0.5  # models of this kind find all texts somewhat alike

    def __init__(self, url: str) -> None:
        self._url = url
        self.dims = self._ask(["dimensions"]).shape[1]
        self.name = f"served-{zlib.crc32(url.encode()):08x}"

    def vectors(self, texts: Sequence[str]) -> Matrix:
        parts = [self._ask(texts[start : start + AT_ONCE]) for start in range(0, len(texts), AT_ONCE)]
        if any(part.shape[1] != self.dims for part in parts):
            raise NoEmbedder(f"{self._url} has another model now: its vectors are of another length.")
        return of_length_one(np.concatenate(parts)) if parts else np.zeros((0, self.dims), np.float32)

    def _ask(self, texts: Sequence[str]) -> Matrix:
        body = json.dumps({"input": list(texts), "model": "default"}).encode()
        asked = urllib.request.Request(  # noqa: S310 - the address is the operator's own
            self._url, body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:  # noqa: S310
                rows = json.loads(answer.read(LARGEST))["data"]
            found: Matrix = np.array([row["embedding"] for row in rows], np.float32)
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            raise NoEmbedder(f"{self._url} gave no vectors ({error}).") from error
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise NoEmbedder(f"{self._url} gave {found.shape} for {len(texts)} texts.")
        return found


def make() -> Served:
    return Served(settings.PARACHUTE_EMBEDDINGS_URL)
