"""Files of the vault that an answer shows, for those who cannot open the vault."""

import re
from pathlib import Path, PurePosixPath
from urllib.parse import unquote
from uuid import UUID

from permissions_app.rules.deny_list import is_closed
from sessions_app.files.folders import Folder
from sessions_app.models import Attachment, Session
from sessions_app.models.attachment import FOLDER

MOST = 5
LARGEST = 10 << 20
_SHOWN = re.compile(r"!\[[^\]\n]*\]\(<?([^)>\s]+)>?(?:\s+\"[^\"\n]*\")?\)")


def named_in(markdown: str) -> list[str]:
    """Paths in the vault, each once. What lies elsewhere is not ours to send."""
    found = dict.fromkeys(unquote(each) for each in _SHOWN.findall(markdown))
    return [each for each in found if "://" not in each and _is_inside(each)][:MOST]


def read_pictures(session_id: UUID, names: list[str]) -> list[tuple[str, bytes]]:
    """Those that an agent may read too, without a link on the way. What cannot be read is left out."""
    session = Session.objects.select_related("workspace").get(pk=session_id)
    found: list[tuple[str, bytes]] = []
    with Folder.at(Path(session.workspace.vault_path)) as root:
        for name in names:
            *folders, last = PurePosixPath(name).parts
            if is_closed([*folders, last]) or _is_anothers(session, name):
                continue
            try:
                with root.below(*folders) as folder:
                    content = folder.read(last, first=LARGEST + 1)
            except OSError:
                continue  # it is named in the text, and not there
            if 0 < len(content) <= LARGEST:
                found.append((last, content))
    return found


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and not any(part.startswith(".") for part in parts)


def _is_anothers(session: Session, name: str) -> bool:
    """What came with messages of another chat."""
    if not str(PurePosixPath(name)).startswith(FOLDER.rstrip("/")):
        return False
    return not Attachment.objects.filter(session=session, path=str(PurePosixPath(name))).exists()
