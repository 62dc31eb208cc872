"""Whether a session acts without asking, as far as that can be said before a turn runs: behind which wall it
comes then is found out when it does."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents_app.sandboxes import walls
from permissions_app import audit
from permissions_app.audit import AuditKind, Entry, Outcome
from permissions_app.session_permissions import acts_unwalled, acts_without_asking, with_trust_mode
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.errors import Forbidden, Invalid
from sessions_app.models import Session, SessionKind
from sessions_app.models.session import OF_BOTS

TOOL = "permissions"


def is_somebodys(session: Session) -> bool:
    """Nobody sits beside a schedule or a child, and to a bot anybody may have spoken."""
    is_on_phone = session.source in OF_BOTS
    return session.parent_id is None and session.kind == SessionKind.WORKER and not is_on_phone


def acts(session: Session) -> bool:
    may_act = walls.stands(session.trust_level) or acts_unwalled(session.metadata)
    return acts_without_asking(session.metadata) and may_act and is_somebodys(session)


@transaction.atomic
def let_act(caller: Caller, session_id: UUID) -> Session:
    """From the next call on; the wall opens with the next process, and what it keeps closed until then the
    server writes."""
    session = services.locked(caller, session_id)
    is_walled = walls.stands(session.trust_level)
    if not is_somebodys(session):
        raise Invalid.field("trustMode", _("Nobody sits beside this session, so it asks. Grant it patterns."))
    if not is_walled and not caller.is_operator:
        raise Forbidden(
            _("No wall stands around this session, so only an operator may let it act by itself.")
        )
    wanted = with_trust_mode(session.metadata, unwalled=not is_walled)
    if wanted != session.metadata:
        record(caller, session, Outcome.GRANTED, {"trustMode": True})
    return services.change(session, {"metadata": wanted})


def record(caller: Caller, session: Session, outcome: Outcome, rights: Mapping[str, Any]) -> None:
    """That a person gave a session these rights, or took them away."""
    entry = Entry(
        kind=AuditKind.GRANT,
        outcome=outcome,
        who=caller.name,
        workspace_id=session.workspace_id,
        session_id=session.pk,
        tool=TOOL,
        arguments=rights,
    )
    audit.record_on_commit(entry)
