"""`.mcp.json` of a vault, by directory handles. Walls are mounted on it, so it is changed in place."""

import json
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents_app.tools.mcp.entries import Entry, entry
from sessions_app.files.folders import Folder, Unexpected

FILE = ".mcp.json"
KEY = "mcpServers"
LARGEST = 256_000  # bytes
MOST = 100  # entries


class NotRead(Exception):
    """The file as a whole; the text is for the person who wrote it."""


class ChangedMeanwhile(Exception):
    pass


@dataclass(frozen=True)
class Listed:
    entries: tuple[Entry, ...] = ()
    problem: str = ""  # with the file as a whole

    def named(self, name: str) -> Entry | None:
        return next((each for each in self.entries if each.name == name), None)


class _Twice(dict[str, Any]):
    """An object of JSON that remembers which of its names stand in it twice: readers disagree on who wins."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.twice = {name for name, _ in pairs if name in seen or seen.add(name)}  # type: ignore[func-returns-value]


def read(vault: Path) -> Listed:
    """Each entry by itself: one that is wrong keeps no other from counting. Never raises."""
    try:
        found = _parsed(_content(vault))
        servers = _servers(found)
    except NotRead as unread:
        return Listed(problem=str(unread))
    except OSError as error:
        return Listed(problem=f"{FILE} cannot be read ({error.strerror}).")
    entries = [_entry(servers, name) for name in list(servers)[:MOST]]
    if servers is not found:
        entries += [_outside(name) for name, value in found.items() if name != KEY and _is_server(value)]
    problem = f"{FILE} has more than {MOST} entries; the others are not read." if len(servers) > MOST else ""
    return Listed(tuple(entries), problem)


def change(vault: Path, do: Callable[[dict[str, Any]], None]) -> None:
    """`do` changes the servers by name; the rest of the file stays, but its spaces. Raises NotRead,
    ChangedMeanwhile, OSError."""
    before = _content(vault)
    found = _parsed(before)
    is_wrapped = KEY in found or not found
    known = _servers(found)
    servers = dict(known)
    do(servers)
    whole = {**found, KEY: servers} if is_wrapped else servers
    lost = {name for name in _twice_in(known) if servers.get(name) is known[name]}
    beside = _twice_in(found) if found is not known else set()
    if lost or beside:  # one of the two would be gone, and whoever wrote it never heard of that
        raise NotRead(f"{FILE} has two entries named {min(lost | beside)[:100]}.")
    try:
        content = _as_written(whole)
    except (ValueError, RecursionError) as error:
        raise NotRead("The entry holds a character that is no text, or is nested too deeply.") from error
    with Folder.at(vault) as root:
        if root.look(FILE) is None:
            root.write(FILE, content)
            return
        try:
            root.overwrite(FILE, content, where=lambda found: found == before)
        except Unexpected as error:
            raise ChangedMeanwhile from error


def _content(vault: Path) -> bytes:
    with Folder.at(vault) as root:
        found = root.look(FILE)
        if found is None:
            return b""
        if stat.S_ISDIR(found.st_mode):
            raise NotRead(
                f"{FILE} is a folder, and servers stand in a file of that name. Take the folder away."
            )
        if stat.S_ISLNK(found.st_mode):
            raise NotRead(f"{FILE} is a link, and no link is followed. Put the file itself there.")
        content = root.read(FILE, first=LARGEST + 1)
    if len(content) > LARGEST:
        raise NotRead(f"{FILE} has more than {LARGEST:,} bytes.")
    return content


def _parsed(content: bytes) -> dict[str, Any]:
    if not content.strip():  # so is the file that holds its place while an agent runs
        return {}
    try:
        found = json.loads(content, object_pairs_hook=_Twice)
        _as_written(found)  # what can be read and not be written, such as "\ud800", stops whoever shows it
    except json.JSONDecodeError as error:
        raise NotRead(f"{FILE} is no JSON: {error.msg} in line {error.lineno}.") from error
    except (ValueError, RecursionError) as error:
        raise NotRead(f"{FILE} is no JSON, or holds a character that is no text.") from error
    if not isinstance(found, dict):
        raise NotRead(f"{FILE} holds no fields: servers by their names were expected.")
    return found


def _as_written(whole: Any) -> bytes:
    return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n".encode()


def _servers(found: dict[str, Any]) -> dict[str, Any]:
    """Both shapes: below `mcpServers`, or at the top."""
    inner = found.get(KEY, found)
    if not isinstance(inner, dict):
        raise NotRead(f"{KEY} in {FILE} holds no fields: servers by their names were expected.")
    return inner


def _twice_in(found: dict[str, Any]) -> set[str]:
    return found.twice if isinstance(found, _Twice) else set()


def _entry(servers: dict[str, Any], name: str) -> Entry:
    if name in _twice_in(servers):
        return Entry(name[:100], problem="Two entries have this name. Rename one of them.")
    return entry(name, servers[name])


def _is_server(value: object) -> bool:
    return isinstance(value, dict) and ("command" in value or "url" in value)


def _outside(name: str) -> Entry:
    return Entry(name[:100], problem=f"It stands beside {KEY}, where nobody looks for it. Move it in there.")
