"""Gives a launch behind a wall its way to the web. The one place where a launch learns of the egress door."""

import sys
from dataclasses import replace
from pathlib import Path

from agents_app.egress.door import EgressPass
from agents_app.sandboxes.base import Launch
from agents_app.sandboxes.limits import Limits

from . import inside

# Beside the start of the agent, because Python takes 10 ms. Where it fails it ends the agent, which could
# otherwise hand over a socket of its own. It is soon nobody's child, and so leaves the agent no zombie.
# It may have more files than the agent. The kernel counts what all of a user's handed over and nobody has
# taken yet, and who may not have so many open can hand over none: one agent could keep others from starting.
BESIDE = (
    f'({{ "$1" -IS "$2" "$3" || kill -9 "$$"; }} </dev/null >&2 &); unset {inside.TOKEN}; '
    'ulimit -n "$4" 2>/dev/null; shift 4; exec "$@"'
)

# Not the environment's, which may be a copy of it that lies where no wall shows it.
BASE: str = getattr(sys, "_base_executable", sys.executable)

PROXY = f"http://127.0.0.1:{inside.PORT}"
PROXIED = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
NOT_PROXIED = ("NO_PROXY", "no_proxy")


def outward(launch: Launch, known: EgressPass, not_through: str) -> Launch:
    """The same launch, with `inside.py` beside it; to be confined after this. The agent may be asked nothing
    before the pass `is_open`. `not_through` is a host that it reaches by itself: the model's door."""
    python, door = Path(BASE).resolve(), known.handover.path
    program = Path(inside.__file__).resolve()
    own = {
        **dict.fromkeys(PROXIED, PROXY),
        **dict.fromkeys(NOT_PROXIED, f"localhost,127.0.0.1,{not_through}"),
        inside.TOKEN: known.token,
    }
    limits = launch.limits or Limits()
    given = (str(python), str(program), str(door), str(limits.files))
    return replace(
        launch,
        argv=("/bin/sh", "-c", BESIDE, "sh", *given, *launch.argv),
        limits=replace(limits, files=2 * limits.files),
        environment={**launch.environment, **own},
        readable=(*launch.readable, *python_of_ours(), program, door),
    )


def python_of_ours() -> tuple[Path, ...]:
    """Where this very Python lies; what is below /usr is shown behind every wall."""
    prefix = Path(sys.base_prefix).resolve()
    return () if prefix.is_relative_to("/usr") else (prefix,)
