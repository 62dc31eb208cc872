"""Files that come with a message: what is taken, where they are kept, and how they are given back.

They are written to the vault before their rows, and taken away where the rows are not written: a row never
points to a file that was not there. A file that nobody points to, after a crash in between, is only a file.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership
from sessions_app.errors import Invalid, NotFound, NotReady, ParachuteError, TooLarge
from sessions_app.files import file_names, file_types
from sessions_app.files.downloads import Download
from sessions_app.files.folders import Folder
from sessions_app.models import Attachment, ContentType, Message, Session
from sessions_app.models.attachment import FOLDER, LARGEST

MOST = 10  # in one message
GONE = "The file is not in the vault any more. Whoever moved or deleted it may have it."
NO_FOLDER = (
    f"Attachments are kept in {FOLDER} of the vault. A part of that path is a link or a file there: make it "
    "a folder, then send it again."
)


@dataclass(frozen=True)
class Given:
    """A file as somebody sends it."""

    file_name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Accepted:
    file_name: str
    kind: ContentType
    content: bytes = field(repr=False)


def accepted(given: Sequence[Given]) -> list[Accepted]:
    if len(given) > MOST:
        raise Invalid.field(
            "attachments",
            _("A message takes at most %(most)s files; these are %(given)s.")
            % {"most": MOST, "given": len(given)},
        )
    return [_accepted(f"attachments.{number}", file) for number, file in enumerate(given)]


def _accepted(where: str, file: Given) -> Accepted:
    name = file_names.shown(file.file_name)
    if not name:
        raise Invalid.field(f"{where}.fileName", _("The file has no name that can be shown."))
    if not file.content:
        raise Invalid.field(f"{where}.base64Data", _("%(name)s is empty.") % {"name": name})
    if len(file.content) > LARGEST:
        size, most = len(file.content) / (1 << 20), LARGEST >> 20
        raise TooLarge(
            _("%(name)s has %(size)s MB; a file may have at most %(most)s MB.")
            % {"name": name, "size": f"{size:.1f}", "most": most},
            fileName=name,
        )
    if file_types.is_program(name, file.content):
        raise Invalid.field(
            f"{where}.fileName", _("%(name)s is a program. Programs are not taken.") % {"name": name}
        )
    return Accepted(name, file_types.type_of(file.content), file.content)


@contextmanager
def kept(vault: Path, files: Sequence[Accepted]) -> Iterator[list[Attachment]]:
    """Within it the files are in the vault, and their rows are to be written. Whatever is raised takes them
    out again."""
    with _folder_of_today(vault) as (folder, path):
        names: list[str] = []
        try:
            with _explained():
                for file in files:
                    names.append(folder.add(file_names.stored(file.file_name, file.kind), file.content))
            yield [
                Attachment(
                    position=position,
                    file_name=file.file_name,
                    mime_type=file.kind,
                    size=len(file.content),
                    path=path + name,
                )
                for position, (file, name) in enumerate(zip(files, names, strict=True))
            ]
        except BaseException:
            for name in names:
                with suppress(OSError):  # what went wrong is told, and not this
                    folder.remove(name)
            raise


def attach(message: Message, files: Sequence[Attachment]) -> None:
    for file in files:
        file.message, file.session_id = message, message.session_id
    if files:
        Attachment.objects.bulk_create(files)


@dataclass(frozen=True)
class Closed:
    """What an agent may not see of the files that came with messages."""

    folder: Path  # closed as a whole, so that what comes while it works is too,
    opened: tuple[Path, ...]  # but for these, its session's own
    files: tuple[Path, ...]  # those of others that are there now


def closed_to(session: Session, vault: Path) -> Closed | None:
    """None in a workspace of one person, where all is theirs. Elsewhere an agent sees those of its session:
    whose the others are may change while it works, and what was moved is not found by its name."""
    others = Membership.objects.filter(workspace=session.workspace_id).exclude(user=session.created_by_id)
    if not others.exists():
        return None
    with Folder.at(vault) as root, root.below(*FOLDER.strip("/").split("/"), make=True):
        pass
    of_workspace = Attachment.objects.filter(session__workspace=session.workspace_id).order_by("path")
    own, foreign = list[Path](), list[Path]()
    for path, session_id in of_workspace.values_list("path", "session"):
        (own if session_id == session.pk else foreign).append(vault / path)
    return Closed(vault / FOLDER, tuple(own), tuple(foreign))


def as_json(file: Attachment) -> dict[str, Any]:
    return {
        "id": str(file.pk),
        "fileName": file.file_name,
        "mimeType": str(file.mime_type),
        "size": file.size,
        "path": file.path,
        "url": f"/api/chat/{file.session_id}/attachments/{file.pk}",
    }


def download(caller: Caller, session_id: UUID, attachment_id: UUID) -> Download:
    visible = Session.objects.visible_to(caller).filter(pk=session_id)
    found = Attachment.objects.select_related("session__workspace")
    file = found.filter(pk=attachment_id, session__in=visible).first()
    if file is None:
        raise NotFound()
    *folders, name = file.path.split("/")
    try:
        with Folder.at(Path(file.session.workspace.vault_path)) as root, root.below(*folders) as folder:
            return Download(folder.open(name), file.file_name, file.mime_type)
    except OSError as error:
        raise NotFound(GONE) from error


@contextmanager
def _folder_of_today(vault: Path) -> Iterator[tuple[Folder, str]]:
    path = f"{FOLDER}{timezone.now().date().isoformat()}/"
    with ExitStack() as opened:
        with _explained():
            root = opened.enter_context(Folder.at(vault))
            folder = opened.enter_context(root.below(*path.strip("/").split("/"), make=True))
        yield folder, path


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _refusal(error) from error


def _refusal(error: OSError) -> ParachuteError:
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return Invalid.field("attachments", NO_FOLDER)
    return NotReady(
        f"The vault cannot take files now ({error.strerror}). Check that its folder is there, that the "
        "server may write to it, and that the disk has room. Then send it again."
    )
