"""What is done here when something happens, in an app below or here. It is part of the same transaction."""

from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from agents_app.orchestration import waking
from agents_app.schedules import services as schedules
from agents_app.signals import rights_accepted, turn_finished
from agents_app.turns.said import tickets
from permissions_app.models import GrantRequest, ToolRequest
from permissions_app.signals import grant_decided, granted_late
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Turn


@receiver(granted_late)
def tell_agent(request: ToolRequest, caller: Caller, **_: Any) -> None:
    tickets.open_turn(request, caller)


@receiver(grant_decided)
def tell_who_asked(request: GrantRequest, **_: Any) -> None:
    tickets.tell_grant(request)


@receiver(rights_accepted)
def keep_times(workspace: Workspace, **_: Any) -> None:
    """At once: whoever has accepted looks for when it runs. Where this fails the sweep does it."""
    transaction.on_commit(partial(schedules.sync_of, workspace), robust=True)


@receiver(turn_finished)
def wake_with_what_piled_up(turn: Turn, **_: Any) -> None:
    """After commit, and again until it was taken."""
    waking.settle(turn)
    waking.deliver(turn.session_id)
