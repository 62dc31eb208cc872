"""Workspaces: operators make them, because each opens a folder of the computer; their owners say what holds
in them. Deleted ones are archived first, and removed only by a second step."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.access.services.members import owned
from sessions_app.errors import Conflict, Forbidden, Invalid
from sessions_app.files import vaults

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_SLUG = 50
LONGEST_NAME = 200

Wanted = Mapping[str, Any]  # columns of Workspace


def create_workspace(caller: Caller, slug: str, wanted: Wanted) -> Workspace:
    """Its maker is its owner."""
    if not _may_open_folders(caller):
        raise Forbidden(_("Only an operator makes workspaces: each opens a folder of this computer."))
    if not SLUG.fullmatch(slug) or len(slug) > LONGEST_SLUG:
        said = _("Use small letters, digits and dashes, at most %(most)d.") % {"most": LONGEST_SLUG}
        raise Invalid.field("slug", said)
    columns = _checked(caller, wanted, besides=None)
    try:
        with transaction.atomic():
            made: Workspace = Workspace.objects.create(slug=slug, **{"name": slug, **columns})
            Membership.objects.create(workspace=made, user_id=caller.user_id, role=Role.OWNER)
    except IntegrityError as error:
        raise Conflict(_("There is a workspace %(slug)s already.") % {"slug": slug}) from error
    return made


@transaction.atomic
def change_workspace(caller: Caller, slug: str, wanted: Wanted) -> Workspace:
    workspace = owned(caller, slug)
    columns = _checked(caller, wanted, besides=workspace.pk)
    if columns:
        Workspace.objects.filter(pk=workspace.pk).update(**columns)
        workspace.refresh_from_db()
    return workspace


@transaction.atomic
def archive_workspace(caller: Caller, slug: str, *, archived: bool = True) -> Workspace:
    """What is in it stays to be read. Nothing is said in it any more."""
    workspace = owned(caller, slug)
    _keep_one(workspace)
    Workspace.objects.filter(pk=workspace.pk).update(archived_at=timezone.now() if archived else None)
    workspace.refresh_from_db()
    return workspace


@transaction.atomic
def remove_workspace(caller: Caller, slug: str) -> None:
    """The second step. The folder and what lies in it are a person's, and stay."""
    workspace = owned(caller, slug)
    if workspace.archived_at is None:
        raise Conflict(_("Archive this workspace first."))
    number = workspace.sessions.count()
    if number:
        said = _("%(n)d chats are still in it, private ones of others among them. Delete these first.")
        raise Conflict(said % {"n": number})
    workspace.delete()


def checked_vault(given: str, *, besides: int | None, name: str = "vaultPath") -> str:
    """A folder that can be a vault, and lies in none of another workspace's, nor around one."""
    try:
        folder = vaults.usable(given, home=Path(settings.PARACHUTE_HOME))
    except vaults.Unusable as error:
        raise Invalid.field(name, str(error)) from error
    place, way = folder.resolve(), _way_to(folder)
    for other in Workspace.objects.exclude(pk__in=[besides] if besides else []):
        theirs = Path(other.vault_path).resolve()
        if theirs.is_relative_to(place) or any(each.is_relative_to(theirs) for each in way):
            said = _("This folder and that of another workspace lie in each other. Choose another one.")
            raise Invalid.field(name, said)
    return str(folder)


def _way_to(folder: Path) -> list[Path]:
    """Where it lies, and where each link on the way to it lies: who can write there says where it leads."""
    return [folder.resolve(), *(each.parent.resolve() / each.name for each in (folder, *folder.parents))]


def _may_open_folders(caller: Caller) -> bool:
    """A key that is limited to workspaces is limited to their folders."""
    return caller.is_operator and caller.workspace_ids is None


def _checked(caller: Caller, wanted: Wanted, *, besides: int | None) -> dict[str, Any]:
    columns = dict(wanted)
    if "vault_path" in columns:
        if not _may_open_folders(caller):
            raise Forbidden(_("Only an operator chooses the folder of a workspace."))
        columns["vault_path"] = checked_vault(columns["vault_path"], besides=besides)
    if "name" in columns and not 0 < len(columns["name"].strip()) <= LONGEST_NAME:
        raise Invalid.field("name", _("Give it a name of 1 to %(most)d characters.") % {"most": LONGEST_NAME})
    if columns.get("time_zone"):
        _check_zone(columns["time_zone"])
    return columns


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        said = _("%(name)s is not a time zone, such as Europe/Berlin.") % {"name": repr(name[:64])}
        raise Invalid.field("timeZone", said) from error


def _keep_one(workspace: Workspace) -> None:
    """Where Parachute begins, and what `up` sets up."""
    from sessions_app.access.services.first import FIRST

    if workspace.slug == FIRST:
        raise Conflict(_("The first workspace stays: it is where Parachute begins."))
