"""Which wall a trust level gets on this machine, or why it gets none."""

import threading
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from agents_app.errors import AgentError
from agents_app.sandboxes import ENGINES, engine, named
from agents_app.sandboxes.base import Sandbox
from sessions_app.access.models import TrustLevel, Workspace

NO_ENGINE = (
    "The trust level `sandboxed` needs a container engine, and neither docker nor podman is installed: "
    "apt install docker.io, then build the image with deploy/sandbox/build. Or choose `vault`."
)

_found: dict[str, bool] = {}  # whether a level had a wall here when somebody last looked
_looking = threading.Lock()


@dataclass(frozen=True)
class Wall:
    sandbox: Sandbox
    warning: str = ""  # said to the person where the session is less walled than its level promises


@dataclass(frozen=True)
class WhatIsHere:
    """A wall of this machine, as the settings page shows it."""

    level: str
    wall: str
    works: bool
    why_not: str
    what_to_install: str


def never_available(trust: str) -> str | None:
    """What can be said without running one, and where all workers are on this machine."""
    wanted = [name for name in _boxes() if name in ENGINES]
    if trust != TrustLevel.SANDBOXED or not _is_one_machine() or not wanted:
        return None
    return NO_ENGINE if not any(engine(name).path() for name in wanted) else None


def wall_for(trust: str, workspace: Workspace) -> Wall:
    """Fails closed: without bubblewrap only a workspace of operators alone may do without, and a box that is
    not there is never replaced by anything less. It may block: what runs here is found out by running it."""
    if trust == TrustLevel.FULL:
        return Wall(named("none"))
    if trust == TrustLevel.SANDBOXED:
        return Wall(_box())
    bubblewrap = named("bubblewrap")
    why_not = bubblewrap.unavailable()
    if why_not is None:
        return Wall(bubblewrap)
    if _is_shared(workspace):
        raise AgentError(
            "sandbox_unavailable",
            _("%(why_not)s Not everybody in this workspace is an operator.") % {"why_not": why_not},
        )
    return Wall(named("none"), f"{why_not} Until then a person decides about each command and change.")


def what_is_here() -> list[WhatIsHere]:
    """Each wall that a level could have here. It runs one of each, and blocks for as long as that takes."""
    walls = [(TrustLevel.VAULT, "bubblewrap"), *((TrustLevel.SANDBOXED, name) for name in _boxes())]
    return [WhatIsHere(TrustLevel.FULL, "none", works=True, why_not="", what_to_install="")] + [
        WhatIsHere(level, name, why_not is None, why_not or "", sandbox.install if why_not else "")
        for level, name in walls
        for sandbox in (named(name),)
        for why_not in (sandbox.unavailable(),)
    ]


def seems_to_work(trust: str, workspace: Workspace) -> bool:
    """For a page that must not wait for an engine that hangs: what was found last, while another thread looks
    again. A level is believed to work until it was looked at, and where workers may be elsewhere."""
    if trust == TrustLevel.FULL or not _is_one_machine():
        return True
    if never_available(trust):
        return False
    if _looking.acquire(blocking=False):
        threading.Thread(target=_look_and_release, daemon=True).start()
    return _found.get(trust, True) or (trust == TrustLevel.VAULT and not _is_shared(workspace))


def stands(trust: str) -> bool:
    """As far as is known without running one. Elsewhere, and before anybody looked, it is believed."""
    return trust != TrustLevel.FULL and (not _is_one_machine() or _found.get(trust, True))


def look() -> None:
    """For `seems_to_work`. It blocks as `what_is_here` does."""
    here = what_is_here()
    _found.update({level: any(each.works for each in here if each.level == level) for level in TrustLevel})


def _look_and_release() -> None:
    try:
        look()
    finally:
        _looking.release()


def sweep() -> None:
    """At a worker's start: what its earlier life left behind. It may block."""
    for name in ("bubblewrap", *ENGINES):
        named(name).sweep()


def _is_one_machine() -> bool:
    return bool(settings.PARACHUTE_REDIS.startswith("unix://"))


def _boxes() -> tuple[str, ...]:
    """What may be a read-only box here. Bubblewrap only where the operator says so by name."""
    chosen: str = settings.PARACHUTE_SANDBOX
    return ENGINES if chosen == "auto" else (chosen,)


def _box() -> Sandbox:
    problems = list[str]()
    for name in _boxes():
        if (why_not := named(name).unavailable()) is None:
            return named(name)
        problems.append(why_not)
    raise AgentError("sandbox_unavailable", " ".join(problems))


def _is_shared(workspace: Workspace) -> bool:
    """Whether somebody is in it who may not have a command run on the host."""
    return bool(Workspace.objects.open_to_non_operators().filter(pk=workspace.pk).exists())
