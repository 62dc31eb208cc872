"""What lies in a vault at the moment when a wall is built around its agent: what it hides, what it shows
read-only, and which folders are git's.

Everything is found by directory handles, and each path that a wall will bind goes with the identity of what
was found there: agents of other sessions run meanwhile, and whoever swaps a folder for a link must not get
what the link points to bound into a wall.

Where a vault is read-only as a whole, names that are held for others (`placeholders.py`) are passed over:
nothing lies under them, and they go with those others, perhaps before this wall stands, which could not be
built then. Elsewhere they are shown read-only: who could remove one from outside would open the other's wall.

What cannot be looked into is hidden as a whole: an agent may close a folder to its own user, us, and open it
again behind the next wall, with what is secret and what steers programs in it.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from permissions_app.rules.paths import fold

from . import placeholders
from .base import CannotConfine, Identity
from .listing import GIT_FOLDER, Listing, walk

MOST_ENTRIES = 250_000  # half a second; a vault of notes has some thousands
HELD = frozenset(placeholders.IN_GIT)
HELD_ANYWHERE = HELD.union(placeholders.NAMES)


@dataclass(frozen=True)
class Found:
    hidden: dict[Path, Identity | None] = field(default_factory=dict)
    control_files: dict[Path, Identity] = field(default_factory=dict)
    repositories: dict[Path, Identity] = field(default_factory=dict)  # pinned: one could be made anew
    around: dict[Path, Identity] = field(default_factory=dict)  # the folders that these lie in
    known: set[Identity] = field(default_factory=set)  # of those around, what is there without agents too
    closed: set[Identity] = field(default_factory=set)  # folders that are hidden as a whole
    folders: list[Path] = field(default_factory=list)  # that it looked into, those above first


def look_through(vault: Path, *, past: frozenset[str] = HELD, hidden: Collection[Path] = ()) -> Found:
    """`past` are the names that it passes over where they are only held; those of git's are held anew for
    each wall. `hidden` is hidden anyway. Raises CannotConfine where there is too much to look at: what is not
    seen cannot be hidden. So it looks into `.git` too, where an agent may have put a folder out of sight."""
    found, seen = Found(), 0
    for here in walk(vault):
        held = {name for name in HELD_ANYWHERE & here.names if placeholders.is_ours(here.path / name)}
        here.pass_over((held & past) | {path.name for path in hidden if path.parent == here.path})
        seen += len(here.names)
        if seen > MOST_ENTRIES:
            raise CannotConfine(
                f"{vault} holds more than {MOST_ENTRIES:,} files: too many to find those that an agent must "
                "not see. Choose a smaller folder as the vault."
            )
        found.folders.append(here.path)
        _note(found, here, held)
    _keep_topmost(found.control_files)
    return found


def _note(found: Found, here: Listing, held: set[str]) -> None:
    """`held` are the names that are there for agents."""
    hidden = {name: here.identity_of(name) for name in here.out_of_sight()}
    found.hidden.update((here.path / name, identity) for name, identity in hidden.items())
    found.closed.update(
        identity for name, identity in hidden.items() if identity and name in here.folders - held
    )
    here.pass_over(hidden)
    steering = here.steering()
    for name, identity in steering.items():
        is_repository = fold(name) == GIT_FOLDER and name in here.folders
        (found.repositories if is_repository else found.control_files)[here.path / name] = identity
    if is_of_git := here.is_of_git():
        found.repositories[here.path] = here.identity
    if here.path in found.repositories and any(map(here.is_link, HELD)):
        # In the place of a link an agent makes a folder.
        found.control_files[here.path] = found.repositories.pop(here.path)
    if hidden or steering:
        found.around[here.path] = here.identity
    if here.below and (is_of_git or {*hidden, *steering} - held):
        found.known.add(here.identity)


def _keep_topmost(found: dict[Path, Identity]) -> None:
    for path in [path for path in found if any(above in found for above in path.parents)]:
        del found[path]
