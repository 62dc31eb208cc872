"""Files that steer agents, editors and git: a person looks at each write to them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from permissions_app.rules.ground import Ground
from permissions_app.rules.paths import Place, folded_parts, is_below

_NAMES = frozenset(
    {
        ".claude",
        ".mcp.json",
        ".agents",
        "claude.md",
        "agents.md",
        ".obsidian",
        ".vscode",
        ".envrc",
    }
)
# Believed in the vault's root alone; further down it is an honest name for a folder of programs. Whatever its
# letters' case: to many file systems, also those that a vault is synced to, `agents/` is the same folder.
_IN_ROOT = frozenset({"agents"})
_IN_GIT = frozenset({"hooks", "config", "config.worktree", "commondir"})


def is_control_file(place: Place, ground: Ground) -> bool:
    return any(_steers(parts) for stop in place.stops for parts in _names_below_roots(stop, ground)) or any(
        _is_in_root(folded_parts(stop[len(vault) :]))
        for stop in place.stops
        for vault in ground.vault.stops
        if is_below(stop, vault)
    )


def control_files_in(folder: Path) -> list[Path]:
    """Those that lie in a folder itself and are there, for a wall to show read-only. Where nobody may look,
    there is none."""
    try:
        found = [path for path in folder.iterdir() if path.name.casefold() in _NAMES | _IN_ROOT]
    except OSError:
        return []
    in_git = (folder / ".git" / name for name in sorted(_IN_GIT))
    return [*found, *(path for path in in_git if os.path.exists(path))]  # noqa: PTH110 - a Path raises there


def steers(names: Sequence[str]) -> bool:
    """Whether a path of these folded names, from the vault's root, is one."""
    return _steers(list(names)) or _is_in_root(names)


def _is_in_root(names: Sequence[str]) -> bool:
    return not _IN_ROOT.isdisjoint(names[:1])


def _steers(parts: list[str]) -> bool:
    if not _NAMES.isdisjoint(parts):
        return True
    if ".git" not in parts:
        return False
    inside = parts[parts.index(".git") + 1 :]
    # `.git` may be a file that names another folder; a submodule keeps its hooks in `.git/modules`.
    return not inside or not _IN_GIT.isdisjoint(inside)


def _names_below_roots(path: str, ground: Ground) -> Iterator[list[str]]:
    """The names that count: those below the session's folders. A vault in `/srv/agents` steers nothing."""
    roots = [ground.vault, ground.working_directory, *([ground.scratch] if ground.scratch else [])]
    inside = False
    for root in {stop for place in roots for stop in place.stops}:
        if is_below(path, root):
            inside = True
            yield folded_parts(path[len(root) :])
    if not inside:
        yield folded_parts(path)
