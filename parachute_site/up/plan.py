"""Which processes `up` runs, as data."""

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from parachute_site import env
from parachute_site.env import Environment
from parachute_site.up import valkey

ROOT = Path(__file__).resolve().parents[2]
GIB = 1024**3
LARGEST = str(32 * 1024**2)  # over a WebSocket, whoever says it: what we tell may be more than a megabyte
TURNS_PER_GIB, FEWEST_TURNS, MOST_TURNS = 3, 4, 32  # a CLI at work holds about 250 MB


@dataclass(frozen=True)
class Child:
    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    leaves_last: bool = False  # the others need it until they are gone


@dataclass(frozen=True)
class Plan:
    valkey: Child | None
    prepare: Child  # runs once, before the others; its output is not logged
    others: tuple[Child, ...]


def make(environment: Environment) -> Plan:
    demo = environment.model.socket
    return Plan(
        valkey=None if environment.redis_url else _valkey(environment),
        prepare=_child(environment, "prepare", str(ROOT / "manage.py"), "prepare"),
        others=(
            *([_model(environment, demo)] if demo else []),
            _web(environment),
            _worker(environment, "turns", at_once=turns_at_once()),
            _worker(environment, "background", at_once=4, PARACHUTE_BEAT="1"),
            _bots(environment),
        ),
    )


def turns_at_once() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(FEWEST_TURNS, min(MOST_TURNS, memory * TURNS_PER_GIB // GIB))


def _child(environment: Environment, name: str, *arguments: str, **more: str) -> Child:
    # Wherever `up` was called from, `-m` must find our packages.
    variables = env.for_children(environment, PYTHONPATH=str(ROOT), **more)
    return Child(name, (sys.executable, *arguments), variables)


def _valkey(environment: Environment) -> Child:
    argv = (str(valkey.binary()), str(valkey.config_file(environment)))
    return Child("valkey", argv, env.for_children(environment), leaves_last=True)


def _web(environment: Environment) -> Child:
    where = ("-b", environment.host, "-p", str(environment.port))
    # -v 0: no access log, as the path of a sign-in link would stand in it.
    how = ("-v", "0", "--no-server-name", "--application-close-timeout", "5")
    size = ("--websocket-max-message-size", LARGEST, "--websocket-max-frame-size", LARGEST)
    return _child(
        environment,
        "web",
        "-m",
        "parachute_site.entrance",
        *where,
        *how,
        *size,
        "parachute_site.asgi:application",
    )


def _worker(environment: Environment, queue: str, *, at_once: int, **more: str) -> Child:
    # The name stays over restarts, so that a worker knows what its predecessor held; two homes on one
    # machine may share a database, so the home is part of it.
    name = f"{queue}-1@{socket.gethostname()}-{environment.owner[:6]}"
    queues = f"{queue},{queue}.{name}"  # the second only it hears: sessions whose agent it keeps warm
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    how = ("-P", "threads", "-c", str(at_once), "-Q", queues, "-n", name, *quiet)
    celery = ("-m", "celery", "--quiet", "-A", "parachute_site", "worker", *how)
    return _child(environment, queue, *celery, PARACHUTE_WORKER=name, **more)


def _bots(environment: Environment) -> Child:
    # Its name stays, as that of a worker does: what its predecessor spoke for it may speak for at once.
    name = f"bots-1@{socket.gethostname()}-{environment.owner[:6]}"
    return _child(environment, "bots", str(ROOT / "manage.py"), "run_bots", PARACHUTE_WORKER=name)


def _model(environment: Environment, at: Path) -> Child:
    child = _child(environment, "model", "-m", "agents_app.model.demo", "--socket", str(at))
    return replace(child, leaves_last=True)
