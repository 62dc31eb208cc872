"""Which exchanges are looked at, and which run does it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from agents_app.runtimes.scripted import Fail, Say
from agents_app.turns.running import announcing
from curator_app import services
from curator_app.models import CuratorRun, RunStatus
from sessions_app.access.models import Workspace
from sessions_app.models import Message, Session, SessionKind, Turn
from sessions_app.models.session import Source
from sessions_app.threads import in_thread
from tests.agents_app.engine import Engine
from tests.curator_app.conftest import Bells

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


async def runs() -> list[tuple[int, str]]:
    found = CuratorRun.objects.order_by("created_at").values_list("exchange_number", "status")
    return [row async for row in found]


async def exchanges(engine: Engine, number: int, session_id: UUID | None = None) -> UUID:
    for _ in range(number):
        opened = await engine.say("hello", session_id=session_id)
        await engine.run(opened)
        session_id = opened.session_id
    assert session_id
    return session_id


def test_the_first_the_third_the_fifth_and_every_tenth_are_due() -> None:
    assert [n for n in range(45) if services.is_due(n)] == [1, 3, 5, 10, 20, 30, 40]


async def test_a_run_waits_for_each_that_is_due_and_the_curator_is_rung_for(
    engine: Engine, bells: Bells
) -> None:
    await exchanges(engine, 6)
    assert await runs() == [(1, "queued"), (3, "queued"), (5, "queued")]
    assert len(bells) == 3


async def test_only_answers_to_people_count(engine: Engine) -> None:
    engine.runtime.scripts = {"broken": [Fail("overloaded")], "hello": [Say("hi")]}
    broken = await engine.say("broken")
    await engine.run(broken)
    assert await runs() == []
    woken = await engine.say("hello", session_id=broken.session_id)
    await Message.objects.filter(turn=woken.turn_id).aupdate(source="platform")
    await engine.run(woken)
    assert await runs() == []
    await exchanges(engine, 1, broken.session_id)
    assert await runs() == [(1, "queued")]


async def test_hearing_of_an_end_twice_changes_nothing(engine: Engine) -> None:
    await exchanges(engine, 1)
    await Turn.objects.aupdate(announced_at=None, ended_at=timezone.now() - timedelta(minutes=1))
    assert await in_thread(announcing.sweep)() == 1
    assert await runs() == [(1, "queued")]


@pytest.mark.parametrize(
    ("columns", "is_curated"),
    [
        ({"kind": SessionKind.SCHEDULED}, False),
        ({"source": Source.TELEGRAM, "bot_chat": "-1", "bot_chat_type": "group"}, False),
        ({"source": Source.TELEGRAM, "bot_chat": "1", "bot_chat_type": "private"}, True),
        ({"kind": SessionKind.ORCHESTRATOR}, True),
    ],
)
def test_what_nobody_follows_is_not_curated(columns: dict[str, Any], is_curated: bool) -> None:
    assert services.is_curated(Session(**columns)) is is_curated


def test_a_child_is_not_curated() -> None:
    assert not services.is_curated(Session(parent=Session()))


@pytest.mark.parametrize("by", ["setting", "workspace"])
async def test_it_can_be_turned_off(engine: Engine, settings: Any, bells: Bells, by: str) -> None:
    settings.PARACHUTE_CURATOR = by != "setting"
    await Workspace.objects.aupdate(curates=by != "workspace")
    await exchanges(engine, 1)
    assert await runs() == []
    assert bells == []


@pytest.mark.parametrize("by", ["setting", "workspace"])
async def test_what_waits_when_it_is_turned_off_is_left(engine: Engine, settings: Any, by: str) -> None:
    await exchanges(engine, 1)
    settings.PARACHUTE_CURATOR = by != "setting"
    await Workspace.objects.aupdate(curates=by != "workspace")
    assert await in_thread(services.sweep)() is False
    assert await in_thread(services.waits_since)() is None
    assert await in_thread(services.claim_next)() is None


async def test_of_two_that_wait_the_newest_is_looked_at_and_one_at_a_time(engine: Engine) -> None:
    session_id = await exchanges(engine, 3)
    claimed = await in_thread(services.claim_next)()
    assert claimed is not None
    assert await runs() == [(1, RunStatus.SKIPPED), (3, RunStatus.RUNNING)]
    await exchanges(engine, 2, session_id)
    assert await in_thread(services.claim_next)() is None
    await in_thread(services.fail)(claimed.pk, "over")
    again = await in_thread(services.claim_next)()
    assert again is not None
    assert again.exchange_number == 5


async def test_a_run_whose_worker_was_killed_is_swept_to_failed(engine: Engine) -> None:
    session_id = await exchanges(engine, 1)
    claimed = await in_thread(services.claim_next)()
    assert claimed is not None
    assert await in_thread(services.sweep)() is False
    long_ago = timezone.now() - services.LOST_AFTER - timedelta(seconds=1)
    await CuratorRun.objects.filter(pk=claimed.pk).aupdate(started_at=long_ago)
    await in_thread(services.sweep)()
    await claimed.arefresh_from_db()
    assert (claimed.status, claimed.error) == (RunStatus.FAILED, services.LOST)
    session = await Session.objects.aget(pk=session_id)
    assert session.metadata[services.LAST_RUN]["error"] == services.LOST
