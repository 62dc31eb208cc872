"""What people change about a session. Each change and the row that tells of it are one transaction."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from sessions_app.access.caller import Caller
from sessions_app.access.models import Role, Workspace
from sessions_app.errors import Forbidden, Invalid, NotFound
from sessions_app.metadata import SUMMARY_SOURCE
from sessions_app.models import EventType, Session, SessionKind, TitleSource
from sessions_app.reading import listed
from sessions_app.streaming.log import record

WIRE = {  # the columns that can change, as Session calls them
    "title": "title",
    "title_source": "titleSource",
    "summary": "summary",
    "model": "model",
    "trust_level": "trustLevel",
    "metadata": "metadata",
    "archived": "archived",
    "visibility": "visibility",
}


def locked(caller: Caller, session_id: UUID) -> Session:
    """The session, for whoever may write there, and nobody else changes it before the transaction is over.
    Its key is left open: PostgreSQL looks at that when a change of one of its children is committed, and
    whoever goes on to the children would wait for that one, and that one for them."""
    check_writable(caller, session_id)
    found = Session.objects.filter(pk=session_id).select_for_update(of=("self",), no_key=True)
    session: Session | None = found.select_related("workspace").first()
    if session is None:
        raise NotFound
    return session


def check_writable(caller: Caller, session_id: UUID) -> None:
    if Session.objects.writable_by(caller).filter(pk=session_id).exists():
        return
    if Session.objects.visible_to(caller).filter(pk=session_id).exists():
        raise Forbidden(
            _("You may read here, and change nothing. An owner of the workspace can change that.")
        )
    raise NotFound


def change(session: Session, wanted: dict[str, Any]) -> Session:
    """Of a session that is `locked`: writes the columns that are to be another. Where none is, there is no
    row. The answer is the session as a list shows it."""
    if "title" in wanted:
        wanted = {**wanted, "title_source": TitleSource.USER}
    if wanted.get("summary", session.summary) != session.summary:
        kept = wanted.get("metadata", session.metadata)
        wanted = {**wanted, "metadata": {**kept, SUMMARY_SOURCE: TitleSource.USER}}
    changed = {name: value for name, value in wanted.items() if getattr(session, name) != value}
    if changed:
        Session.objects.filter(pk=session.pk).update(**changed)
        told = {WIRE[name]: value for name, value in changed.items()}
        record(session.pk, EventType.SESSION_UPDATED, told)
    return listed(session.pk)


def check_rules_over(caller: Caller, session: Session) -> None:
    """Raises Forbidden. Others write in a shared chat; what becomes of it is its author's to say, or an
    owner's of its workspace."""
    if session.created_by_id == caller.user_id:
        return
    owned = Workspace.objects.filter(caller.within(roles=(Role.OWNER,)), pk=session.workspace_id)
    if not owned.exists():
        raise Forbidden(
            _(
                "Only who began this chat, or an owner of its workspace, may archive, delete, share or "
                "unshare it."
            )
        )


def change_visibility(caller: Caller, session: Session, visibility: str) -> list[UUID]:
    """Of a session that is `locked`, and of those that it started, which are told of too. Whoever may not see
    them any more is closed out by the row. The answer names all that changed."""
    if session.visibility == visibility:
        return []
    check_rules_over(caller, session)
    if session.parent_id is not None:
        raise Invalid.field("visibility", _("This chat was started by another one. Share or unshare that."))
    if session.created_by_id is None or session.kind != SessionKind.WORKER:
        raise Invalid.field("visibility", _("What Parachute itself started is its workspace's."))
    family = [session.pk, *_descendants(session.pk)]
    for pk in family:
        if Session.objects.filter(pk=pk).exclude(visibility=visibility).update(visibility=visibility):
            record(pk, EventType.SESSION_UPDATED, {"visibility": visibility})
    return family


def _descendants(session_id: UUID) -> list[UUID]:
    found: list[UUID] = []
    above = [session_id]
    while above:
        above = list(Session.objects.filter(parent__in=above).order_by("pk").values_list("pk", flat=True))
        found += above
    return found


@transaction.atomic
def archive(caller: Caller, session_id: UUID, *, archived: bool = True) -> Session:
    session = locked(caller, session_id)
    check_rules_over(caller, session)
    return change(session, {"archived": archived})


@transaction.atomic
def archive_newest(caller: Caller) -> Session:
    """Of those that the caller began."""
    own = Session.objects.visible_to(caller).filter(created_by=caller.user_id, archived=False, parent=None)
    newest = own.order_by("-last_accessed", "-pk").values_list("pk", flat=True).first()
    if newest is None:
        raise NotFound(_("You have no chat that could be archived."))
    return archive(caller, newest)
