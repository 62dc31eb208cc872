"""What is done here when something happens in an app below. It is part of the same transaction."""

from typing import Any

from django.dispatch import receiver

from agents_app.orchestration import waking
from agents_app.signals import turn_finished
from agents_app.turns.said import tickets
from permissions_app.models import GrantRequest, ToolRequest
from permissions_app.signals import grant_decided, granted_late
from sessions_app.access.caller import Caller
from sessions_app.models import Turn


@receiver(granted_late)
def tell_agent(request: ToolRequest, caller: Caller, **_: Any) -> None:
    tickets.open_turn(request, caller)


@receiver(grant_decided)
def tell_who_asked(request: GrantRequest, **_: Any) -> None:
    tickets.tell_grant(request)


@receiver(turn_finished)
def wake_with_what_piled_up(turn: Turn, **_: Any) -> None:
    """After commit, and again until it was taken."""
    waking.settle(turn)
    waking.deliver(turn.session_id)
