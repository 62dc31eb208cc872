"""As much of the protocol as it takes to ask a server for its tools."""

import json
from typing import Any, Protocol

from django.utils.translation import gettext as _

LONGEST = 8 << 20  # bytes of one message
VERSION = "2025-06-18"
MOST_OTHERS = 1_000  # messages that are no answer to what was asked


class Refused(Exception):
    """It does not work; the text is for a person."""


class Speaks(Protocol):
    async def send(self, message: bytes) -> None: ...

    async def next(self) -> bytes:
        """The next message. Raises EOFError, OSError or ValueError where none comes any more."""


async def tools_of(server: Speaks) -> list[Any]:
    about = {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "parachute", "version": "1"},
    }
    await _answer(server, 1, "initialize", about)
    await server.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())
    found = await _answer(server, 2, "tools/list", {})
    tools = found.get("tools")
    return tools if isinstance(tools, list) else []


async def _answer(server: Speaks, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    await server.send(json.dumps(asked).encode())
    for _each in range(MOST_OTHERS):
        message = _read(await server.next())
        if message.get("id") != number or "method" in message:
            continue
        if isinstance(result := message.get("result"), dict):
            return result
        error = message.get("error")
        said = error.get("message") if isinstance(error, dict) else ""
        raise Refused(_("It refused “%(method)s”: %(said)s") % {"method": method, "said": str(said)[:300]})
    raise ValueError("too many messages")


def _read(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("no message") from error
    return found if isinstance(found, dict) else {}
