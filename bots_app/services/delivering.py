"""How what is to be said comes along: written by whoever speaks for the platform."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from bots_app.models import Delivery, DeliveryKind, DeliveryState, Heard, HeardState

MOST_ATTEMPTS = 10
LONGEST_WAIT = 60.0
KEPT_FOR = {DeliveryState.SENT: timedelta(days=7), DeliveryState.FAILED: timedelta(days=30)}
HEARD_FOR = timedelta(days=7)


def chats_with_work(platform: str) -> list[int]:
    """In which something waits to be answered or said."""
    heard = Heard.objects.filter(chat__platform=platform, state=HeardState.WAITING)
    said = Delivery.objects.filter(chat__platform=platform, state=DeliveryState.WAITING)
    return sorted({*heard.values_list("chat_id", flat=True), *said.values_list("chat_id", flat=True)})


def next_of(chat_id: int, kind: DeliveryKind) -> Delivery | None:
    waiting = Delivery.objects.filter(chat=chat_id, kind=kind, state=DeliveryState.WAITING)
    found: Delivery | None = waiting.select_related("chat", "turn", "request").order_by("pk").first()
    return found


def stands(delivery: Delivery, messages: list[dict[str, Any]], card: dict[str, Any] | None = None) -> None:
    """In these messages it is to be read already."""
    changed: dict[str, Any] = {"messages": messages} if card is None else {"messages": messages, "card": card}
    Delivery.objects.filter(pk=delivery.pk).update(**changed)


def sent(delivery: Delivery) -> None:
    waiting(delivery).update(state=DeliveryState.SENT, sent_at=timezone.now(), problem="")


def failed(delivery: Delivery, why: str) -> None:
    waiting(delivery).update(state=DeliveryState.FAILED, problem=why)


def tried(delivery: Delivery, why: str) -> float | None:
    """Seconds until it is tried again; None where it was tried often enough."""
    attempts = delivery.attempts + 1
    if attempts >= MOST_ATTEMPTS:
        waiting(delivery).update(state=DeliveryState.FAILED, problem=why, attempts=attempts)
        return None
    wait = min(2.0 ** (attempts - 1), LONGEST_WAIT)
    again = timezone.now() + timedelta(seconds=wait)
    waiting(delivery).update(attempts=attempts, next_at=again, problem=why)
    return wait


def waiting(delivery: Delivery) -> QuerySet[Delivery]:
    return Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.WAITING)


def sweep() -> None:
    """What nobody asks for any more."""
    now = timezone.now()
    for state, kept in KEPT_FOR.items():
        Delivery.objects.filter(state=state, created_at__lt=now - kept).delete()
    Heard.objects.exclude(state=HeardState.WAITING).filter(said_at__lt=now - HEARD_FOR).delete()
