"""What is put after the preset: `AGENTS.md`, else `CLAUDE.md`, of each folder from the vault's root down to
the working directory; deepest last. `@path` in them stays text."""

from collections.abc import Iterator
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


NONE = Context("", (), 0, False)


def assemble(vault: Path, directory: Path) -> Context:
    """The context of a working directory. Outside the vault there is only the vault's own."""
    files: list[str] = []
    parts: list[str] = []
    room = MOST_TOKENS * CHARACTERS_A_TOKEN
    truncated = False
    for name, text in _found(vault, directory):
        files.append(name)
        if len(text) > room:
            text, truncated = text[:room] + CUT.format(limit=MOST_TOKENS), True
        room -= min(len(text), room)
        parts.append(f"# From {name}\n\n{text.strip()}")
        if truncated:
            break
    whole = "\n\n".join(parts)
    return Context(whole, tuple(files), tokens_of(whole), truncated)


def tokens_of(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)


def _found(vault: Path, directory: Path) -> Iterator[tuple[str, str]]:
    inside = directory.relative_to(vault).parts if directory.is_relative_to(vault) else ()
    for depth in range(len(inside) + 1):
        found = _of_folder(vault, inside[:depth])
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
