"""Captures: texts that somebody drops into the vault's `captures/`, for agents and people to find."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from stat import S_ISREG

import yaml
from django.utils.translation import gettext as _

from sessions_app.access import reading
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Forbidden, Invalid, NotFound, NotReady, TooLarge
from sessions_app.files.closed import is_closed
from sessions_app.files.folders import Folder

FOLDER = "captures"
LARGEST = 1 << 20  # bytes
LONGEST_NAME = 200  # bytes; a number may come behind it
MOST = 1_000
# What a file cannot be called on some system that the vault may be carried to.
_NO_NAME = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Capture:
    filename: str
    size: int
    changed_at: datetime

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.filename}"


@dataclass(frozen=True)
class Captured:
    """What somebody drops. The title, where it is from and when stand as front matter above it."""

    filename: str
    content: str
    title: str = ""
    context: str = ""
    timestamp: str = ""

    def whole(self) -> bytes:
        known = {"title": self.title, "context": self.context, "timestamp": self.timestamp}
        ours = {name: value for name, value in known.items() if value}
        if not ours:
            return self.content.encode()
        if front := _FRONT.match(self.content):  # it has one of its own: what that says stays
            ours = {name: value for name, value in ours.items() if f"\n{name}:" not in f"\n{front[1]}"}
            rest = self.content[front.start(1) :]
        else:
            rest = f"---\n\n{self.content}"
        lines = yaml.safe_dump(ours, allow_unicode=True, sort_keys=False, width=10_000) if ours else ""
        return f"---\n{lines}{rest}".encode()


def captures(caller: Caller, slug: str) -> list[Capture]:
    """Newest first."""
    with _opened(_workspace(caller, slug)) as folder:
        names = [name for name in folder.names() if not _is_hidden(name)] if folder else []
        found = [(name, folder.look(name)) for name in names] if folder else []
    listed = [
        Capture(name, state.st_size, datetime.fromtimestamp(state.st_mtime, UTC))
        for name, state in found
        if state is not None and S_ISREG(state.st_mode)
    ]
    return sorted(listed, key=lambda each: each.changed_at, reverse=True)[:MOST]


def capture(caller: Caller, slug: str, filename: str) -> bytes:
    if _problem(filename):
        raise NotFound
    with _opened(_workspace(caller, slug)) as folder:
        if folder is None:
            raise NotFound
        try:
            return folder.read(filename, first=LARGEST)
        except OSError as error:
            raise NotFound from error


def save(caller: Caller, slug: str, given: Captured) -> str:
    """Where it lies now. The same content again under its name is that file; another one gets a number."""
    workspace = _workspace(caller, slug)
    if not Workspace.objects.filter(caller.within("", MAY_WRITE), pk=workspace.pk).exists():
        raise Forbidden(_("You may read here, and not write."))
    name = given.filename if PurePath(given.filename).suffix else f"{given.filename}.md"
    if problem := _problem(name):
        raise Invalid.field("filename", problem)
    content = given.whole()
    if len(content) > LARGEST:
        raise TooLarge(_("A capture has at most 1 MB."))
    try:
        with Folder.at(Path(workspace.vault_path)) as root, root.below(FOLDER, make=True) as folder:
            return f"{FOLDER}/{name if _holds(folder, name, content) else folder.add(name, content)}"
    except OSError as error:
        raise NotReady(_("The vault cannot be written to: {why}.").format(why=error.strerror)) from error


def _holds(folder: Folder, name: str, content: bytes) -> bool:
    try:
        return folder.read(name, first=LARGEST) == content
    except OSError:
        return False


def _problem(name: str) -> str:
    """Why this is no name of a capture, in words; or nothing."""
    if (
        not name
        or name.startswith(".")
        or any(sign in name for sign in '/\\:*?"<>|')
        or not name.isprintable()
    ):
        return _(
            'Give the name of a file, without folders, not beginning with a dot, and without : * ? " < > |.'
        )
    if len(name.encode()) > LONGEST_NAME:
        return _("A name has at most 200 bytes.")
    if _NO_NAME.fullmatch(name) or name.endswith((" ", ".")):
        return _("Some systems have no file of this name. Choose another.")
    if is_closed((FOLDER, name)):
        return _("Files of this name hold secrets or steer agents. Choose another.")
    return ""


def _is_hidden(name: str) -> bool:
    return bool(_problem(name))


def _workspace(caller: Caller, slug: str) -> Workspace:
    """The one of this slug; without one, the caller's oldest."""
    if slug:
        return reading.workspace(caller, slug)[0]
    found = Workspace.objects.visible_to(caller).filter(archived_at=None).order_by("created_at").first()
    if found is None:
        raise NotFound
    return found  # type: ignore[no-any-return]


@contextmanager
def _opened(workspace: Workspace) -> Iterator[Folder | None]:
    """The folder, or None where there is none yet."""
    try:
        with Folder.at(Path(workspace.vault_path)) as root:
            found = root.look(FOLDER)
            if found is None:
                yield None
                return
            with root.below(FOLDER) as folder:
                yield folder
    except OSError as error:
        raise NotReady(_("The vault cannot be read: {why}.").format(why=error.strerror)) from error
