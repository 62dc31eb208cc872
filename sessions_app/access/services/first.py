"""What is there before anybody comes: a workspace, and an operator who owns it."""

from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.access.services.workspaces import checked_vault
from sessions_app.errors import Conflict, Forbidden

FIRST = "default"


@transaction.atomic
def first_workspace(vault: Path, *, vault_is_chosen: bool) -> Workspace:
    """The workspace `default`. A vault that the environment names wins over the one it had."""
    workspace, made = Workspace.objects.get_or_create(
        slug=FIRST, defaults={"name": "Default", "vault_path": str(vault)}
    )
    if not made and vault_is_chosen:
        Workspace.objects.filter(pk=workspace.pk).exclude(vault_path=str(vault)).update(vault_path=str(vault))
        workspace.refresh_from_db()
    return workspace


def first_vault() -> str:
    return Workspace.objects.values_list("vault_path", flat=True).get(slug=FIRST)


def choose_vault(caller: Caller, given: str) -> None:
    """The folder of the first workspace, as its operator names it in the page. It stays over restarts,
    unless the environment names another."""
    if not caller.is_operator or caller.key_id is not None:
        raise Forbidden(_("Only an operator chooses the folder, and only in the page."))
    if settings.PARACHUTE_VAULT_IS_CHOSEN:
        raise Conflict(_("The environment says which folder it is (VAULT_PATH)."))
    first = Workspace.objects.get(slug=FIRST)
    folder = checked_vault(given, besides=first.pk, name="path")
    Workspace.objects.filter(pk=first.pk).update(vault_path=folder)


@transaction.atomic
def first_admin(workspace: Workspace) -> User:
    """The oldest superuser, made where there is none, and owner of the first workspace."""
    users = get_user_model().objects
    admin = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if admin is None:
        admin = users.create_superuser(username=_free_name("admin"), password=None)
    Membership.objects.get_or_create(workspace=workspace, user=admin, defaults={"role": Role.OWNER})
    return admin


def _free_name(wanted: str) -> str:
    users = get_user_model().objects
    taken = set(users.filter(username__startswith=wanted).values_list("username", flat=True))
    return next(name for n in range(len(taken) + 1) if (name := f"{wanted}{n or ''}") not in taken)
