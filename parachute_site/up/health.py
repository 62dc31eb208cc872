"""Asks the server whether it is ready."""

import asyncio

from parachute_site.env import ANY, Environment

PATIENCE = 5.0


async def ask(environment: Environment) -> tuple[int, str]:
    """The status and the body of /api/health/ready; 0 and a reason where nothing answers.

    By hand, as HTTP/1.0 is four lines and http.client another 2 MB.
    """
    host = ANY.get(environment.host, environment.host)
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await _get(host, environment.port)
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode(errors="replace").strip()
    except TimeoutError:
        return 0, f"no answer within {PATIENCE:.0f} s"
    except OSError as error:
        return 0, error.strerror or "no connection"
    except (IndexError, ValueError):
        return 0, "an answer that is no HTTP"


async def _get(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET /api/health/ready HTTP/1.0\r\nHost: {name(host)}:{port}\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


def name(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host
