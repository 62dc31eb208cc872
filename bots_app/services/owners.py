"""Who decides about others, and that it is written down: what they decided, and who had no right to."""

from typing import NoReturn

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from bots_app.models import BotUser, PairingRequest
from permissions_app import audit
from permissions_app.audit import AuditKind, Entry, Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Role, Workspace
from sessions_app.errors import Forbidden

TOOL = "bots"


def owned_by(caller: Caller) -> QuerySet[Workspace]:
    """Where they may let somebody in."""
    own: QuerySet[Workspace] = Workspace.objects.filter(
        caller.within(roles=(Role.OWNER,)), archived_at=None
    ).distinct()
    return own


def note(caller: Caller, outcome: Outcome, about: PairingRequest | BotUser, workspace_id: int) -> None:
    account = about.platform_user_id
    audit.record_on_commit(_entry(caller, outcome, about.platform, account, workspace_id))


def refuse(caller: Caller, platform: str, account: str, workspace_id: int | None) -> NoReturn:
    audit.record(_entry(caller, Outcome.DENIED, platform, account, workspace_id, rule="not_an_owner"))
    raise Forbidden(_("Only an owner of a workspace lets people into it, or turns them away."))


def _entry(
    caller: Caller, outcome: Outcome, platform: str, account: str, workspace_id: int | None, rule: str = ""
) -> Entry:
    return Entry(
        kind=AuditKind.GRANT,
        outcome=outcome,
        who=caller.name,
        workspace_id=workspace_id,
        tool=TOOL,
        arguments={"platform": platform, "account": account},
        rule=rule,
    )
