"""What is to be said, as rows; whoever speaks for the platform is rung for it."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from bots_app.models import BotChat, Delivery, DeliveryKind, DeliveryState
from sessions_app.models import Session, Turn
from sessions_app.streaming import bus

TOPIC = "bots"  # rings: `chat` has something to be heard or said, or `orders` are new


def notice(chat: BotChat, key: str, text: str, *, reply_to: str = "") -> None:
    """Once for each key."""
    Delivery.objects.get_or_create(key=key, defaults={"chat": chat, "text": text, "reply_to": reply_to})
    ring(chat=chat.pk)


def answer(chat: BotChat, turn_id: Any, *, reply_to: str = "") -> None:
    """What a turn says, as it says it."""
    Delivery.objects.get_or_create(
        key=f"turn:{turn_id}",
        defaults={
            "chat": chat,
            "kind": DeliveryKind.ANSWER,
            "turn": Turn.objects.get(pk=turn_id),
            "reply_to": reply_to,
        },
    )
    ring(chat=chat.pk)


def chat_of_session(session: Session) -> BotChat | None:
    """Where a session is held, as long as that chat is still about it."""
    return BotChat.objects.filter(platform=session.source, session=session).first()


def again(delivery: Delivery) -> bool:
    """Somebody wants it sent although it failed."""
    failed = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.FAILED)
    moved = failed.update(
        state=DeliveryState.WAITING, attempts=0, next_at=timezone.now(), problem="", sent_at=None
    )
    if moved:
        ring(chat=delivery.chat_id)
    return bool(moved)


def ring(**what: Any) -> None:
    transaction.on_commit(lambda: bus.ring(TOPIC, {"type": "bots", **what}), robust=True)
