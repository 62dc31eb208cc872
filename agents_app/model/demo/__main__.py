"""`python -m agents_app.model.demo --socket PATH`: the demo model on a unix socket, until SIGTERM."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from aiohttp import web

from agents_app.model.demo import server, talk


async def serve(path: Path) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = server.runner(talk.answer)
    await runner.setup()
    await web.UnixSite(runner, path).start()  # takes the place of a socket that a killed process left
    print(f"The demo model listens on {path}", flush=True)
    await ended.wait()
    await runner.cleanup()


def main() -> int:
    parser = argparse.ArgumentParser(prog="agents_app.model.demo", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="where to listen")
    path = parser.parse_args().socket
    os.umask(0o177)  # the socket is for this user only, from its first moment on
    try:
        asyncio.run(serve(path))
    except OSError as error:
        print(f"The demo model cannot listen on {path}: {error}", file=sys.stderr)
        return 2
    path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
