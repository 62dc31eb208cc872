"""Whatever is said and decided, in whatever order: what reaches a model was said by somebody who was let in,
or was read by whoever let them in."""

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bots_app.models import BotChat, BotUser, Heard, PairingRequest
from bots_app.platforms.base import Incoming, Place, Who
from bots_app.services import hearing, opening, pairing, revoking
from bots_app.services.pairing import Approval
from sessions_app.access.caller import Caller
from sessions_app.errors import ParachuteError
from sessions_app.models import Message, Turn

pytestmark = [pytest.mark.database, pytest.mark.django_db]

PEOPLE = ("1", "2", "3")
GROUP = "-7"
STEPS = st.one_of(
    st.tuples(st.just("says"), st.sampled_from(PEOPLE), st.sampled_from(["alone", "group", "aside"])),
    st.tuples(st.sampled_from(["lets_in", "turns_away", "puts_out", "runs_out"]), st.sampled_from(PEOPLE)),
    st.tuples(st.sampled_from(["a_week", "relays", "a_day"])),
)


class World:
    """What may reach a model, kept beside the rows."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.may_be_read: set[str] = set()
        self._ids = itertools.count(1)

    def says(self, who: str, where: str) -> None:
        number = next(self._ids)
        word = f"zz{number}"
        place = Place(who) if where == "alone" else Place(GROUP, is_group=True)
        user = BotUser.objects.filter(platform_user_id=who, revoked_at=None).first()
        if user is not None and user.is_in and where != "aside":
            self.may_be_read.add(word)
        said = Incoming(
            update_id=str(number),
            place=place,
            who=Who(who, who),
            message_id=str(number),
            at=timezone.now(),
            text=word,
            is_to_us=where != "aside",
        )
        hearing.hear("telegram", said)
        hearing.hear("telegram", said)  # as it may come twice

    def lets_in(self, who: str) -> None:
        request = _pending(who)
        if request is not None:
            pairing.approve(self.caller, request.pk, Approval(trust_level="vault", seen=2))
            self.may_be_read |= {each["text"] for each in request.messages[:2]}

    def turns_away(self, who: str) -> None:
        request = _pending(who)
        if request is not None:
            pairing.deny(self.caller, request.pk)

    def puts_out(self, who: str) -> None:
        waiting = Heard.objects.filter(bot_user__platform_user_id=who, state="waiting")
        self.may_be_read -= set(waiting.values_list("text", flat=True))
        first = PairingRequest.objects.filter(platform_user_id=who, answers_at__isnull=False)
        for request in first:
            self.may_be_read -= {each["text"] for each in request.messages}
        revoking.revoke(self.caller, "telegram", who)

    def runs_out(self, who: str) -> None:
        BotUser.objects.filter(platform_user_id=who).update(expires_at=timezone.now())

    def a_day(self) -> None:
        PairingRequest.objects.exclude(status="pending").update(
            resolved_at=timezone.now() - pairing.AGAIN_AFTER
        )

    def a_week(self) -> None:
        past = timezone.now() - timedelta(seconds=1)
        created = past - pairing.EXPIRES_AFTER
        PairingRequest.objects.filter(status="pending").update(created_at=created, expires_at=past)

    def relays(self) -> None:
        opening.answer_approved("telegram")
        for chat in BotChat.objects.all():
            while (said := opening.next_said(chat.pk)) is not None:
                opening.say(said, [])


def _pending(who: str) -> PairingRequest | None:
    return pairing.pending().filter(platform_user_id=who).first()


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch, boxes_work: None) -> Callable[..., Any]:
    for name in ("hearing.PER_MINUTE", "hearing.MOST_WAITING"):
        monkeypatch.setattr(f"bots_app.services.{name}", 10_000)
    for name in ("hearing.BURST", "opening.BURST", "opening.QUIET"):
        monkeypatch.setattr(f"bots_app.services.{name}", timedelta(0))
    monkeypatch.setattr("agents_app.turns.said.opening.MOST_WAITING", 10_000)
    return World


@given(steps=st.lists(STEPS, min_size=5, max_size=12))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_who_is_not_let_in_never_reaches_a_model(
    steps: list[Any], settled: Callable[[Caller], World], as_ada: Caller
) -> None:
    with transaction.atomic():
        world = settled(as_ada)
        for name, *rest in [*steps, ("relays",)]:
            try:
                getattr(world, name)(*rest)
            except ParachuteError as error:
                assert error.code in ("not_found", "already_decided"), error.message
        told = " ".join(Message.objects.values_list("content", flat=True))
        reached = {word for word in told.replace("\n", " ").split() if word.startswith("zz")}
        quoted = {word for line in told.splitlines() if line.startswith("> ") for word in line.split()}
        assert reached - quoted <= world.may_be_read
        assert Turn.objects.count() <= len(world.may_be_read)
        for who in PEOPLE:
            theirs = PairingRequest.objects.filter(platform_user_id=who, status="pending")
            assert theirs.count() <= 1
            assert all(len(each.messages) <= pairing.KEPT for each in theirs)
        transaction.set_rollback(True)
