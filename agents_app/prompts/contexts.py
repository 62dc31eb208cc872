"""What is put after the preset: `AGENTS.md`, else `CLAUDE.md`, of each folder from the vault's root down to
the working directory, and to the folders that people have chosen for the session; deepest last, each once.
`@path` in them stays text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sessions_app.files.folders import Folder

NAMES = ("AGENTS.md", "CLAUDE.md")
CHARACTERS_A_TOKEN = 4
MOST_TOKENS = 50_000
MOST_BYTES = MOST_TOKENS * CHARACTERS_A_TOKEN * 4 + 1  # a character is at most four; one more shows the cut
CUT = "\n\n[Cut here: the context files are longer than {limit:,} tokens.]"


@dataclass(frozen=True)
class Context:
    text: str
    files: tuple[str, ...]
    tokens: int
    truncated: bool
    parts: tuple[tuple[str, str], ...] = ()  # each file with what is told of it


NONE = Context("", (), 0, False)


def assemble(vault: Path, directory: Path, chosen: Iterable[str] = ()) -> Context:
    """The context of a working directory, and of chosen folders of the vault. Outside the vault a directory
    has only the vault's own."""
    inside = directory.relative_to(vault).parts if directory.is_relative_to(vault) else ()
    return _assembled(vault, _down_to([inside, *map(_parts, chosen)]))


def of_chosen(vault: Path, chosen: Iterable[str]) -> Context:
    """Of these folders alone: for an agent whose own prompt stands in the place of the preset."""
    return _assembled(vault, sorted({_parts(each) for each in chosen}, key=_deepest_last))


def _assembled(vault: Path, folders: Iterable[tuple[str, ...]]) -> Context:
    files: list[str] = []
    parts: list[str] = []
    room = MOST_TOKENS * CHARACTERS_A_TOKEN
    truncated = False
    for name, text in _found(vault, folders):
        files.append(name)
        if len(text) > room:
            text, truncated = text[:room] + CUT.format(limit=MOST_TOKENS), True
        room -= min(len(text), room)
        parts.append(f"# From {name}\n\n{text.strip()}")
        if truncated:
            break
    whole = "\n\n".join(parts)
    told = tuple(zip(files, parts, strict=True))
    return Context(whole, tuple(files), tokens_of(whole), truncated, told)


def tokens_of(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)


def _parts(folder: str) -> tuple[str, ...]:
    return tuple(name for name in folder.split("/") if name not in ("", "."))


def _down_to(folders: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    above = {folder[:depth] for folder in folders for depth in range(len(folder) + 1)}
    return sorted(above, key=_deepest_last)


def _deepest_last(folder: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return len(folder), folder


def _found(vault: Path, folders: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        found = _of_folder(vault, folder)
        if found is not None:
            yield found


def _of_folder(vault: Path, below: tuple[str, ...]) -> tuple[str, str] | None:
    try:
        with Folder.at(vault) as root, root.below(*below) as folder:
            for name in NAMES:
                if text := _text(folder, name):
                    return "/".join((*below, name)), text
    except OSError:
        return None  # a folder that is gone, or a link: nothing that we read
    return None


def _text(folder: Folder, name: str) -> str:
    try:
        return folder.read(name, first=MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
