"""What a launch behind a wall is told of the inside of its vault, as it is at this moment."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from django.conf import settings

from agents_app import launcher
from agents_app.sandboxes import ENGINES, neighbours, placeholders, vaults
from agents_app.sandboxes.base import CannotConfine, Launch, Sandbox
from agents_app.sandboxes.checks import take_back

STANDS = "The wall of this process stands."


@dataclass(frozen=True)
class Until:
    """What is undone with the end of a process, and what already when its wall stands."""

    ends: ExitStack
    stands: ExitStack


@dataclass(frozen=True)
class Around:
    """What a wall is built around. `writable`: patterns of what it opens; None is all of the vault."""

    vault: Path
    directory: Path
    writable: tuple[str, ...] | None
    hidden: tuple[Path, ...]
    sandbox: Sandbox


def with_vault(launch: Launch, around: Around, until: Until) -> Launch:
    """With what is hidden in it and read-only, and the limits. Other agents stand still in it from the first
    look until the wall stands."""
    ends, vault = until.ends, around.vault

    def hold(repositories: Sequence[Path]) -> None:
        ends.callback(placeholders.hold_repositories(vault, repositories, locks()))

    until.stands.enter_context(neighbours.one_at_a_time(vault, locks()))
    others = neighbours.told(vault, locks())
    stand = launcher.standing_still([each.mark for each in others if each.mark])
    until.stands.callback(until.stands.enter_context(stand))
    if around.writable != ():  # else nothing is planted in it by this one
        ends.callback(placeholders.hold(vault, around.directory, locks()))
    inside = vaults.shown(vault, around.writable, hold=hold, neighbours=others, hidden=around.hidden)
    until.stands.callback(take_back, vault, inside.checked, time.time())
    mark = "" if around.sandbox.name in ENGINES else launch.mark
    ends.callback(neighbours.tell(vault, inside.found, locks(), mark))
    if any(around.directory.is_relative_to(hidden) for hidden in inside.masked):
        raise CannotConfine(
            f"Agents may not look into {around.directory}. Open it, or choose another folder."
        )
    return replace(
        launch,
        writable=(*launch.writable, *inside.writable),
        readable=(*launch.readable, *inside.readable),
        masked=(*launch.masked, *inside.masked),
        checked=inside.checked,
        tells=STANDS,
        limits=settings.PARACHUTE_LIMITS,
    )


def locks() -> Path:
    return Path(settings.PARACHUTE_HOME) / "locks"
