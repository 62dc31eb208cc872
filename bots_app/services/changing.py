"""What somebody who was let in may have from now on: it counts from what is said next."""

from typing import Any
from uuid import uuid4

from django.db import transaction
from django.utils.translation import gettext as _

from bots_app.models import BotChat, BotUser
from bots_app.services import pairing, saying
from bots_app.services.owners import known, note, owned_by, refuse
from bots_app.services.places import hold
from permissions_app.audit import Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace

ANOTHER = "What you reach here was changed. A new chat begins with what you say next."
REACH = frozenset({"trust_level", "agent"})  # what a chat has from its beginning on


def change(caller: Caller, platform: str, platform_user_id: str, wanted: dict[str, Any]) -> BotUser:
    """`wanted` is of the columns `trust_level`, `agent`, `expires_at`, `messages_per_day`; what is not in it
    stays. The workspace does too: into another one somebody is let in anew."""
    user = known(caller, platform, platform_user_id)
    if not owned_by(caller).filter(pk=user.workspace_id).exists():
        refuse(caller, platform, platform_user_id, user.workspace_id)
    with transaction.atomic():
        hold(user.direct_id)
        there = BotUser.objects.select_for_update().get(pk=user.pk)
        changed = {name: value for name, value in wanted.items() if getattr(there, name) != value}
        _check(user.workspace, changed)
        if changed and BotUser.objects.filter(pk=user.pk, revoked_at=None).update(**changed):
            if REACH & changed.keys():
                _begin_anew(user)
            told = {name: str(value) for name, value in changed.items()}
            note(caller, Outcome.GRANTED, user, user.workspace_id, told)
    return known(caller, platform, platform_user_id)


def _check(workspace: Workspace, changed: dict[str, Any]) -> None:
    """Not what stays: an agent whose file is away for a while hinders nobody who says how long."""
    if "trust_level" in changed:
        pairing.check_trust_level(workspace, changed["trust_level"])
    pairing.check_until(changed.get("expires_at"))
    pairing.check_agent(workspace, changed.get("agent", ""))


def _begin_anew(user: BotUser) -> None:
    if user.direct is not None:
        BotChat.objects.filter(pk=user.direct.pk).update(session=None)
        saying.notice(user.direct, f"changed:{user.pk}:{uuid4().hex}", _(ANOTHER))
