"""The only writers of grant requests: an agent asks, a person decides, once."""

import re
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from permissions_app import audit
from permissions_app.audit import PLATFORM, AuditKind, Entry, Outcome
from permissions_app.frames import grant_asked, grant_end
from permissions_app.grants import rights
from permissions_app.grants.services import NewGrant, given
from permissions_app.models.grants import SLUG, GrantRequest, GrantRequestStatus, GrantScope, GrantType
from permissions_app.services.telling import ring_inboxes
from permissions_app.signals import grant_decided
from sessions_app.access.caller import Caller
from sessions_app.errors import AlreadyDecided, Invalid, NotFound, RateLimited
from sessions_app.models import Session
from sessions_app.storable import storable
from sessions_app.streaming import log

LONGEST_REASON = 1_000
MOST_PENDING = 20  # of a session


@transaction.atomic
def request_grant(
    session: Session, child: str, reason: str = "", *, turn_id: UUID | None = None
) -> GrantRequest:
    """An agent asks, out of one of its sessions. Asked again while it waits, it is the same request."""
    if child == session.agent_slug:
        raise Invalid.field("child_agent_id", _("An agent cannot start itself. Choose another one."))
    if re.fullmatch(SLUG, child) is None:
        raise Invalid.field("child_agent_id", _("This is no name of an agent."))
    named = {
        "workspace_id": session.workspace_id,
        "session": session,
        "agent": session.agent_slug,
        "grant_type": GrantType.SPAWN,
        "child_agent": child,
    }
    pending = GrantRequest.objects.filter(session=session, status=GrantRequestStatus.PENDING)
    if pending.exclude(child_agent=child).count() >= MOST_PENDING:
        raise RateLimited(
            _("Too many requests of this session wait for a person. Ask again when some are decided.")
        )
    try:
        with transaction.atomic():
            asked: GrantRequest = GrantRequest.objects.create(
                **named, reason=storable(reason)[:LONGEST_REASON]
            )
    except IntegrityError:
        there = GrantRequest.objects.filter(**named, status=GrantRequestStatus.PENDING).first()
        if there is None:
            raise
        return there  # type: ignore[no-any-return]
    log.record(session.pk, *grant_asked(asked), turn_id=turn_id)
    ring_inboxes(asked.workspace_id)
    _record(PLATFORM, asked, AuditKind.REQUEST, Outcome.ASKED)
    return asked


@transaction.atomic
def decide_request(caller: Caller, slug: str, request_id: UUID, scope: GrantScope | None) -> GrantRequest:
    """Approves with a scope, denies without one. Of several who decide at once, one does."""
    workspace = rights.workspace_of(caller, slug)
    asked = GrantRequest.objects.visible_to(caller).filter(workspace=workspace, pk=request_id).first()
    if asked is None:
        raise NotFound
    rights.check(caller, workspace, scope or GrantScope.SESSION)
    status = GrantRequestStatus.APPROVED if scope else GrantRequestStatus.DENIED
    pending = GrantRequest.objects.filter(pk=asked.pk, status=GrantRequestStatus.PENDING)
    if pending.update(status=status, decided_at=timezone.now(), decided_by_id=caller.user_id) != 1:
        raise AlreadyDecided(_("Somebody has decided this already."))
    if scope:
        _grant(caller, asked, scope)
    decided: GrantRequest = GrantRequest.objects.select_related("decided_by").get(pk=asked.pk)
    log.record(asked.session_id, *grant_end(decided))
    ring_inboxes(asked.workspace_id)
    grant_decided.send(sender=GrantRequest, request=decided)
    _record(caller.name, asked, AuditKind.ANSWER, Outcome.GRANTED if scope else Outcome.DENIED)
    return decided


def _grant(caller: Caller, asked: GrantRequest, scope: GrantScope) -> None:
    wanted = NewGrant(
        agent=asked.agent,
        child_agent=asked.child_agent,
        scope=scope,
        session_id=asked.session_id if scope == GrantScope.SESSION else None,
        grant_type=GrantType(asked.grant_type),
    )
    grant, _new = given(caller, asked.workspace, wanted)
    GrantRequest.objects.filter(pk=asked.pk).update(grant=grant)


def _record(who: str, asked: GrantRequest, kind: AuditKind, outcome: Outcome) -> None:
    entry = Entry(
        kind=kind,
        outcome=outcome,
        who=who,
        workspace_id=asked.workspace_id,
        session_id=asked.session_id,
        tool=f"grant:{asked.grant_type}",
        arguments={"agent": asked.agent, **asked.details, "request": str(asked.pk), "reason": asked.reason},
    )
    audit.record_on_commit(entry)
