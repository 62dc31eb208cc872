"""What agents hand to people. The only writer of shares, and of what an agent says of itself."""

from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.orchestration.models import LONGEST_TITLE, Share, ShareKind
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import AlreadyDecided, Forbidden, Invalid, NotFound, RateLimited
from sessions_app.models import EventType, Session, Turn
from sessions_app.storable import is_storable, seen
from sessions_app.streaming.log import record

LONGEST_BODY = 50_000
LONGEST_STATUS = 200
LONGEST_MESSAGE = 2_000
MOST_A_TURN = 20
MOST = 500

_BEGINNINGS = {
    "needs human review": ShareKind.REVIEW,
    "needs cancellation": ShareKind.CANCELLATION,
    "post-mortem": ShareKind.POST_MORTEM,
}


def kind_of(title: str) -> ShareKind:
    begins = title.partition(":")[0].strip().lower() if ":" in title else ""
    return _BEGINNINGS.get(begins, ShareKind.REPORT)


@transaction.atomic
def share(session_id: UUID, use: str, title: str, body: str) -> Share:
    _check("title", title, LONGEST_TITLE)
    if body:
        _check("body", body, LONGEST_BODY)
    turn = _turn(session_id)
    session = Session.objects.select_for_update().get(pk=session_id)
    told = session.events.filter(turn=turn, type=EventType.AGENT_SHARE)
    if turn is not None and told.count() >= MOST_A_TURN:
        raise RateLimited(
            _("You have shared %(most)d things in this turn. Put the rest into one.") % {"most": MOST_A_TURN}
        )
    try:
        with transaction.atomic():
            made: Share = Share.objects.create(
                workspace_id=session.workspace_id,
                session=session,
                tool_use_id=use[:100],
                kind=kind_of(title),
                title=title.strip(),
                body=body,
            )
    except IntegrityError:
        return Share.objects.get(session=session, tool_use_id=use[:100])
    payload = {"shareId": str(made.pk), "title": made.title, "body": body, "kind": str(made.kind)}
    record(session_id, EventType.AGENT_SHARE, payload, turn_id=turn.pk if turn else None)
    return made


@transaction.atomic
def say_status(session_id: UUID, status: str, message: str) -> None:
    _check("status", status, LONGEST_STATUS)
    if message:
        _check("message", message, LONGEST_MESSAGE)
    turn = _turn(session_id)
    payload = {"status": status, "message": message or None}
    record(session_id, EventType.AGENT_STATUS, payload, turn_id=turn.pk if turn else None)


def _turn(session_id: UUID) -> Turn | None:
    """Locked: no row of it comes after its last."""
    turn: Turn | None = Turn.objects.active().filter(session=session_id).select_for_update().first()
    return turn


def shares(caller: Caller, slug: str) -> list[Share]:
    workspace = Workspace.objects.visible_to(caller).filter(slug=slug).first()
    if workspace is None:
        raise NotFound
    found = Share.objects.visible_to(caller).filter(workspace=workspace)
    return list(found.select_related("session", "resolved_by", "workspace")[:MOST])


def resolve(caller: Caller, slug: str, share_id: UUID) -> Share:
    found = Share.objects.visible_to(caller).filter(pk=share_id, workspace__slug=slug)
    if not found.exists():
        raise NotFound
    if not Workspace.objects.filter(caller.within("", MAY_WRITE), slug=slug).exists():
        raise Forbidden(
            _("You may read here, and resolve nothing. An owner of the workspace can change that.")
        )
    is_open = Share.objects.filter(pk=share_id, resolved_at=None)
    if is_open.update(resolved_at=timezone.now(), resolved_by_id=caller.user_id) != 1:
        raise AlreadyDecided(_("Somebody has resolved this already."))
    resolved: Share = found.select_related("session", "resolved_by", "workspace").get()
    return resolved


def count_needing(caller: Caller) -> int:
    return Share.objects.visible_to(caller).needing().count()


def _check(field: str, text: str, longest: int) -> None:
    if not seen(text) or not is_storable(text):
        raise Invalid.field(field, _("It is empty, or holds a character that is no text."))
    if len(text) > longest:
        most = {"length": f"{len(text):,}", "most": f"{longest:,}"}
        raise Invalid.field(field, _("It has %(length)s characters; at most %(most)s are taken.") % most)
