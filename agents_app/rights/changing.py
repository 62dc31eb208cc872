"""What people change about a session, where its agent has a part in it: which model, behind which wall."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from agents_app.rights import acting
from agents_app.rights.allowed import allowed_model, check_trust
from agents_app.rights.trust import is_above, most_for
from agents_app.sandboxes import walls
from agents_app.turns.said.abort import stop
from permissions_app.audit import Outcome
from permissions_app.services.telling import ring_inboxes
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.access.models import TrustLevel
from sessions_app.errors import SandboxUnavailable, TrustTooHigh
from sessions_app.metadata import PERMISSIONS
from sessions_app.models import Message, Session, Turn
from sessions_app.models.session import Visibility
from sessions_app.schemas import SessionChange


@transaction.atomic
def change(caller: Caller, session_id: UUID, order: SessionChange) -> Session:
    """A turn that runs goes on with the model and the wall that it began with; the next one has the new."""
    session = services.locked(caller, session_id)
    if order.model is not None:
        allowed_model(order.model)
    if order.trust_level is not None and order.trust_level != session.trust_level:
        services.check_rules_over(caller, session)  # nobody can take it back
        _check_is_less(caller, session, order.trust_level)
    wanted = order.columns(session)
    if order.visibility is not None:
        _change_visibility(caller, session, order.visibility)
    if taken := _taken(session, wanted):
        acting.record(caller, session, Outcome.REVOKED, taken)
    return services.change(session, wanted)


def _change_visibility(caller: Caller, session: Session, visibility: str) -> None:
    changed = services.change_visibility(caller, session, visibility)
    if changed:
        ring_inboxes(session.workspace_id)  # what is asked in it is another's to decide, or not any more
    if visibility == Visibility.PRIVATE:
        for session_id in changed:
            transaction.on_commit(partial(_stop_what_others_said, session_id, caller), robust=True)


def _stop_what_others_said(session_id: UUID, caller: Caller) -> None:
    """Their words would be done with the rights of a chat that they do not see any more. In transactions of
    its own: a turn is locked before its session."""
    others = Message.objects.exclude(author=None).exclude(author=F("session__created_by"))
    turns = Turn.objects.open().filter(session=session_id, pk__in=others.values("turn"))
    for turn in turns:
        stop(turn, caller.name)


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
    check_trust(caller, trust, most_for(session))
    if not walls.seems_to_work(TrustLevel(trust), session.workspace):
        raise SandboxUnavailable(
            _("Nothing here can keep an agent in that. Settings say what to install for it.")
        )
