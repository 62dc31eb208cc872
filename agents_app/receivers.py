"""What is done here when something happens in an app below. It is part of the same transaction."""

from typing import Any

from django.dispatch import receiver

from agents_app.turns.said import tickets
from permissions_app.models import ToolRequest
from permissions_app.signals import granted_late
from sessions_app.access.caller import Caller


@receiver(granted_late)
def tell_agent(request: ToolRequest, caller: Caller, **_: Any) -> None:
    tickets.open_turn(request, caller)
