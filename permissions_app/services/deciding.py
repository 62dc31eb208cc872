"""What people decide. Of several who do at once exactly one wins; the others are told that it is decided.

Locks are taken as workers take them: the turn where it is active, then the session, then the request. Who
stops a turn takes the first of them, so each answer comes before the stop, or is refused.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from permissions_app.models import RequestKind, RequestStatus, ToolRequest
from permissions_app.rules.patterns import is_host
from permissions_app.rules.setting import Patterns
from permissions_app.rules.suggestions import PatternScope, PermissionType, covers, with_pattern
from permissions_app.services.asked import GOOD_FOR
from permissions_app.services.telling import let_turn_go_on, tell_end
from permissions_app.session_permissions import call_of, patterns_of, setting_of, with_patterns
from permissions_app.signals import granted_late
from sessions_app import metadata, services
from sessions_app.access.caller import Caller
from sessions_app.errors import AlreadyDecided, Forbidden, Invalid, NotFound
from sessions_app.metadata import Metadata
from sessions_app.models import Session, Turn

MOST_PATTERNS = 100  # of a kind: they go with every page of a list

Answers = Mapping[str, str | list[str]]


@transaction.atomic
def grant(
    caller: Caller,
    request_id: UUID,
    *,
    pattern: str | None = None,
    scope: PatternScope | None = None,
    session_id: UUID | None = None,
) -> ToolRequest:
    """Allows exactly this call, and with a pattern also what it covers, from now on and in this session
    alone. One that comes late is kept for the next time that exactly this call is made."""
    request, session, turn = _locked(caller, request_id, session_id)
    _check_kind(request, RequestKind.APPROVAL)
    check_may_decide(caller, request)
    chosen, wanted = _chosen(request, pattern, scope)
    by = {**_by(caller), "pattern": wanted, "scope": chosen}
    is_late = _decided(request, RequestStatus.GRANTED, by)
    patterns = _widened(session, request, wanted) if wanted else None
    _tell(request, turn)
    if patterns is not None and turn is not None:
        _grant_what_is_covered(request, session, patterns, by, turn)
    if is_late:
        granted_late.send(sender=ToolRequest, request=request, caller=caller)
    return request


@transaction.atomic
def deny(
    caller: Caller, request_id: UUID, *, reason: str = "", session_id: UUID | None = None
) -> ToolRequest:
    """One that comes late turns its ticket down: the agent was told "not now", and is told no more."""
    request, _session, turn = _locked(caller, request_id, session_id)
    _check_kind(request, RequestKind.APPROVAL)
    check_may_decide(caller, request)
    _decided(request, RequestStatus.DENIED, {**_by(caller), "reason": reason})
    _tell(request, turn)
    return request


@transaction.atomic
def answer(
    caller: Caller, request_id: UUID, answers: Answers, *, session_id: UUID | None = None
) -> ToolRequest:
    request, _session, turn = _locked(caller, request_id, session_id)
    _check_kind(request, RequestKind.QUESTION)
    check_may_decide(caller, request)
    asked = {each.get("question") for each in request.input["questions"]}
    for text in answers:
        if text not in asked:
            raise Invalid.field("answers", _("It answers a question that was not asked."))
    _move(request, RequestStatus.PENDING, RequestStatus.ANSWERED, {**_by(caller), "answers": dict(answers)})
    _tell(request, turn)
    return request


def found(caller: Caller, request_id: UUID, session_id: UUID | None = None) -> ToolRequest:
    visible = ToolRequest.objects.visible_to(caller).filter(pk=request_id)
    if session_id is not None:
        visible = visible.filter(session=session_id)
    request: ToolRequest | None = visible.first()
    if request is None:
        raise NotFound(_("There is no such request, or you may not see it."))
    return request


def check_may_decide(caller: Caller, request: ToolRequest) -> None:
    """An answer to a question too tells an agent what to do."""
    if request.on_host and not caller.is_operator:
        raise Forbidden(_("No wall stands around this session, so only an operator decides what it does."))


def already_decided(request: ToolRequest) -> AlreadyDecided:
    return AlreadyDecided(
        _("This is decided already: %(status)s.") % {"status": request.get_status_display()},
        status=request.status,
    )


def _locked(
    caller: Caller, request_id: UUID, session_id: UUID | None
) -> tuple[ToolRequest, Session, Turn | None]:
    request = found(caller, request_id, session_id)
    turn: Turn | None = Turn.objects.active().select_for_update().filter(pk=request.turn_id).first()
    session = services.locked(caller, request.session_id)
    request = found(caller, request_id)
    if turn is not None and turn.abort_requested_at and request.status == RequestStatus.PENDING:
        raise AlreadyDecided(
            _("This is not decided any more: its turn is being stopped."), status=RequestStatus.ABORTED
        )
    return request, session, turn


def _check_kind(request: ToolRequest, kind: RequestKind) -> None:
    if request.kind == kind:
        return
    if request.is_question:
        where = {"path": f"/api/chat/{request.session_id}/answer"}
        why = _("This is a question: it is neither allowed nor denied. Send an answer to %(path)s.") % where
    else:
        why = _("This is no question: it takes no answer. Allow or deny it.")
    raise Invalid.field("requestId", why)


def _chosen(
    request: ToolRequest, pattern: str | None, scope: PatternScope | None
) -> tuple[PatternScope, str]:
    """What is given may leave out one of the two; what was suggested has both. Where they disagree, the
    pattern counts, because it is what the session may do: the scope that is recorded is the pattern's own."""
    suggested = [(PatternScope(each["scope"]), each["pattern"]) for each in request.suggested_grants]
    if not pattern and scope in (None, PatternScope.ONCE):
        return PatternScope.ONCE, ""
    for known_scope, known_pattern in suggested:
        if pattern in (None, known_pattern) and scope in (None, known_scope):
            return known_scope, known_pattern
    if not pattern:
        raise Invalid.field("scope", _("This was not suggested. Choose another, or give a pattern."))
    if scope is PatternScope.ONCE:
        raise Invalid.field("scope", _("What is allowed once has no pattern. Leave one of the two out."))
    pattern = pattern.strip() or pattern
    return _scope_of(request, pattern), pattern


