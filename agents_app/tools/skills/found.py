"""The skills of a vault, read by directory handles: `.claude/skills/NAME/SKILL.md`, and what lies beside it.

A skill is text for an agent, and files that it may read and run. What else a `SKILL.md` can say (hooks, tools
that need no permission, lines that a shell runs) counts for nothing here. The CLI is not given the first two.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents_app.definitions.front_matter import NotRead, read
from permissions_app.rules.deny_list import is_secret_name
from permissions_app.rules.paths import fold
from sessions_app.files.folders import Folder
from sessions_app.storable import is_storable, seen, without_hidden

FOLDER = (".claude", "skills")
FILE = "SKILL.md"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
LONGEST_FILE = 256_000  # bytes of a SKILL.md
LONGEST_DESCRIPTION = 1_024  # characters, which each turn costs
MOST = 100  # skills
MOST_FILES = 300
LARGEST = 10 << 20  # bytes of all files of one
DEEPEST = 6

Files = list[tuple[str, os.stat_result]]


class Unusable(Exception):
    """The text is for the person who wrote the skill."""


@dataclass(frozen=True)
class Skill:
    name: str
    description: str = ""
    body: str = ""
    error: str = ""
    files: tuple[str, ...] = ()  # paths below its folder
    signature: str = ""  # of all its files, as stat has them


def skills_of(vault: Path) -> list[Skill]:
    """By name; each wrong one by itself. Never raises."""
    try:
        with Folder.at(vault) as root, root.below(*FOLDER) as folder:
            names = [name for name in folder.names() if not name.startswith(".") and _is_folder(folder, name)]
            found = [_skill(folder, name) for name in names[:MOST]]
    except OSError:
        return []  # no such folder, a link, or closed to us
    said = f"There are more than {MOST} skills, and this one was not read."
    return [*found, *(Skill(name[:64], error=said) for name in names[MOST:])]


def skill_of(vault: Path, name: str) -> Skill | None:
    return next((each for each in skills_of(vault) if each.name == name), None)


def copied(vault: Path, skill: Skill, into: Folder) -> None:
    """As the CLI is given it: its text below a front matter of ours, and its other files. Raises OSError."""
    front = f"---\nname: {skill.name}\ndescription: {_quoted(skill.description)}\n---\n\n"
    with into.below(skill.name, make=True) as place:
        place.write(FILE, f"{front}{skill.body}\n".encode())
        with Folder.at(vault) as root, root.below(*FOLDER, skill.name) as source:
            for path in skill.files:
                *above, name = path.split("/")
                if path == FILE:
                    continue
                with source.below(*above) as folder, place.below(*above, make=True) as target:
                    mode = folder.look(name)
                    is_program = mode is not None and bool(mode.st_mode & stat.S_IXUSR)
                    target.write(name, folder.read(name), mode=0o755 if is_program else 0o644)


def parsed(content: bytes, name: str) -> tuple[str, str]:
    """The description and the body. Raises Unusable."""
    if len(content) > LONGEST_FILE:
        raise Unusable(f"{FILE} has more than {LONGEST_FILE:,} bytes.")
    try:
        matter = read(content.decode())
    except UnicodeDecodeError as error:
        raise Unusable(f"{FILE} is no text in UTF-8.") from error
    except NotRead as problem:
        raise Unusable(f"{FILE}, line {problem.line}: {problem.message}") from problem
    said = matter.values.get("name")
    if said is not None and said != name:
        raise Unusable(f"{FILE} calls it {str(said)[:64]!r}, and its folder {name!r}. Give both one name.")
    return _description(matter.values), matter.body


def name_in(content: bytes) -> str:
    """What a SKILL.md calls itself; empty where it does not say."""
    try:
        said = read(content[:LONGEST_FILE].decode(errors="replace")).values.get("name")
    except NotRead:
        return ""
    return said if isinstance(said, str) else ""


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Unusable(
            "A skill's folder is named by small letters, digits and dashes, 64 at most. Rename it."
        )


def _description(values: dict[str, Any]) -> str:
    given = values.get("description")
    if not isinstance(given, str) or not is_storable(given) or not (text := seen(without_hidden(given))):
        raise Unusable(f"{FILE} has no description, by which an agent knows when to use it.")
    if len(text) > LONGEST_DESCRIPTION:
        raise Unusable(f"Its description has more than {LONGEST_DESCRIPTION:,} characters.")
    return " ".join(text.split())


def _skill(folder: Folder, name: str) -> Skill:
    shown = name.encode(errors="surrogateescape").decode(errors="replace")[:100]
    try:
        check_name(name)
        with folder.below(name) as own:
            files = list(_files(own))
            if FILE not in {path for path, _ in files}:
                raise Unusable(f"There is no {FILE} in it.")
            description, body = parsed(own.read(FILE, first=LONGEST_FILE + 1), name)
    except Unusable as problem:
        return Skill(shown, error=str(problem))
    except OSError as error:
        return Skill(shown, error=f"It cannot be read ({error.strerror}).")
    return Skill(name, description, body, files=tuple(path for path, _ in files), signature=_signature(files))


def _files(folder: Folder) -> Iterator[tuple[str, os.stat_result]]:
    count, size = 0, 0
    for path, found in _below(folder, "", 1):
        count, size = count + 1, size + found.st_size
        if count > MOST_FILES:
            raise Unusable(f"It has more than {MOST_FILES} files.")
        if size > LARGEST:
            raise Unusable(f"Its files have more than {LARGEST >> 20} MB.")
        yield path, found


def _below(folder: Folder, before: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    if depth > DEEPEST:
        raise Unusable(f"Its folders are more than {DEEPEST} deep.")
    for name in folder.names():
        path, found = f"{before}{name}", folder.look(name)
        if found is None:
            continue
        shown = path.encode(errors="surrogateescape").decode(errors="replace")[:100]
        if not is_storable(path):
            raise Unusable(f"{shown} has a name that is no text in UTF-8. Rename it.")
        if is_secret_name(fold(name)):
            raise Unusable(f"{shown} has the name of a secret, which no agent reads. Take it out.")
        if stat.S_ISDIR(found.st_mode):
            with folder.below(name) as inner:
                yield from _below(inner, f"{path}/", depth + 1)
        elif stat.S_ISREG(found.st_mode):
            yield path, found
        else:
            raise Unusable(f"{shown} is a link or a special file. Put the file itself there.")


def _is_folder(folder: Folder, name: str) -> bool:
    """A file there is nothing of ours; a link is a skill that is told what is wrong with it."""
    found = folder.look(name)
    return found is not None and not stat.S_ISREG(found.st_mode)


def _signature(files: Files) -> str:
    told = [(path, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for path, each in files]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _quoted(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'
