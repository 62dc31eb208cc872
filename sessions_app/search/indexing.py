"""The only writer of the index. What has not changed costs a look at its size and time."""

import hashlib
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Left
from django.utils import timezone

from sessions_app.access.models import Workspace
from sessions_app.files.folders import Folder
from sessions_app.history import conversation
from sessions_app.models.session import Session
from sessions_app.search.chunking import chunks
from sessions_app.search.models import Chunk, ContentType, IndexManifest
from sessions_app.search.walking import Note, notes
from sessions_app.storable import storable

log = logging.getLogger(__name__)

LARGEST = 4 << 20  # bytes of a note; what is larger is no note, and is said to be left out
# Contents, and characters of them, in one transaction: SQLite has one writer, and others wait for it.
TOGETHER, LETTERS_TOGETHER = 20, 1 << 20
LONGEST_CHAT = LARGEST  # characters of what was said, its newest; an agent can make them of any number
LONGEST_TITLE = 300
LONGEST_KEY = 700
SESSIONS_AT_ONCE = 200
MANY = 100  # contents that are new, after which tables are of another size
_HEADING = re.compile(r"^#\s+(.+)$", re.MULTILINE)

_passing = threading.Lock()  # a pass that takes longer than the pause between two is not joined by the next


@dataclass
class Content:
    """One content as it is to stand in the index."""

    manifest: IndexManifest
    texts: dict[str, str] = field(default_factory=dict)  # by field

    def digest(self) -> str:
        said = hashlib.sha256()
        for name, text in sorted(self.texts.items()):
            said.update(f"{name}\0{text}\0".encode())
        return said.hexdigest()

    def length(self) -> int:
        return sum(map(len, self.texts.values()))


def index_changed() -> int:
    """One pass over all vaults and sessions. How many contents were written."""
    if not _passing.acquire(blocking=False):
        return 0
    try:
        written = index_sessions()
        for workspace in Workspace.objects.filter(archived_at=None):
            try:
                written += index_vault(workspace)
            except OSError as error:
                log.warning("The vault of %s could not be indexed: %s", workspace, error.strerror)
        if written >= MANY:
            _tell_the_planner()
        return written
    finally:
        _passing.release()


