"""What agents may reach, in the words of the pages: what a level is called, and whether it works here."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents_app.rights import acting
from agents_app.sandboxes import walls
from agents_app.sandboxes.walls import WhatIsHere
from sessions_app.access.caller import Caller
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.models import Session

NAMES: dict[TrustLevel, Promise] = {
    TrustLevel.FULL: _("Whole computer"),
    TrustLevel.VAULT: _("This folder"),
    TrustLevel.SANDBOXED: _("Read-only box"),
}
SEES = {
    TrustLevel.FULL: _(
        "Reaches whatever the server itself does, with no wall around it: what is asked there is a courtesy, "
        "because a program that runs can do more. For operators only."
    ),
    TrustLevel.VAULT: _(
        "Works in the vault, behind a wall. Secrets and the rest of the computer are hidden."
    ),
    TrustLevel.SANDBOXED: _("Reads the vault and writes in a scratch folder, in a box made anew each time."),
}
WITHOUT = {
    TrustLevel.VAULT: _(
        "Until then a person decides about each command and change. Where not everybody in a workspace is "
        "an operator, nothing runs."
    ),
    TrustLevel.SANDBOXED: _(
        "Until then nothing runs at this level. It needs docker or podman, and the image that "
        "deploy/sandbox/build makes."
    ),
}


@dataclass(frozen=True)
class Level:
    name: Promise
    sees: Promise
    wall: str  # the one that is used; empty: none
    works: bool
    why_not: tuple[str, ...]
    without: Promise | str


@dataclass(frozen=True)
class Choice:
    value: str
    label: Promise
    chosen: bool


@dataclass(frozen=True)
class Acting:
    """The switch "Act without asking" of one session."""

    is_on: bool
    is_offered: bool  # nobody sits beside a schedule or a child
    walled: str  # the levels at which it is on unless somebody took it away
    is_operators: bool  # who sees it may give it where no wall stands


def switch(caller: Caller, session: Session | None) -> Acting:
    walled = " ".join(level for level in NAMES if walls.stands(level))
    if session is None:
        return Acting(is_on=True, is_offered=True, walled=walled, is_operators=caller.is_operator)
    return Acting(acting.acts(session), acting.is_somebodys(session), walled, caller.is_operator)


def levels() -> list[Level]:
    """It runs one of each wall, and takes as long as that takes."""
    here = walls.what_is_here()
    return [_level(level, [each for each in here if each.level == level]) for level in NAMES]


def _level(level: TrustLevel, found: list[WhatIsHere]) -> Level:
    used = next((each for each in found if each.works), None)
    return Level(
        name=NAMES[level],
        sees=SEES[level],
        wall=used.wall if used and level != TrustLevel.FULL else "",
        works=used is not None,
        why_not=() if used else tuple(each.why_not for each in found),
        without="" if used else WITHOUT[level],
    )


def choices(caller: Caller, workspace: Workspace, session: Session | None) -> list[Choice]:
    """Those that may be chosen and work here: for a session that is there already, only what allows less."""
    order = list(NAMES)
    if session:
        first = chosen = order.index(TrustLevel(session.trust_level))
    else:
        first = max(order.index(TrustLevel(workspace.trust_floor)), 0 if caller.is_operator else 1)
        chosen = max(first, order.index(TrustLevel(workspace.default_trust)))
    offered = [at for at in order[first:] if at == order[chosen] or walls.seems_to_work(at, workspace)]
    return [Choice(str(at), NAMES[at], chosen=at == order[chosen]) for at in offered]
