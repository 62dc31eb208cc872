"""The contexts of a session: folders of the vault, chosen by people, whose AGENTS.md or CLAUDE.md its agent
is told. Their only writer."""

import stat
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from sessions_app import reading, services
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Invalid, NotFound, OutsideVault
from sessions_app.files.folders import Folder
from sessions_app.models import SessionContext
from sessions_app.storable import is_storable

MOST = 20
LONGEST = 1_000
FIELD = "contexts"
ROOT = "."  # the vault itself


def of_session(caller: Caller, session_id: UUID) -> list[SessionContext]:
    return list(reading.visible(caller, session_id).contexts.all())


@transaction.atomic
def put(caller: Caller, session_id: UUID, paths: Iterable[str]) -> list[SessionContext]:
    """These and no others. They count from the next turn on."""
    session = services.locked(caller, session_id)
    wanted = checked_all(session.workspace, paths)
    session.contexts.exclude(path__in=wanted).delete()
    fresh = [SessionContext(session=session, path=path) for path in wanted]
    SessionContext.objects.bulk_create(fresh, ignore_conflicts=True)
    return list(session.contexts.all())


@transaction.atomic
def add(caller: Caller, session_id: UUID, path: str) -> list[SessionContext]:
    there = [each.path for each in services.locked(caller, session_id).contexts.all()]
    return put(caller, session_id, [*there, path])


@transaction.atomic
def remove(caller: Caller, session_id: UUID, path: str) -> None:
    session = services.locked(caller, session_id)
    if not session.contexts.filter(path=path).delete()[0]:
        raise NotFound(_("This is none of the session's contexts."))


def checked_all(workspace: Workspace, paths: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(_checked(workspace, path) for path in paths))
    if len(found) > MOST:
        raise Invalid.field(FIELD, _("At most %(most)d can be chosen.") % {"most": MOST})
    return found


def _checked(workspace: Workspace, given: str) -> str:
    """As it is kept: from the vault on, of a file the folder in which it lies."""
    if not is_storable(given) or len(given) > LONGEST:
        raise Invalid.field(FIELD, _("This is no path: it is too long, or holds what is no text."))
    names = [name for name in given.split("/") if name not in ("", ".")]
    vault = Path(workspace.vault_path)
    if given.startswith("/"):
        names = _below(vault, given)
    if ".." in names:
        raise OutsideVault.field(
            FIELD, _("A context is a folder in the vault: %(path)s is not.") % {"path": given}
        )
    found = _folder_of(vault, names)
    if found is not None:
        return "/".join(found) or ROOT
    raise Invalid.field(FIELD, _("There is no folder %(path)s in the vault.") % {"path": given})


def _below(vault: Path, given: str) -> list[str]:
    try:
        return [*Path(given).relative_to(vault).parts]
    except ValueError:
        return [".."]


def _folder_of(vault: Path, names: list[str]) -> list[str] | None:
    """The folder itself, or the one that a file lies in; through no link."""
    try:
        with Folder.at(vault) as root, root.below(*names[:-1]) as folder:
            found = folder.look(names[-1]) if names else None
    except (OSError, ValueError):
        return None
    if found is None:
        return None if names else []
    is_folder, is_file = stat.S_ISDIR(found.st_mode), stat.S_ISREG(found.st_mode)
    return names if is_folder else names[:-1] if is_file else None
