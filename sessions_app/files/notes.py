"""What a vault's page shows of it: folders and notes, by directory handles and through no link.

What the deny list closes to agents is not there, nor are names that begin with a dot, nor what belongs to
single chats and is reached through them: files that came with messages, and imports.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePath
from stat import S_ISDIR, S_ISREG

from django.db.models import Q
from django.db.models.functions import Length

from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound
from sessions_app.files.closed import is_secret
from sessions_app.files.downloads import SHOWN_AS_IT_IS, Download
from sessions_app.files.file_types import type_of
from sessions_app.files.folders import Folder
from sessions_app.models import ContentType
from sessions_app.search.models import ContentType as Indexed
from sessions_app.search.models import IndexManifest
from sessions_app.storable import storable

LARGEST = 1 << 20  # bytes of a file that are shown
BEGINNING = 8_000  # bytes by which it is known whether it is text
MOST = 2_000  # names of a folder
PICTURES = (ContentType.PNG, ContentType.JPEG, ContentType.GIF, ContentType.WEBP)
OLD_CHATS = ("agent-chats", "agent-logs")  # where a program before this one kept them
OF_CHATS = (("chat", "assets"), ("chat", "imports"))


@dataclass(frozen=True)
class Entry:
    name: str
    path: str  # in the vault
    is_folder: bool
    size: int
    changed_at: datetime


@dataclass(frozen=True)
class Place:
    """A folder with its entries, or a file with its text."""

    path: str
    is_folder: bool
    entries: tuple[Entry, ...] = ()
    is_cut: bool = False  # there are more entries, or more text
    text: str | None = None  # None: it is no text
    size: int = 0
    kind: ContentType = ContentType.OTHER  # by its first bytes

    @property
    def is_markdown(self) -> bool:
        return PurePath(self.path).suffix.lower() in (".md", ".markdown")

    @property
    def is_picture(self) -> bool:
        return self.kind in PICTURES


def look(workspace: Workspace, path: str) -> Place:
    """Raises NotFound for whatever is not there, or is not to be seen."""
    names = _names(path)
    with _vault(workspace) as root:
        return _folder(root, names) or _file(root, names)


def file(workspace: Workspace, path: str) -> Download:
    """A file as it lies there, whatever it is. Raises NotFound as `look` does."""
    names = _names(path)
    with _vault(workspace) as root, root.below(*names[:-1]) as folder:
        name = names[-1] if names else ""
        kind = type_of(folder.read(name, first=BEGINNING))
        return Download(folder.open(name), name, kind)


def _names(path: str) -> tuple[str, ...]:
    names = tuple(path.split("/")) if path else ()
    if any(name in ("", ".", "..") or "\0" in name for name in names) or is_hidden(names):
        raise NotFound
    return names


@contextmanager
def _vault(workspace: Workspace) -> Iterator[Folder]:
    try:
        with Folder.at(Path(workspace.vault_path)) as root:
            yield root
    except (OSError, ValueError) as error:
        raise NotFound from error


def is_hidden(names: Sequence[str]) -> bool:
    folded = tuple(name.casefold() for name in names)
    return any(name.startswith(".") for name in names) or folded[:2] in OF_CHATS or is_secret(names)


def is_old_chat(place: Place) -> bool:
    return place.path.casefold().startswith(tuple(f"{folder}/" for folder in OLD_CHATS)) and place.is_markdown


def by_name(workspace: Workspace, name: str) -> str | None:
    """The path of a note that is called so, as `[[its name]]` means it: the one with the shortest path."""
    wanted = name.removesuffix(".md").strip("/")
    notes = IndexManifest.objects.filter(workspace=workspace, session=None).exclude(
        content_type=Indexed.SESSION
    )
    called = notes.filter(Q(path__iexact=f"{wanted}.md") | Q(path__iendswith=f"/{wanted}.md"))
    found = called.order_by(Length("path")).values_list("path", flat=True)[:100]
    return min(found, key=lambda path: (path.count("/"), path), default=None)


def _folder(root: Folder, names: tuple[str, ...]) -> Place | None:
    """None where there is a file."""
    if names:
        with root.below(*names[:-1]) as above:
            found = above.look(names[-1])
        if found is None or not S_ISDIR(found.st_mode):
            return None
    with root.below(*names) as folder:
        shown = (name for name in folder.names() if name.isprintable() and not is_hidden((*names, name)))
        listed = list(islice(shown, MOST + 1))  # an agent can put a million into a folder
        entries = [entry for name in listed[:MOST] if (entry := _entry(folder, names, name))]
    entries.sort(key=lambda entry: (not entry.is_folder, entry.name.casefold()))
    return Place("/".join(names), True, tuple(entries), is_cut=len(listed) > MOST)


def _entry(folder: Folder, names: tuple[str, ...], name: str) -> Entry | None:
    found = folder.look(name)
    if found is None or not (S_ISDIR(found.st_mode) or S_ISREG(found.st_mode)):
        return None
    changed = datetime.fromtimestamp(found.st_mtime, UTC)
    return Entry(name, "/".join((*names, name)), S_ISDIR(found.st_mode), found.st_size, changed)


def _file(root: Folder, names: tuple[str, ...]) -> Place:
    with root.below(*names[:-1]) as folder:
        found = folder.look(names[-1])
        size = found.st_size if found else 0
        content = folder.read(names[-1], first=LARGEST)
    path = "/".join(names)
    kind = type_of(content[:BEGINNING])
    if kind in SHOWN_AS_IT_IS or b"\0" in content[:BEGINNING]:
        return Place(path, False, size=size, kind=kind)
    text = storable(content.decode(errors="replace"))
    return Place(path, False, text=text, size=size, is_cut=size > LARGEST, kind=ContentType.TEXT)
