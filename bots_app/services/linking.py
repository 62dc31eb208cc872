"""Whose an account of a platform is: somebody who is signed in here gets a word, and says it to the bot."""

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from bots_app.models import (
    Bot,
    BotChat,
    BotState,
    BotUser,
    LinkCode,
    PairingRequest,
    PairingStatus,
    PlatformName,
)
from bots_app.platforms.base import Incoming
from bots_app.services import saying
from bots_app.services.places import chat_of, hold, usual_trust
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace, digest
from sessions_app.access.services import caller_of_user
from sessions_app.errors import Forbidden
from sessions_app.storable import storable

LIVES = timedelta(minutes=10)
LONGEST_READ = 4_096  # characters in which a word is looked for
SAID = re.compile(r"\s*/(?:start|link)\s+([\w-]{20,64})\s*")
SOMEWHERE = re.compile(r"[\w-]{20,64}")


@dataclass(frozen=True)
class Link:
    code: str
    url: str  # where one press says it; empty where no bot runs that has such a link


def make(caller: Caller) -> Link:
    """For a person in their browser: who is linked decides with all their rights, and a key has its own."""
    if caller.key_id is not None:
        raise Forbidden(_("Link your account on the page of bots: a key cannot do it for you."))
    if not Workspace.objects.filter(caller.within(roles=MAY_WRITE), archived_at=None).exists():
        raise Forbidden(_("You write in no workspace yet. An owner of one can change that."))
    code = secrets.token_urlsafe(18)
    now = timezone.now()
    LinkCode.objects.filter(user=caller.user_id).delete()
    LinkCode.objects.create(user_id=caller.user_id, digest=digest(code), expires_at=now + LIVES)
    return Link(code, _url(code))


def is_code(text: str) -> bool:
    return SAID.fullmatch(text) is not None


def void(text: str) -> bool:
    """Where others read it, wherever it stands among other words."""
    digests = [digest(each) for each in SOMEWHERE.findall(text[:LONGEST_READ])]
    return bool(digests) and bool(LinkCode.objects.filter(digest__in=digests).update(used_at=timezone.now()))


@transaction.atomic
def use(platform: str, said: Incoming) -> bool:
    """Links the account, and lets it in where it was not: its person is in already."""
    found = SAID.fullmatch(said.text)
    good = LinkCode.objects.filter(used_at=None, expires_at__gt=timezone.now(), user__is_active=True)
    code = good.select_related("user").filter(digest=digest(found[1])).first() if found else None
    if code is None or not LinkCode.objects.filter(pk=code.pk, used_at=None).update(used_at=timezone.now()):
        return False
    chat = chat_of(platform, said.place)
    hold(chat.pk)
    user = _linked(platform, said, code.user, chat)
    if user is None:
        return False
    BotChat.objects.filter(pk=chat.pk).update(session=None)  # the next one is theirs alone
    told = _("This chat is linked to %(name)s. It is yours alone, and I ask you here when something waits.")
    saying.notice(chat, f"linked:{code.pk}", told % {"name": code.user.get_username()})
    return True


def _linked(platform: str, said: Incoming, person: User, chat: BotChat) -> BotUser | None:
    """One that was let in keeps what it was let in with, where its person may write there themselves."""
    account = {"platform": platform, "platform_user_id": said.who.user_id}
    own = Workspace.objects.filter(caller_of_user(person).within(roles=MAY_WRITE), archived_at=None)
    user = BotUser.objects.filter(**account, revoked_at=None).first()
    if user is None or not own.filter(pk=user.workspace_id).exists():
        workspace = own.first()
        if workspace is None:
            return None
        given = {"workspace": workspace, "trust_level": usual_trust(workspace), "agent": ""}
        user, _made = BotUser.objects.update_or_create(
            platform=platform, platform_user_id=said.who.user_id, revoked_at=None, defaults=given
        )
    shown = storable(said.who.display)[:200]
    BotUser.objects.filter(pk=user.pk).update(user=person, display=shown, direct=chat, expires_at=None)
    waiting = PairingRequest.objects.filter(**account, status=PairingStatus.PENDING)
    waiting.update(
        status=PairingStatus.APPROVED,
        resolved_at=timezone.now(),
        resolved_by=person,
        bot_user=user,
        approved_trust_level=user.trust_level,
    )
    return user


def _url(code: str) -> str:
    running = Bot.objects.filter(platform=PlatformName.TELEGRAM, state=BotState.RUNNING).first()
    return f"https://t.me/{running.account}?start={code}" if running and running.account else ""
