"""Who knocks, and who lets them in.

An unknown account costs one row with its first messages, and one polite answer; then it is not heard until a
person has decided. Nothing of it reaches a model before.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.definitions.choosing import agent_for
from agents_app.rights.trust import is_above
from agents_app.sandboxes import walls
from bots_app.models import (
    BotChat,
    BotUser,
    PairingRequest,
    PairingStatus,
)
from bots_app.platforms.base import Incoming
from bots_app.services import people, saying
from bots_app.services.owners import note, owned_by, refuse
from bots_app.services.places import bind, chat_of
from permissions_app.audit import Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.errors import (
    AlreadyDecided,
    Invalid,
    NotFound,
    SandboxUnavailable,
    TrustTooHigh,
)
from sessions_app.models import SessionKind
from sessions_app.storable import storable

KEPT = 5  # messages
LONGEST_KEPT = 4_000  # characters of each
LONGEST_NAME = 200
EXPIRES_AFTER = timedelta(days=7)
PENDING_IN_A_CHAT = 3
PENDING_ON_A_PLATFORM = 200  # more accounts than anybody reads through
KEPT_FOR = timedelta(days=30)  # what was decided against
AGAIN_AFTER = timedelta(days=1)  # whoever was turned away is not heard for so long

KNOCKED = (
    "Hello. This bot answers to people it knows. I have passed your message on; you will hear from me when "
    "somebody has decided."
)
LET_IN = "You are let in. /help tells what I can do."
TURNED_AWAY = "Nobody let you in this time."


@dataclass(frozen=True)
class Approval:
    """With what somebody is let in. `seen`: how many of their messages the approver had read."""

    trust_level: str = TrustLevel.SANDBOXED
    workspace: str | None = None
    agent: str = ""
    expires_at: datetime | None = None
    messages_per_day: int | None = None
    seen: int = 1


def knock(platform: str, said: Incoming) -> None:
    """Kept messages are those of one account; what comes later than the fifth is not kept."""
    if not said.who.is_person or _keeps_one_more(platform, said):
        return
    if _is_turned_away(platform, said.who.user_id) or not _has_room(platform, said.place.chat_id):
        return
    try:
        with transaction.atomic():
            chat = chat_of(platform, said.place)
            request = PairingRequest.objects.create(
                platform=platform,
                platform_user_id=said.who.user_id,
                platform_user_display=storable(said.who.display)[:LONGEST_NAME],
                platform_chat_id=said.place.chat_id,
                chat=chat,
                messages=[_kept(said)],
                expires_at=timezone.now() + EXPIRES_AFTER,
            )
            saying.notice(chat, f"knocked:{request.pk}", _(KNOCKED), reply_to=said.message_id)
    except IntegrityError:
        _keeps_one_more(platform, said)  # two updates of one account met


def pending() -> QuerySet[PairingRequest]:
    return PairingRequest.objects.filter(status=PairingStatus.PENDING, expires_at__gt=timezone.now())


def approve(caller: Caller, request_id: UUID, wanted: Approval) -> PairingRequest:
    workspace = _own_workspace(caller, request_id, wanted.workspace)
    check_trust_level(workspace, wanted.trust_level)
    check_until(wanted.expires_at)
    check_agent(workspace, wanted.agent)
    with transaction.atomic():
        request = _resolved(
            caller,
            request_id,
            PairingStatus.APPROVED,
            approved_trust_level=wanted.trust_level,
            seen=max(1, min(wanted.seen, KEPT)),
            answers_at=timezone.now(),
        )
        user = _let_in(caller, request, workspace, wanted)
        PairingRequest.objects.filter(pk=request.pk).update(bot_user=user)
        if request.chat is not None:
            if request.chat.is_group:
                bind(request.chat, workspace)
            saying.notice(request.chat, f"approved:{request.pk}", _(LET_IN))
        note(caller, Outcome.GRANTED, request, workspace.pk)
    request.refresh_from_db()
    return request


def deny(caller: Caller, request_id: UUID) -> PairingRequest:
    workspace = _own_workspace(caller, request_id, None)
    with transaction.atomic():
        request = _resolved(caller, request_id, PairingStatus.DENIED)
        if request.chat is not None:
            saying.notice(request.chat, f"denied:{request.pk}", _(TURNED_AWAY))
        note(caller, Outcome.DENIED, request, workspace.pk)
    return request


@transaction.atomic
def change_group(caller: Caller, chat_id: int, trust_level: str) -> BotChat:
    """What a group may have counts for the chat that begins with what is said next."""
    chat = BotChat.objects.filter(pk=chat_id, workspace__isnull=False).select_related("workspace").first()
    if chat is None or chat.workspace is None or not owned_by(caller).filter(pk=chat.workspace.pk).exists():
        raise NotFound(_("There is no such group."))
    check_trust_level(chat.workspace, trust_level)
    BotChat.objects.filter(pk=chat.pk).update(trust_level=trust_level, session=None)
    return chat


def expire() -> int:
    """Those that nobody answered within a week."""
    now = timezone.now()
    late = PairingRequest.objects.filter(status=PairingStatus.PENDING, expires_at__lte=now)
    return late.update(status=PairingStatus.EXPIRED, resolved_at=now)


def sweep() -> None:
    """What was decided long ago, and the chats of those who never came in."""
    expire()
    long_ago = timezone.now() - KEPT_FOR
    over = PairingRequest.objects.filter(status__in=(PairingStatus.DENIED, PairingStatus.EXPIRED))
    over.filter(resolved_at__lt=long_ago).delete()
    known = BotUser.objects.exclude(direct=None).values("direct")
    idle = BotChat.objects.filter(session=None, workspace=None, pairing_requests=None, heard=None)
    idle.filter(created_at__lt=long_ago).exclude(pk__in=known).delete()


@transaction.atomic
def _keeps_one_more(platform: str, said: Incoming) -> bool:
    """Whether a request of theirs waits already; an update that comes twice is kept once."""
    expire()
    waiting = PairingRequest.objects.filter(
        platform=platform, platform_user_id=said.who.user_id, status=PairingStatus.PENDING
    )
    request = waiting.select_for_update().first()
    if request is None:
        return False
    known = {each["id"] for each in request.messages}
    if len(request.messages) < KEPT and said.message_id not in known:
        waiting.update(messages=[*request.messages, _kept(said)])
    return True


def _kept(said: Incoming) -> dict[str, str]:
    files = "".join(f"\n[{file.name}]" for file in said.files)
    return {"id": said.message_id, "text": storable(f"{said.text}{files}".strip())[:LONGEST_KEPT]}


def _is_turned_away(platform: str, platform_user_id: str) -> bool:
    lately = PairingRequest.objects.filter(
        platform=platform,
        platform_user_id=platform_user_id,
        status=PairingStatus.DENIED,
        resolved_at__gt=timezone.now() - AGAIN_AFTER,
    )
    return lately.exists()


def _has_room(platform: str, chat_id: str) -> bool:
    waiting = PairingRequest.objects.filter(platform=platform, status=PairingStatus.PENDING)
    in_chat = waiting.filter(platform_chat_id=chat_id).count()
    return in_chat < PENDING_IN_A_CHAT and waiting.count() < PENDING_ON_A_PLATFORM


def _own_workspace(caller: Caller, request_id: UUID, slug: str | None) -> Workspace:
    """Whoever owns none decides about nobody; that they tried is written down."""
    own = owned_by(caller)
    workspace = own.filter(slug=slug).first() if slug else own.first()
    if workspace is None:
        request = PairingRequest.objects.filter(pk=request_id).first()
        if request is None and own.exists():
            raise NotFound(_("There is no such request."))
        platform, account = (request.platform, request.platform_user_id) if request else ("", "")
        refuse(caller, platform, account, None)
    assert workspace is not None
    return workspace


def check_trust_level(workspace: Workspace, level: str) -> None:
    trust = TrustLevel(level)
    if trust == TrustLevel.FULL or is_above(trust, workspace.trust_floor):
        raise TrustTooHigh.field(
            "trustLevel", _("Nobody on a phone has that much here. Choose a narrower trust level.")
        )
    if not walls.seems_to_work(trust, workspace):
        raise SandboxUnavailable(
            _("“%(level)s” does not work on this machine; Settings say what to install for it.")
            % {"level": trust.label}
        )


def check_until(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid.field("expiresAt", _("This time is over."))


def check_agent(workspace: Workspace, slug: str) -> None:
    if slug:
        agent = agent_for(workspace, slug=slug, path=None)
        if agent.rights.kind == SessionKind.ORCHESTRATOR:
            raise Invalid.field(
                "agent", _("This agent runs by itself and takes no chat. Choose another one.")
            )


def _resolved(caller: Caller, request_id: UUID, status: PairingStatus, **more: Any) -> PairingRequest:
    moved = (
        pending()
        .filter(pk=request_id)
        .update(status=status, resolved_at=timezone.now(), resolved_by_id=caller.account_id, **more)
    )
    found = PairingRequest.objects.select_related("chat").filter(pk=request_id).first()
    if found is None:
        raise NotFound(_("There is no such request."))
    if not moved:
        raise AlreadyDecided(
            _("This is decided already: %(status)s.") % {"status": found.get_status_display()},
            status=found.status,
        )
    return found


def _let_in(caller: Caller, request: PairingRequest, workspace: Workspace, wanted: Approval) -> BotUser:
    """An account that came in by another way meanwhile is let in as it is wanted here; a person who may do
    nothing there by themselves, as a guest."""
    given = {
        "display": request.platform_user_display,
        "workspace": workspace,
        "agent": wanted.agent,
        "trust_level": wanted.trust_level,
        "approved_by_id": caller.account_id,
        "expires_at": wanted.expires_at,
        "messages_per_day": wanted.messages_per_day,
        "direct": request.chat if request.chat and not request.chat.is_group else None,
    }
    user, _made = BotUser.objects.update_or_create(
        platform=request.platform,
        platform_user_id=request.platform_user_id,
        revoked_at=None,
        defaults=given,
    )
    if not people.is_let_in(user):
        BotUser.objects.filter(pk=user.pk).update(user=None)
        BotChat.objects.filter(pk=user.direct_id or 0).update(session=None)
    return user
