"""Gives a launch behind a wall its way to the web. The one place where a launch learns of the egress door."""

import sys
from dataclasses import replace
from pathlib import Path

from agents_app.egress import Egress, EgressPass
from agents_app.sandboxes.base import Launch

from . import inside

PROXY = f"http://127.0.0.1:{inside.PORT}"
PROXIED = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
NOT_PROXIED = ("NO_PROXY", "no_proxy")


def outward(launch: Launch, egress: Egress, known: EgressPass, not_through: str) -> Launch:
    """The same launch, started by `inside.py`; to be confined after this. `not_through` is a host that the
    agent reaches by itself: the model's door."""
    python = Path(sys.executable).resolve()
    program = Path(inside.__file__).resolve()
    own = {
        **dict.fromkeys(PROXIED, PROXY),
        **dict.fromkeys(NOT_PROXIED, f"localhost,127.0.0.1,{not_through}"),
        inside.TOKEN: known.token,
    }
    return replace(
        launch,
        argv=(str(python), "-IS", str(program), str(egress.socket), *launch.argv),
        environment={**launch.environment, **own},
        readable=(*launch.readable, *_python(), program, egress.socket),
    )


def _python() -> tuple[Path, ...]:
    """Where this very Python lies; what is below /usr is shown behind every wall."""
    prefix = Path(sys.base_prefix).resolve()
    return () if prefix.is_relative_to("/usr") else (prefix,)
