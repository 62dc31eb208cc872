"""The log of the day: one line a run in `Daily/.activity/YYYY-MM-DD.jsonl` of the vault.

Several processes write it, and agents can write there too: it is reached by directory handles, through no
link, and each line is one append of a file that is locked meanwhile.
"""

import json
from collections.abc import Collection
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone

from sessions_app.access.models import Workspace
from sessions_app.files.folders import Folder
from sessions_app.models import Session

FOLDER = ("Daily", ".activity")
MACHINE = Path("/etc/localtime")


def belongs_in_vault(session: Session) -> bool:
    """Whoever works in the vault reads it there: of a private chat only where nobody else does."""
    return session.is_shared or session.workspace.memberships.count() <= 1


def append(vault: Path, day: date, line: dict[str, Any]) -> None:
    """Raises OSError."""
    text = json.dumps(line, ensure_ascii=False) + "\n"
    with Folder.at(vault) as top, top.below(*FOLDER, make=True) as folder:
        folder.append(f"{day.isoformat()}.jsonl", text.encode())


def take_away(vault: Path, day: date, session_ids: Collection[UUID], *, waits: bool = True) -> None:
    """The lines of these chats, where there are any. Raises OSError: a BlockingIOError where somebody keeps
    the file locked."""
    unwanted = {str(session_id) for session_id in session_ids}
    with Folder.at(vault) as top, suppress(FileNotFoundError), top.below(*FOLDER) as folder:
        folder.keep_lines(
            f"{day.isoformat()}.jsonl", lambda line: _session_of(line) not in unwanted, waits=waits
        )


def _session_of(line: bytes) -> Any:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):  # somebody else's
        return None
    session_id = told.get("session_id") if isinstance(told, dict) else None
    return session_id if isinstance(session_id, str) else None


def today(workspace: Workspace, now: datetime | None = None) -> date:
    return (now or timezone.now()).astimezone(zone_of(workspace)).date()


def zone_of(workspace: Workspace) -> ZoneInfo:
    """The workspace's, else the machine's: Django has set this process to UTC."""
    try:
        if workspace.time_zone:
            return ZoneInfo(workspace.time_zone)
        with MACHINE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return ZoneInfo("UTC")
