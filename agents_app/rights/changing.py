"""What people change about a session, where its agent has a part in it: which model, behind which wall."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents_app.rights import acting
from agents_app.rights.allowed import allowed_model, check_trust
from agents_app.rights.trust import is_above, most_for
from permissions_app.audit import Outcome
from permissions_app.services.telling import ring_inboxes
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.errors import TrustTooHigh
from sessions_app.metadata import PERMISSIONS
from sessions_app.models import Session
from sessions_app.schemas import SessionChange


@transaction.atomic
def change(caller: Caller, session_id: UUID, order: SessionChange) -> Session:
    """A turn that runs goes on with the model and the wall that it began with; the next one has the new."""
    session = services.locked(caller, session_id)
    if order.model is not None:
        allowed_model(order.model)
    if order.trust_level is not None:
        _check_is_less(caller, session, order.trust_level)
    wanted = order.columns(session)
    if order.visibility is not None and services.change_visibility(caller, session, order.visibility):
        ring_inboxes(session.workspace_id)  # what is asked in it is another's to decide, or not any more
    if taken := _taken(session, wanted):
        acting.record(caller, session, Outcome.REVOKED, taken)
    return services.change(session, wanted)


def _taken(session: Session, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The rights that it has no more: for a person to read in the audit."""
    held = session.metadata[PERMISSIONS]
    kept = wanted.get("metadata", session.metadata)[PERMISSIONS]
    taken = {name: _gone(right, kept[name]) for name, right in held.items() if kept[name] != right}
    if wanted.get("trust_level", session.trust_level) != session.trust_level:
        taken["trustLevel"] = f"{session.trust_level}, now {wanted['trust_level']}"
    return taken


def _gone(held: Any, kept: Any) -> Any:
    is_part = isinstance(held, list) and isinstance(kept, list)
    return [each for each in held if each not in kept] if is_part else held


def _check_is_less(caller: Caller, session: Session, trust: str) -> None:
    """Trust in a conversation that has read who knows what is not given afterwards, only taken."""
    if is_above(trust, session.trust_level):
        raise TrustTooHigh(
            _("This session has %(level)s, and can only have less. Start a new one.")
            % {"level": session.trust_level}
        )
    if trust != session.trust_level:
        check_trust(caller, trust, most_for(session))
