"""Who decides about others, and that it is written down: what they decided, and who had no right to."""

from collections.abc import Mapping
from typing import Any, NoReturn

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from bots_app.models import BotUser, PairingRequest
from permissions_app import audit
from permissions_app.audit import AuditKind, Entry, Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Role, Workspace
from sessions_app.errors import Forbidden, NotFound

TOOL = "bots"


def owned_by(caller: Caller) -> QuerySet[Workspace]:
    """Where they may let somebody in."""
    own: QuerySet[Workspace] = Workspace.objects.filter(
        caller.within(roles=(Role.OWNER,)), archived_at=None
    ).distinct()
    return own


def known(caller: Caller, platform: str, platform_user_id: str) -> BotUser:
    """Who is let in, where the caller is too."""
    found = BotUser.objects.filter(platform=platform, platform_user_id=platform_user_id, revoked_at=None)
    user = found.filter(caller.within("workspace")).select_related("workspace", "direct").first()
    if user is None:
        raise NotFound(_("Nobody of that name is let in."))
    return user


def note(
    caller: Caller,
    outcome: Outcome,
    about: PairingRequest | BotUser,
    workspace_id: int,
    changed: Mapping[str, str] | None = None,
) -> None:
    told = {**_account(about.platform, about.platform_user_id), **({"changed": changed} if changed else {})}
    audit.record_on_commit(_entry(caller, outcome, workspace_id, told))


def refuse(caller: Caller, platform: str, account: str, workspace_id: int | None) -> NoReturn:
    told = _account(platform, account)
    audit.record(_entry(caller, Outcome.DENIED, workspace_id, told, rule="not_an_owner"))
    raise Forbidden(_("Only an owner of a workspace lets people into it, or turns them away."))


def _account(platform: str, account: str) -> dict[str, str]:
    return {"platform": platform, "account": account}


def _entry(
    caller: Caller, outcome: Outcome, workspace_id: int | None, told: Mapping[str, Any], rule: str = ""
) -> Entry:
    return Entry(
        kind=AuditKind.GRANT,
        outcome=outcome,
        who=caller.name,
        workspace_id=workspace_id,
        tool=TOOL,
        arguments=told,
        rule=rule,
    )
