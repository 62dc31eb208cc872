"""Names that somebody else has chosen, made fit to be shown and to be stored."""

import re
import unicodedata
from pathlib import PurePath

from sessions_app.models.attachment import ContentType

LONGEST = 120  # characters, as shown
_LONGEST_GIVEN = 1_000  # more of it is not looked at
_LONGEST_STORED = 120  # bytes; some file systems take 143, and a number and an ending are put to it
# Control characters, those that turn or hide text (bidi among them), halves of pairs, and line separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NOT_EVERYWHERE = re.compile(r'[<>:"|?*]')  # vaults are synced to systems that cannot have these in a name
# What would steer git, an editor or an agent that works in that folder. Names of secrets stay as they are:
# by their names agents are kept from reading them.
_STEERING = frozenset({".git", ".envrc", ".mcp.json", "agents.md", "claude.md"})
_ENDINGS: dict[str, tuple[str, ...]] = {
    ContentType.PNG: (".png",),
    ContentType.JPEG: (".jpg", ".jpeg"),
    ContentType.GIF: (".gif",),
    ContentType.WEBP: (".webp",),
    ContentType.PDF: (".pdf",),
}
_CLAIMS = tuple(ending for endings in _ENDINGS.values() for ending in endings)


def shown(given: str) -> str:
    """The base name alone, without what cannot be seen, at most so long; empty where nothing is left."""
    base = re.split(r"[/\\]", given[-_LONGEST_GIVEN:])[-1]
    seen = "".join(c for c in base if unicodedata.category(c) not in _UNSEEN)
    # Some systems leave dots and blanks at the end away: `x.exe.` would be `x.exe` there.
    return _cut(unicodedata.normalize("NFC", seen).strip().rstrip(". "), LONGEST).rstrip(". ")


def stored(name: str, kind: str) -> str:
    """A shown name as one in the vault. Its ending does not lie: what reads the file goes by it."""
    name = _NOT_EVERYWHERE.sub("_", name)
    if name.lower() in _STEERING:
        name = f"attached-{name}"
    if kind in _ENDINGS:
        ending = "" if name.lower().endswith(_ENDINGS[kind]) else _ENDINGS[kind][0]
    else:
        other = ".txt" if kind == ContentType.TEXT else ".bin"
        ending = other if name.lower().endswith(_CLAIMS) else ""
    return _cut(name, _LONGEST_STORED, in_bytes=True) + ending


def _cut(name: str, most: int, *, in_bytes: bool = False) -> str:
    """From the middle: a name keeps its ending."""

    def length(text: str) -> int:
        return len(text.encode()) if in_bytes else len(text)

    stem, suffix = PurePath(name).stem, PurePath(name).suffix[:20]
    if length(name) <= most:
        return name
    while stem and length(stem + suffix) > most:
        stem = stem[:-1]
    return stem + suffix
