"""The log of the day: one line a run in `Daily/.activity/YYYY-MM-DD.jsonl` of the vault.

Several processes write it, and agents can write there too: it is reached by directory handles, through no
link, and each line is one append of a file that is locked meanwhile.
"""

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any
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
