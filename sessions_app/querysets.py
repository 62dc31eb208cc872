from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Exists, OuterRef, Q

if TYPE_CHECKING:
    from sessions_app.access.caller import Caller
    from sessions_app.access.models import Role

# What apps above know to be on its way to a session: conditions on `OuterRef("pk")`, registered in their
# `ready()`.
in_flight: list[Callable[[], Exists]] = []


def seen_by(caller: Caller, through: str = "", roles: tuple[Role, ...] = ()) -> Q:
    """Whose a chat is, said once: the condition that a session is in a workspace of this caller, and theirs
    or shared there. What hangs on a session is read through it: `through` is the path to the session."""
    at = f"{through}__" if through else ""
    return caller.within(f"{at}workspace", roles) & is_theirs_or_shared(caller, through)


def is_theirs_or_shared(caller: Caller, through: str = "") -> Q:
    """The half of it for rows that have their workspace by themselves."""
    from sessions_app.models.session import Visibility

    at = f"{through}__" if through else ""
    if (there := caller.on_phone) is not None:
        return Q(**{f"{at}source": there.platform, f"{at}bot_chat": there.chat})
    return Q(**{f"{at}visibility": Visibility.WORKSPACE}) | Q(**{f"{at}created_by": caller.user_id})


class SessionQuerySet(models.QuerySet[Any]):
    def visible_to(self, caller: Caller) -> SessionQuerySet:
        return self.filter(seen_by(caller))

    def writable_by(self, caller: Caller) -> SessionQuerySet:
        from sessions_app.access.caller import MAY_WRITE

        return self.filter(seen_by(caller, roles=MAY_WRITE))

    def told(self) -> SessionQuerySet:
        """With all that a list or an answer says of a session, in one query."""
        return (
            self.with_activity()
            .select_related("workspace", "created_by", "continued_from")
            .prefetch_related("labels")
        )

    def with_activity(self) -> SessionQuerySet:
        """Adds `is_active`, `is_waiting` and `is_attentive`, from which a session's `activity` is told."""
        from sessions_app.models.session import LIVE, Session
        from sessions_app.models.turn import Turn, TurnStatus

        turns = Turn.objects.filter(session=OuterRef("pk"))
        children = Session.objects.filter(parent=OuterRef("pk"), status__in=LIVE)
        found: SessionQuerySet = self.annotate(
            is_active=Exists(turns.filter(status__in=(TurnStatus.QUEUED, TurnStatus.RUNNING))),
            is_waiting=Exists(turns.filter(status=TurnStatus.WAITING)),
            is_attentive=reduce(or_, (Q(each()) for each in in_flight), Q(Exists(children))),
        )
        return found


class TurnQuerySet(models.QuerySet[Any]):
    def active(self) -> TurnQuerySet:
        from sessions_app.models.turn import ACTIVE

        return self.filter(status__in=ACTIVE)

    def open(self) -> TurnQuerySet:
        from sessions_app.models.turn import OPEN

        return self.filter(status__in=OPEN)

    def over(self) -> TurnQuerySet:
        from sessions_app.models.turn import OVER

        return self.filter(status__in=OVER)


class EventQuerySet(models.QuerySet[Any]):
    def after(self, session_id: UUID, seq: int) -> EventQuerySet:
        return self.filter(session_id=session_id, seq__gt=seq).order_by("seq")