def _tell_the_planner() -> None:
    """SQLite does not look by itself, and would rather walk through a workspace than take 200 rows by their
    keys. It looks at some hundred rows of an index; PostgreSQL does the same unasked."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA analysis_limit = 400")
            for table in (Chunk, IndexManifest):
                cursor.execute(f"ANALYZE {table._meta.db_table}")


def index_vault(workspace: Workspace) -> int:
    vault = Path(workspace.vault_path)
    known = {
        manifest.path: manifest
        for manifest in IndexManifest.objects.filter(workspace=workspace, session=None)
    }
    seen = set[str]()

    def changed() -> Iterator[Content]:
        for note in notes(vault):
            seen.add(note.path)
            before = known.get(note.path)
            if before is None or (before.size, before.modified_ns) != (note.size, note.modified_ns):
                yield _note(workspace, vault, note)

    written = _write_all(changed())
    gone = [manifest.pk for path, manifest in known.items() if path not in seen]
    for start in range(0, len(gone), SESSIONS_AT_ONCE):
        IndexManifest.objects.filter(pk__in=gone[start : start + SESSIONS_AT_ONCE]).delete()
    return written + len(gone)


def index_sessions() -> int:
    """Those in which something was said, or whose title or summary is another, since they were indexed."""
    stale = Q(indexed=None) | Q(indexed__indexed_at__lt=F("last_accessed"))
    stale |= ~Q(indexed__title=Left("title", LONGEST_TITLE)) | ~Q(indexed__summary=F("summary"))
    found = Session.objects.filter(stale, parent=None).select_related("workspace").order_by("last_accessed")
    return _write_all(_session(session) for session in found[:SESSIONS_AT_ONCE])


def index_session(session_id: UUID) -> int:
    found = Session.objects.filter(pk=session_id).select_related("workspace")
    return _write_all(_session(session) for session in found)


def _session(session: Session) -> Content:
    began = timezone.now()
    said = "\n\n".join(_texts(conversation.messages(session)))[-LONGEST_CHAT:]
    manifest = IndexManifest(
        content_id=f"{session.workspace_id}:session:{session.pk}",
        workspace_id=session.workspace_id,
        content_type=ContentType.SESSION,
        session=session,
        title=session.title[:LONGEST_TITLE],
        summary=session.summary,
        changed_at=session.last_accessed,
        indexed_at=began,
    )
    return Content(manifest, {"title": session.title, "summary": session.summary, "content": said})


def _texts(messages: Iterable[dict[str, Any]]) -> Iterator[str]:
    """What people and agents said; what tools answered is found where it came from."""
    for message in messages:
        for block in message["content"]:
            if block.get("type") == "text" and block.get("text"):
                yield block["text"]


def _note(workspace: Workspace, vault: Path, note: Note) -> Content:
    first, _, _ = note.path.partition("/")
    manifest = IndexManifest(
        content_id=_key(workspace, note.path),
        workspace=workspace,
        content_type=ContentType.JOURNAL if first == "Daily" else ContentType.DOCUMENT,
        path=note.path,
        title=PurePath(note.path).stem[:LONGEST_TITLE],
        size=note.size,
        modified_ns=note.modified_ns,
        changed_at=datetime.fromtimestamp(note.modified_ns / 1e9, UTC),
        indexed_at=timezone.now(),
    )
    if note.size > LARGEST:
        manifest.problem = f"It is larger than {LARGEST >> 20} MB."
        return Content(manifest)
    *folders, name = note.path.split("/")
    try:
        with Folder.at(vault) as root, root.below(*folders) as folder:
            text = storable(
                folder.read(name, first=LARGEST).decode(errors="replace")
            )  # it may grow meanwhile
    except OSError as error:
        manifest.problem = f"It could not be read ({error.strerror})."[:200]
        return Content(manifest)
    if heading := _HEADING.search(text):
        manifest.title = heading[1].strip()[:LONGEST_TITLE] or manifest.title
    return Content(manifest, {"title": manifest.title, "content": text})


def _key(workspace: Workspace, path: str) -> str:
    """Two paths that begin alike are two, however long they are."""
    key = f"{workspace.pk}:file:{path}"
    return (
        key if len(key) <= LONGEST_KEY else key[: LONGEST_KEY - 64] + hashlib.sha256(key.encode()).hexdigest()
    )


def _write_all(contents: Iterable[Content]) -> int:
    written = 0
    for batch in _batches(contents):
        with transaction.atomic():
            for content in batch:
                _write(content)
        written += len(batch)
    return written


def _batches(contents: Iterable[Content]) -> Iterator[list[Content]]:
    batch, letters = list[Content](), 0
    for content in contents:
        if batch and (len(batch) == TOGETHER or letters + content.length() > LETTERS_TOGETHER):
            yield batch
            batch, letters = [], 0
        batch.append(content)
        letters += content.length()
    if batch:
        yield batch


def _write(content: Content) -> None:
    """All of a content or nothing. The same words again are not cut up again."""
    manifest = content.manifest
    manifest.content_hash = content.digest()
    before = IndexManifest.objects.filter(pk=manifest.pk).first()
    if before is not None and before.content_hash == manifest.content_hash and not manifest.problem:
        manifest.chunk_count = before.chunk_count
        manifest.save(force_update=True)
        return
    pieces = [
        Chunk(manifest=manifest, field=name, position=position, text=text)
        for name, whole in content.texts.items()
        for position, text in enumerate(chunks(whole))
    ]
    manifest.chunk_count = len(pieces)
    manifest.save()
    manifest.chunks.all().delete()
    Chunk.objects.bulk_create(pieces, batch_size=100)