def _scope_of(request: ToolRequest, pattern: str) -> PatternScope:
    if request.permission_type == PermissionType.BASH:
        return PatternScope.COMMAND
    if is_host(pattern):
        return PatternScope.FOLDER  # as pages of a host are suggested
    *folders, name = pattern.rstrip("/").split("/")
    if pattern.endswith("/") or name == "**" or any("*" in each for each in folders):
        return PatternScope.RECURSIVE if [*folders, name][0].strip("*") else PatternScope.VAULT
    return PatternScope.FOLDER if "*" in name else PatternScope.FILE


def _decided(request: ToolRequest, status: RequestStatus, by: dict[str, Any]) -> bool:
    """Whether it is late: then the agent has been told "not now"."""
    is_late = request.status == RequestStatus.EXPIRED and _is_fresh(request)
    before = RequestStatus.EXPIRED if is_late else RequestStatus.PENDING
    _move(request, before, status, by)
    return is_late


def _is_fresh(request: ToolRequest) -> bool:
    return request.decided_at is not None and request.decided_at >= timezone.now() - GOOD_FOR


def _move(request: ToolRequest, before: str, status: RequestStatus, fields: dict[str, Any]) -> None:
    same = ToolRequest.objects.filter(pk=request.pk, status=before)
    if before == RequestStatus.PENDING:  # in time, also where nobody has looked at its clock
        fields = {**fields, "expires_at": Greatest("expires_at", fields["decided_at"])}
    if same.update(status=status, **fields) != 1:
        raise already_decided(request)
    request.refresh_from_db()


def _by(caller: Caller) -> dict[str, Any]:
    return {"decided_by_id": caller.user_id, "decided_as": caller.name, "decided_at": timezone.now()}


def _tell(request: ToolRequest, turn: Turn | None) -> None:
    """After its turn's end no row of that turn may follow: then it is told of the session."""
    tell_end(request, turn.pk if turn else None)
    if turn is not None:
        let_turn_go_on(turn.pk)


def _widened(session: Session, request: ToolRequest, pattern: str) -> Patterns:
    kind = PermissionType(request.permission_type)
    try:
        patterns = with_pattern(patterns_of(session.metadata), kind, pattern)
    except ValueError as refusal:  # with a sentence for a person
        raise Invalid.field("pattern", str(refusal)) from refusal
    if covers(call_of(request), setting_of(request, session, patterns)) is None:
        raise Invalid.field("pattern", _("This pattern does not cover what was asked. Choose one that does."))
    widened = with_patterns(session.metadata, patterns)
    _check_room(patterns, widened, session.metadata)
    services.change(session, {"metadata": widened})
    return patterns


def _check_room(patterns: Patterns, widened: Metadata, held: Metadata) -> None:
    try:
        metadata.check(widened, held)
        has_room = max(map(len, (patterns.read, patterns.write, patterns.bash))) <= MOST_PATTERNS
    except Invalid:
        has_room = False
    if not has_room:
        raise Invalid.field("pattern", _("This session has too many. Take some away, or choose a wider one."))


def _grant_what_is_covered(
    request: ToolRequest, session: Session, patterns: Patterns, by: dict[str, Any], turn: Turn
) -> None:
    """A card that stands for several is answered for all that its pattern covers."""
    same = ToolRequest.objects.pending().filter(turn=turn, subject=request.subject, kind=request.kind)
    for other in same:
        if covers(call_of(other), setting_of(other, session, patterns)) is not None:
            _move(other, RequestStatus.PENDING, RequestStatus.GRANTED, by)
            _tell(other, turn)
