"""What comes from a platform becomes rows, each update once. Only what somebody said who was let in is kept
as something to be answered."""

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from bots_app.models import BotChat, BotUser, Heard, HeardState
from bots_app.platforms.base import Incoming
from bots_app.services import linking, pairing, people, saying
from bots_app.services.places import bind, chat_of
from sessions_app.storable import storable

LARGEST = 100 * 1024  # bytes of a message
PER_MINUTE = 10  # messages of a chat
MINUTE = timedelta(seconds=60)
BURST = timedelta(seconds=2)  # what is said within it is one message
MOST_WAITING = 50  # pieces of what is said in a chat
RECENT = 20  # messages of a group that an agent is told
LONGEST_RECENT = 500  # characters of each

TOO_MUCH = "That was a lot at once: %(most)d messages a minute. I did not take the last; wait a little."
TOO_LONG = "That is more than %(most)d KB, so I did not take it. Send it as a file, or in parts."
NO_MORE_TODAY = "That is all for today: %(most)d messages were agreed on. Tomorrow there are more."
ELSEWHERE = "This group belongs to another workspace than you do, so I do not answer you here."


def hear(platform: str, said: Incoming) -> BotChat | None:
    """The chat in which there is something to answer now."""
    user = people.find(platform, said.who.user_id) if said.who.is_person else None
    if said.place.is_group and linking.void(said.text):
        return None  # others have read it there: it is none any more
    if said.who.is_person and not said.place.is_group and linking.is_code(said.text):
        if linking.use(platform, said):
            return None
        if user is not None:
            key = f"no-link:{platform}:{said.update_id}"
            told = _("This link is used or too old. Make a new one.")
            saying.notice(chat_of(platform, said.place), key, told)
            return None
    if said.is_to_us and user is None:
        pairing.knock(platform, said)
    if user is None or not said.is_to_us:
        if said.place.is_group:
            _overhear(platform, said)
        return None
    chat = chat_of(platform, said.place)
    if chat.is_group and not bind(chat, user.workspace):
        saying.notice(chat, f"elsewhere:{chat.pk}:{user.pk}", _(ELSEWHERE))
        return None
    return chat if _take(platform, said, chat, user) else None


def _overhear(platform: str, said: Incoming) -> None:
    """In a group where somebody was let in, so much that an agent knows what is spoken of."""
    found = BotChat.objects.filter(
        platform=platform,
        chat_id=said.place.chat_id,
        thread_id=said.place.thread_id,
        workspace__isnull=False,
    )
    with transaction.atomic():
        chat = found.select_for_update().first()
        if chat is not None and said.text:
            text = storable(said.text)[:LONGEST_RECENT]
            line = {"id": said.message_id, "who": storable(said.who.display)[:80], "text": text}
            if line["id"] not in {each["id"] for each in chat.recent}:
                found.update(recent=[*chat.recent, line][-RECENT:])


@transaction.atomic
def _take(platform: str, said: Incoming, chat: BotChat, user: BotUser) -> bool:
    """The chat is locked, so what is said in it is counted and kept in its order."""
    chat = BotChat.objects.select_for_update().get(pk=chat.pk)
    if Heard.objects.filter(platform=platform, update_id=said.update_id).exists():
        return True  # it may not have been answered yet
    refusal = _refusal(said, chat, user)
    if refusal:
        key, text = refusal
        saying.notice(chat, key, text)
        return False
    if not chat.is_group:
        BotUser.objects.filter(pk=user.pk).exclude(direct=chat).update(direct=chat)
    try:
        with transaction.atomic():
            Heard.objects.create(
                platform=platform,
                update_id=said.update_id,
                chat=chat,
                bot_user=user,
                message_id=said.message_id,
                text=storable(said.text),
                files=storable(
                    [{"id": each.id, "name": each.name, "size": each.size} for each in said.files]
                ),
                album=said.album,
            )
    except IntegrityError:
        return True
    saying.ring(chat=chat.pk)
    return True


def _refusal(said: Incoming, chat: BotChat, user: BotUser) -> tuple[str, str] | None:
    """What somebody is told instead, by a key: each of these once for a while."""
    now = timezone.now()
    if len(said.text.encode(errors="replace")) > LARGEST:
        return f"too-long:{chat.pk}:{said.update_id}", _(TOO_LONG) % {"most": LARGEST // 1024}
    if _is_of_a_burst(said, chat, user):
        if Heard.objects.filter(chat=chat, state=HeardState.WAITING).count() >= MOST_WAITING:
            return _too_much(chat)
        return None
    if chat.window_at is None or chat.window_at <= now - MINUTE:
        chat.window_at, chat.in_window = now, 0
    if chat.in_window >= PER_MINUTE:
        return _too_much(chat)
    if not people.takes_one(user):
        day = f"today:{user.pk}:{timezone.localdate()}"
        return day, _(NO_MORE_TODAY) % {"most": user.messages_per_day or 0}
    chat.in_window += 1
    chat.burst_at = now
    chat.save(update_fields=["window_at", "in_window", "burst_at"])
    return None


def _is_of_a_burst(said: Incoming, chat: BotChat, user: BotUser) -> bool:
    last = Heard.objects.filter(chat=chat).order_by("-pk").first()
    if last is None or last.bot_user_id != user.pk or said.text.startswith("/"):
        return False
    if said.album and last.album == said.album:
        return True
    if last.together is not None:
        return False  # that is on its way already: this is another message
    return chat.burst_at is not None and chat.burst_at > timezone.now() - BURST


def _too_much(chat: BotChat) -> tuple[str, str]:
    window = chat.window_at or timezone.now()
    return f"too-much:{chat.pk}:{window.timestamp():.3f}", _(TOO_MUCH) % {"most": PER_MINUTE}
