"""A file on its way to a browser: always to be saved, never to be run.

What somebody attached may hold a script, and it is served from where people are signed in. So it is a
download, no browser guesses what it is, and were it opened after all, it would be in a sandbox.
"""

import os
from collections.abc import AsyncIterator
from typing import BinaryIO
from urllib.parse import quote

from django.http import StreamingHttpResponse

from sessions_app.models import ContentType
from sessions_app.threads import in_thread

PIECE = 256 << 10  # bytes
SHOWN_AS_IT_IS = (ContentType.PNG, ContentType.JPEG, ContentType.GIF, ContentType.WEBP, ContentType.PDF)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=3600",
}
DESCRIBED = {
    "description": "The file, to be saved. An image or a PDF has its own type, all else is octets.",
    "headers": {"Content-Disposition": {"schema": {"type": "string"}, "example": "attachment; filename*=…"}},
    "content": {
        kind: {"schema": {"type": "string", "format": "binary"}}
        for kind in map(str, (*SHOWN_AS_IT_IS, ContentType.OTHER))
    },
}


class Download:
    """An open file, read piece by piece: never all of it is in memory."""

    def __init__(self, file: BinaryIO, name: str, kind: str) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._name = name
        self._kind = kind if kind in SHOWN_AS_IT_IS else ContentType.OTHER

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._size  # it may grow meanwhile, and its length has been said
        while left and (piece := await in_thread(self._read)(min(PIECE, left))):
            left -= len(piece)
            yield piece

    def _read(self, most: int) -> bytes:
        return self._file.read(most)

    def close(self) -> None:
        """Called by the response when it ends, also where nobody has read it."""
        self._file.close()

    def response(self) -> StreamingHttpResponse:
        response = StreamingHttpResponse(self, content_type=str(self._kind), headers=HEADERS)
        response["Content-Length"] = str(self._size)
        response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(self._name, safe='')}"
        return response
