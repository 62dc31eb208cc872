"""Where the curator keeps what it remembers of a chat. Not in the chat's own configuration: that one's agent
can write there, and the curator runs behind no wall."""

from pathlib import Path
from uuid import UUID

from django.conf import settings

from sessions_app.files.folders import remove_all


def folder_of(session_id: UUID) -> Path:
    return Path(settings.PARACHUTE_HOME) / "curator" / str(session_id)


def remove(session_id: UUID) -> None:
    remove_all(folder_of(session_id))
