"""Who sees a chat, in the words of its page."""

from dataclasses import dataclass

from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Membership, Workspace
from sessions_app.errors import Forbidden
from sessions_app.models import Session, SessionKind
from sessions_app.services import check_rules_over

MOST_NAMED = 8


@dataclass(frozen=True)
class Company:
    """Who else is in a workspace: whom a chat there is shared with."""

    slug: str
    name: str
    writers: list[str]
    readers: list[str]  # who only look on
    more: int

    @property
    def others(self) -> list[str]:
        return [*self.writers, *self.readers]


@dataclass(frozen=True)
class Sharing:
    """The switch "Share with this workspace" of one chat, or of one that begins."""

    is_on: bool
    is_offered: bool
    rules: bool  # over what becomes of the chat: its author, or an owner of its workspace
    companies: list[Company]


def sharing(caller: Caller, session: Session | None, workspaces: list[Workspace]) -> Sharing:
    if session is None:
        return Sharing(is_on=False, is_offered=True, rules=True, companies=_companies(caller, workspaces))
    rules = _rules(caller, session)
    can_be = (
        session.parent_id is None and session.created_by_id is not None and session.kind == SessionKind.WORKER
    )
    companies = _companies(caller, [session.workspace])
    return Sharing(session.is_shared, is_offered=rules and can_be, rules=rules, companies=companies)


def _rules(caller: Caller, session: Session) -> bool:
    try:
        check_rules_over(caller, session)
    except Forbidden:
        return False
    return True


def _companies(caller: Caller, workspaces: list[Workspace]) -> list[Company]:
    rows = Membership.objects.filter(workspace__in=workspaces, user__is_active=True)
    others = list(rows.exclude(user=caller.user_id).select_related("user").order_by("user__username"))
    return [_company(each, [one for one in others if one.workspace_id == each.pk]) for each in workspaces]


def _company(workspace: Workspace, others: list[Membership]) -> Company:
    named = others[:MOST_NAMED]
    return Company(
        slug=workspace.slug,
        name=workspace.name or workspace.slug,
        writers=[one.user.get_username() for one in named if one.role in MAY_WRITE],
        readers=[one.user.get_username() for one in named if one.role not in MAY_WRITE],
        more=len(others) - len(named),
    )
