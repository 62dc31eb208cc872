"""What lies in a vault at the moment when a wall is built around its agent: what it hides, what it shows
read-only, and which folders are git's.

Everything is found by directory handles, and each path that a wall will bind goes with the identity of what
was found there: the agents of other sessions stand still meanwhile, but people and their programs do not.

Where a vault is read-only as a whole, names that are held for others (`placeholders.py`) are passed over:
nothing lies under them, and they go with those others, perhaps before this wall stands, which could not be
built then. Elsewhere they are shown read-only: who could remove one from outside would open the other's wall.

What cannot be looked into is hidden as a whole: an agent may close a folder to its own user, us, and open it
again behind the next wall, with what is secret and what steers programs in it.
"""

import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from permissions_app.rules.paths import fold

from . import placeholders
from .base import CannotConfine, Identity
from .listing import GIT_FOLDER, Listing, as_identity, walk

MOST_ENTRIES = 250_000  # a vault of notes has some thousands
HELD = frozenset(placeholders.IN_GIT)
HELD_ANYWHERE = HELD.union(placeholders.IN_ROOT)


@dataclass(frozen=True)
class Found:
    hidden: dict[Path, Identity] = field(default_factory=dict)
    control_files: dict[Path, Identity] = field(default_factory=dict)
    repositories: dict[Path, Identity] = field(default_factory=dict)
    around: dict[Path, Identity] = field(default_factory=dict)  # folders of git's, and with what is hidden
    known: set[Identity] = field(default_factory=set)  # folders with something in them that a wall protects
    closed: set[Identity] = field(default_factory=set)  # folders that are hidden as a whole
    folders: dict[Path, Identity] = field(default_factory=dict)  # that it looked into


def look_through(vault: Path, *, past: frozenset[str] = HELD, hidden: Collection[Path] = ()) -> Found:
    """`past` are the names that it passes over where they are only held; those of git's are held anew for
    each wall. `hidden` is hidden anyway. Raises CannotConfine where there is too much to look at: what is not
    seen cannot be hidden. So it looks into `.git` too, where an agent may have put a folder out of sight."""
    found, links, seen = Found(), list[Path](), 0
    for here in walk(vault):
        held = {name for name in HELD_ANYWHERE & here.names if placeholders.is_ours(here.path / name)}
        here.pass_over((held & past) | {path.name for path in hidden if path.parent == here.path})
        seen += len(here.names)
        if seen > MOST_ENTRIES:
            raise CannotConfine(
                f"{vault} holds more than {MOST_ENTRIES:,} files: too many to find those that an agent must "
                "not see. Choose a smaller folder as the vault."
            )
        found.folders[here.path] = here.identity
        links += _note(found, here, held)
    _keep_topmost(found.control_files)
    _note_linked(found, links)
    return found


def _note(found: Found, here: Listing, held: set[str]) -> list[Path]:
    """`held` are the names that are there for agents. Returns the links with a secret's name."""
    out_of_sight = here.out_of_sight()
    links = {name for name in out_of_sight if here.is_link(name)}
    hidden = {name: as_identity(at) for name in out_of_sight - links if (at := here.look_at(name))}
    found.hidden.update((here.path / name, identity) for name, identity in hidden.items())
    found.closed.update(
        hidden[name] for name in here.folders.intersection(hidden) - held if here.may_be_filled(name)
    )
    here.pass_over(out_of_sight)
    steering = here.steering()
    repository = {name for name in steering if fold(name) == GIT_FOLDER and name in here.folders}
    for name, identity in steering.items():
        kind = found.repositories if name in repository else found.control_files
        kind[here.path / name] = identity
    if is_of_git := here.is_of_git():
        found.repositories[here.path] = here.identity
    if here.path in found.repositories and any(map(here.is_link, HELD)):
        # In the place of a link an agent makes a folder.
        found.control_files[here.path] = found.repositories.pop(here.path)
    if hidden or repository or is_of_git or fold(here.path.name) == GIT_FOLDER:
        found.around[here.path] = here.identity
    if here.below and (hidden.keys() - held or steering.keys() - held or is_of_git):
        found.known.add(here.identity)
    return [here.path / name for name in links]


def _note_linked(found: Found, links: list[Path]) -> None:
    """A link hides the file of the vault that it points to. Of a folder what lies in it has names of its own:
    an agent may make a link too, to anything."""
    for link in links:
        try:
            target = link.resolve()
            at = target.lstat()
        except (OSError, RuntimeError):  # nothing, a circle, or a place where we may not look
            continue
        if target.parent in found.folders and stat.S_ISREG(at.st_mode) and target not in found.control_files:
            found.hidden.setdefault(target, as_identity(at))
            found.around[target.parent] = found.folders[target.parent]


def _keep_topmost(found: dict[Path, Identity]) -> None:
    for path in [path for path in found if any(above in found for above in path.parents)]:
        del found[path]
