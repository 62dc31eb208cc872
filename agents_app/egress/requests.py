"""What a proxy is asked for: CONNECT to a host, or a plain request with its whole address."""

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from dataclasses import dataclass

LONGEST = 32 << 10  # characters of a request's head
LONGEST_LINE = 400
_HOST = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})"
_CONNECT = re.compile(rf"CONNECT {_HOST}:(?P<port>\d{{1,5}}) HTTP/1\.[01]")
_PLAIN = re.compile(
    rf"(?P<method>[A-Z]{{3,10}}) (?i:http)://{_HOST}(:(?P<port>\d{{1,5}}))?(?P<path>[/?][!-~]*)? HTTP/1\.[01]"
)
# A single line feed in a value would be one more header to hosts that end their lines with it.
_HEADER = re.compile(r"[!#-'*+.^_`|~\w-]+:[\t -~]*")
# Not for the host; and it is told to close, so that one connection is one request.
_LEFT_OUT = frozenset({"host", "connection", "keep-alive", "upgrade", "te"})


class Refused(Exception):
    def __init__(self, status: int, rule: str, message: str) -> None:
        super().__init__(message)
        self.status, self.rule, self.message = status, rule, message

    def response(self) -> bytes:
        body = f"{self.message}\n".encode()
        # Of a tunnel that is refused most programs show the first line at best.
        line = " ".join(self.message.encode("ascii", "replace").decode().split())[:LONGEST_LINE]
        return (
            f"HTTP/1.1 {self.status} Refused by Parachute: {line}\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nX-Parachute-Rule: {self.rule}\r\nConnection: close\r\n\r\n"
        ).encode() + body


@dataclass(frozen=True)
class Destination:
    host: str  # in lower case, an IPv6 address without its brackets
    port: int
    head: bytes = b""  # what the host is told; of a tunnel nothing

    @property
    def is_tunnel(self) -> bool:
        return not self.head


async def read(reader: StreamReader) -> Destination:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
    except LimitOverrunError:
        raise Refused(431, "request", "The request's head is too long.") from None
    except IncompleteReadError:
        raise ConnectionAbortedError from None
    except UnicodeDecodeError:
        raise _not_understood() from None
    line, *headers = head.removesuffix("\r\n\r\n").split("\r\n")
    if match := _CONNECT.fullmatch(line):
        return Destination(_host(match), int(match["port"]))
    match = _PLAIN.fullmatch(line)
    if match is None or any(_HEADER.fullmatch(header) is None for header in headers):
        raise _not_understood()
    port = int(match["port"] or 80)
    return Destination(_host(match), port, _rewritten(match, port, headers))


def _not_understood() -> Refused:
    return Refused(400, "request", "This is no request to a proxy: CONNECT, or a whole http:// address.")


def _host(match: re.Match[str]) -> str:
    return match["host"].strip("[]").lower()


def _rewritten(match: re.Match[str], port: int, headers: list[str]) -> bytes:
    path = match["path"] or "/"
    kept = [header for header in headers if not _is_left_out(header.partition(":")[0].lower())]
    host = match["host"] if port == 80 else f"{match['host']}:{port}"
    lines = [
        f"{match['method']} {path if path.startswith('/') else f'/{path}'} HTTP/1.1",
        f"Host: {host}",
        "Connection: close",
        *kept,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _is_left_out(name: str) -> bool:
    return name in _LEFT_OUT or name.startswith("proxy-")
