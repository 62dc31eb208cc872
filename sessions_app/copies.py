"""Readable copies: each chat as a markdown file in its vault, to be read, searched and kept without us.

Written by a sweep in the background, so no turn waits for a disk. A copy that a person has edited is theirs,
and the chat gets another one beside it. A private chat in a workspace of several people has none, and what it
had before is taken away, unless somebody has edited it.
"""

import hashlib
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from sessions_app.access.models import Workspace
from sessions_app.files.folders import Folder
from sessions_app.history import conversation
from sessions_app.models import Session, SessionCopy
from sessions_app.models.session import Visibility

log = logging.getLogger(__name__)

FOLDER = "agent-sessions"
AT_ONCE = 50
LONGEST_NAME = 60
LONGEST_IN_BYTES = 160  # with all that is put around it, a name of 255
_UNFIT = re.compile(r"[^\w-]+")

_writing = threading.Lock()  # two sweeps at once would each give a chat a copy, and remember one of them


def write_copies() -> int:
    """Of the sessions in which something was said since. How many files were written or taken away."""
    if not _writing.acquire(blocking=False):
        return 0
    try:
        return sum(_write_copies_in(workspace) for workspace in Workspace.objects.all())
    finally:
        _writing.release()


def _write_copies_in(workspace: Workspace) -> int:
    """Each by itself: a vault that is not there keeps no other waiting."""
    changed = 0
    for session in _wanted().filter(workspace=workspace)[:AT_ONCE]:
        changed += _tried(session, _write)
    for session in _unwanted().filter(workspace=workspace)[:AT_ONCE]:
        changed += _tried(session, _take_away)
    return changed


def remove(vault: Path, copy: SessionCopy) -> None:
    """Of a session that is deleted, unless somebody has edited it. After commit."""
    folder, _, name = copy.path.rpartition("/")
    try:
        with Folder.at(vault) as root, root.below(folder) as inside:
            if _hash(inside.read(name)) == copy.content_hash:
                inside.remove(name)
    except FileNotFoundError:
        return  # somebody has taken it away
    except OSError as error:
        log.warning("The copy %s of a deleted chat stays: %s", copy.path, error.strerror)


def _sessions() -> QuerySet[Session]:
    return Session.objects.select_related("workspace", "created_by", "copy")


def is_closed() -> Q:
    """The sessions of which nothing is to lie in their vault: private ones where others work there too."""
    in_company = Workspace.objects.annotate(people=Count("memberships")).filter(people__gt=1)
    return Q(visibility=Visibility.PRIVATE, workspace__in=in_company)


def _wanted() -> QuerySet[Session]:
    stale = Q(copy=None) | Q(copy__written_at__lt=F("last_accessed"))
    found = _sessions().filter(stale, workspace__writes_copies=True, message_count__gt=0)
    return found.exclude(is_closed()).order_by("last_accessed")


def _unwanted() -> QuerySet[Session]:
    return _sessions().filter(is_closed(), copy__isnull=False)


def _tried(session: Session, change: Callable[[Session], None]) -> bool:
    """One that cannot be written is tried again, and keeps no other from it."""
    try:
        change(session)
    except OSError as error:
        log.warning("The copy of chat %s could not be changed: %s", session.pk, error.strerror)
        return False
    return True


def _write(session: Session) -> None:
    began = timezone.now()
    text = "\n".join(_lines(session)).encode()
    with _folder(session, make=True) as folder:
        name = _own_name(session, folder)
        if name is None:
            name = folder.add(_new_name(session), text)
        else:
            folder.write(name, text)
    said = {"path": f"{FOLDER}/{name}", "content_hash": _hash(text), "written_at": began}
    if not _remembered(session, said):
        remove(Path(session.workspace.vault_path), SessionCopy(**said))


@transaction.atomic
def _remembered(session: Session, said: dict[str, Any]) -> bool:
    """False where the chat was deleted meanwhile: whoever did that did not know of this copy."""
    is_there = Session.objects.select_for_update().filter(pk=session.pk).exists()
    if is_there:
        SessionCopy.objects.update_or_create(session=session, defaults=said)
    return is_there


def _take_away(session: Session) -> None:
    with suppress(FileNotFoundError), _folder(session) as folder:  # somebody has taken all of them away
        name = _own_name(session, folder)
        if name is not None:
            folder.remove(name)
    SessionCopy.objects.filter(session=session).delete()


def _own_name(session: Session, folder: Folder) -> str | None:
    """Of the copy that is still as we wrote it; None where there is none, or somebody has edited it."""
    copy = getattr(session, "copy", None)
    if copy is None:
        return None
    name = copy.path.rpartition("/")[2]
    try:
        is_ours = _hash(folder.read(name)) == copy.content_hash
    except FileNotFoundError:
        return None
    return name if is_ours else None


@contextmanager
def _folder(session: Session, *, make: bool = False) -> Iterator[Folder]:
    vault = Path(session.workspace.vault_path)
    with Folder.at(vault) as root, root.below(FOLDER, make=make) as folder:
        yield folder


def _new_name(session: Session) -> str:
    day = _local(session, session.created_at).date().isoformat()
    fit = _UNFIT.sub("-", session.title).strip("-")[:LONGEST_NAME].encode()[:LONGEST_IN_BYTES]
    title = fit.decode(errors="ignore").strip("-") or "chat"
    return f"{day}-{title}-{session.pk.hex[:8]}.md"


def _lines(session: Session) -> Iterator[str]:
    head = {
        "title": session.title,
        "session_id": str(session.pk),
        "sdk_session_id": str(session.pk),
        "agent": session.agent_slug,
        "model": session.model,
        "author": session.author,
        "source": session.source,
        "created_at": session.created_at.isoformat(),
        "last_accessed": session.last_accessed.isoformat(),
        "archived": session.archived,
        "summary": session.summary,
        "tags": session.shown_tags,
    }
    yield "---"
    yield yaml.safe_dump(head, allow_unicode=True, sort_keys=False).rstrip("\n")
    yield "---"
    yield ""
    yield f"# {session.title}"
    for message in conversation.messages(session):
        if said := "\n\n".join(_said(message)):
            yield ""
            yield f"### {_who(message, session)} | {_when(message, session)}"
            yield ""
            yield said


def _said(message: dict[str, Any]) -> Iterator[str]:
    """The words, and which tools were used; what these answered is not said to anybody."""
    for block in message["content"]:
        if block.get("type") == "text" and block.get("text"):
            yield block["text"].strip()
        elif block.get("type") == "tool_use":
            yield f"*Used {block.get('name')}.*"


def _who(message: dict[str, Any], session: Session) -> str:
    if message["role"] == "assistant":
        return "Assistant" if session.agent_slug == "default" else session.agent_slug
    return str(message.get("author") or "User")


def _when(message: dict[str, Any], session: Session) -> str:
    try:
        at = datetime.fromisoformat(str(message["timestamp"]))
        return _local(session, at).strftime("%Y-%m-%d %H:%M:%S")
    except (
        ValueError,
        OverflowError,
    ):  # a transcript is its agent's to write: no time, or one of no calendar
        return "?"


def _local(session: Session, at: datetime) -> datetime:
    """In its workspace's zone, else the machine's."""
    return at.astimezone(_zone(session.workspace.time_zone))


def _zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
