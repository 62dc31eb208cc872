"""`follow_list`: whoever shows a list has the newest sessions, soon after they changed and not more often."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from queue import Queue
from time import monotonic
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Workspace
from sessions_app.errors import Unauthenticated
from sessions_app.models import EventType, Session
from sessions_app.reading import Page
from sessions_app.streaming import bus, listing
from sessions_app.streaming.listing import follow_list
from sessions_app.streaming.log import record, record_all
from sessions_app.threads import in_thread
from tests.sessions_app.own_bus import OwnBus

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("own_bus", "service_threads"),
]

PATIENCE = 10


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "READS_EVERY", 0.0)
    monkeypatch.setattr(bus, "RINGS_TOGETHER", 0.0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Caller]:
    """Who asked the database for their list, each time."""
    asked: list[Caller] = []
    inner = listing._read

    def read(caller: Caller) -> Any:
        asked.append(caller)
        return inner(caller)

    monkeypatch.setattr(listing, "_read", read)
    return asked


@asynccontextmanager
async def following(caller: Caller) -> AsyncIterator[AsyncIterator[Page]]:
    async with asyncio.timeout(PATIENCE), aclosing(follow_list(lambda: caller)) as pages:
        yield pages


async def titled(caller: Caller, session: Session, title: str) -> None:
    @transaction.atomic
    def change() -> None:
        services.change(services.locked(caller, session.pk), {"title": title})

    await in_thread(change)()


def titles(page: Page) -> list[str]:
    return [session.title for session in page.sessions]


def another(workspace: Workspace, **more: Any) -> Session:
    """One more, made as `open_turn` makes it: the row that tells of it comes with it."""
    with transaction.atomic():
        made: Session = Session.objects.create(
            workspace=workspace, visibility="workspace", model="m", vault_root="/", **more
        )
        record(made.pk, EventType.USER_MESSAGE, {})
    return made


async def test_the_list_comes_at_once_and_again_when_it_changed(session: Session, as_ada: Caller) -> None:
    async with following(as_ada) as pages:
        assert titles(await anext(pages)) == ["Quinces"]
        await titled(as_ada, session, "Pears")
        assert titles(await anext(pages)) == ["Pears"]


async def test_a_new_one_is_the_first_and_one_that_is_archived_is_gone(
    session: Session, workspace: Workspace, as_ada: Caller
) -> None:
    async with following(as_ada) as pages:
        await anext(pages)
        await in_thread(another)(workspace, title="Medlars")
        page = await anext(pages)
        assert (titles(page), page.total) == (["Medlars", "Quinces"], 2)
        await in_thread(services.archive)(as_ada, session.pk)
        assert titles(await anext(pages)) == ["Medlars"]


async def test_what_a_list_does_not_show_is_no_news(session: Session, as_ada: Caller) -> None:
    async with following(as_ada) as pages:
        await anext(pages)
        await Session.objects.aupdate(message_count=7, cost_usd=1)
        await in_thread(record)(session.pk, EventType.DONE, {})
        await titled(as_ada, session, "Pears")
        assert titles(await anext(pages)) == ["Pears"]


async def test_another_order_is_news(session: Session, workspace: Workspace, as_ada: Caller) -> None:
    other = await in_thread(another)(workspace, title="Medlars")
    async with following(as_ada) as pages:
        assert titles(await anext(pages)) == ["Medlars", "Quinces"]
        await Session.objects.filter(pk=session.pk).aupdate(
            last_accessed=other.last_accessed.replace(year=3000)
        )
        await in_thread(record)(session.pk, EventType.USER_MESSAGE, {})
        assert titles(await anext(pages)) == ["Quinces", "Medlars"]


async def test_rows_that_change_no_list_ring_none(
    session: Session, as_ada: Caller, reads: list[Caller]
) -> None:
    async with following(as_ada) as pages:
        await anext(pages)
        for kind in (EventType.TEXT, EventType.TOOL_USE, EventType.MODEL):
            await in_thread(record)(session.pk, kind, {})
        await titled(as_ada, session, "Pears")
        await anext(pages)
    assert len(reads) == 2


async def test_a_foreign_workspace_rings_for_nobody_here(
    session: Session, as_ada: Caller, as_cy: Caller, reads: list[Caller]
) -> None:
    elsewhere = await Workspace.objects.aget(slug="elsewhere")
    async with following(as_ada) as adas, following(as_cy) as cys:
        assert titles(await anext(cys)) == []
        await anext(adas)
        await in_thread(another)(elsewhere, title="Cy's own")
        assert titles(await anext(cys)) == ["Cy's own"]
        await titled(as_ada, session, "Pears")
        assert titles(await anext(adas)) == ["Pears"]
    assert reads.count(as_ada) == 2


async def test_a_lost_ring_is_made_good_in_the_next_silence(
    session: Session, as_ada: Caller, own_bus: OwnBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "KEEP_ALIVE", 0.01)
    own_bus.is_deaf = True
    async with following(as_ada) as pages:
        await anext(pages)
        await titled(as_ada, session, "Pears")
        assert titles(await anext(pages)) == ["Pears"]


async def test_foreign_rings_are_no_end_of_a_silence(
    session: Session, as_ada: Caller, own_bus: OwnBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "KEEP_ALIVE", 0.05)

    async def ring_elsewhere() -> None:
        while True:
            await own_bus.publish(bus.LISTS, {"workspace": 0})
            await asyncio.sleep(0.005)

    async with following(as_ada) as pages:
        await anext(pages)
        ringing = asyncio.create_task(ring_elsewhere())
        await Session.objects.aupdate(title="Pears")
        assert titles(await anext(pages)) == ["Pears"]
        ringing.cancel()


async def test_many_changes_are_few_reads_and_the_last_is_seen(
    session: Session, as_ada: Caller, reads: list[Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "READS_EVERY", 0.1)
    began = monotonic()
    async with following(as_ada) as pages:
        await anext(pages)

        async def change() -> None:
            for n in range(30):
                await titled(as_ada, session, f"title {n}")

        changing = asyncio.create_task(change())
        while titles(await anext(pages)) != ["title 29"]:
            pass
        await changing
    assert len(reads) <= 2 + (monotonic() - began) / 0.1


async def test_a_change_during_the_read_is_read_again(
    session: Session, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ring comes between subscribing and the page."""
    inner, times = listing._read, 0

    def read(caller: Caller) -> Any:
        nonlocal times
        times += 1
        page = inner(caller)
        if times == 1:
            archived = services.archive(caller, session.pk)
            assert archived.archived
        return page

    monkeypatch.setattr(listing, "_read", read)
    async with following(as_ada) as pages:
        assert titles(await anext(pages)) == ["Quinces"]
        assert titles(await anext(pages)) == []


async def test_who_loses_a_membership_loses_its_sessions(
    session: Session, as_ben: Caller, as_ada: Caller, ben: User
) -> None:
    await Session.objects.aupdate(visibility="workspace")
    async with following(as_ben) as pages:
        assert titles(await anext(pages)) == ["Quinces"]
        await Membership.objects.filter(user=ben).adelete()
        await titled(as_ada, session, "Pears")
        page = await anext(pages)
        assert (titles(page), page.total) == ([], 0)


async def test_who_is_nobody_any_more_has_no_list(session: Session, as_ada: Caller) -> None:
    callers = iter([as_ada])

    def find_caller() -> Caller:
        caller = next(callers, None)
        if caller is None:
            raise Unauthenticated
        return caller

    async with asyncio.timeout(PATIENCE), aclosing(follow_list(find_caller)) as pages:
        await anext(pages)
        await titled(as_ada, session, "Pears")
        with pytest.raises(Unauthenticated):
            await anext(pages)


def test_a_read_takes_four_queries_however_long_the_list(workspace: Workspace, as_ada: Caller) -> None:
    for count in (1, 11):
        for _ in range(count):
            another(workspace)
        with CaptureQueriesContext(connection) as queries:
            page, workspaces = listing._read(as_ada)
            assert len([listing._shown_of(each) for each in page.sessions]) == page.total
        assert len(queries) == 4
        assert workspaces == {workspace.pk}


class Rung:
    """The workspaces whose lists were rung."""

    def __init__(self) -> None:
        self._published: Queue[int] = Queue()
        self._nobodys = itertools.count(-1, -1)

    async def publish(self, to: object, topic: str, payload: bus.Payload) -> None:
        if topic == bus.LISTS:
            self._published.put(payload["workspace"])

    def until_now(self) -> list[int]:
        """Since the last look: those before a ring of our own, which comes out after them."""
        last = next(self._nobodys)
        bus.ring_lists(last)
        return list(iter(partial(self._published.get, timeout=PATIENCE), last))


class TestRings:
    @pytest.fixture
    def rung(self, monkeypatch: pytest.MonkeyPatch) -> Rung:
        rung = Rung()
        monkeypatch.setattr(bus, "_publish", rung.publish)
        rung.until_now()  # what the tests before have rung for is out
        monkeypatch.setattr(bus, "RINGS_TOGETHER", 0.02)
        monkeypatch.setattr(bus, "_lists_ring_at", {})
        return rung

    def test_one_transaction_rings_once_and_after_its_commit(
        self, session: Session, rung: Rung, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bus, "monotonic", lambda: 1.0)  # all of it in one moment
        with transaction.atomic():
            for _ in range(3):
                record_all(session.pk, [(EventType.DONE, {}), (EventType.SESSION_UPDATED, {})])
            assert rung.until_now() == []
        assert rung.until_now() == [session.workspace_id]

    def test_what_is_rolled_back_rings_for_nobody(self, session: Session, rung: Rung) -> None:
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            record(session.pk, EventType.SESSION_UPDATED, {})
            raise ZeroDivisionError
        assert rung.until_now() == []

    def test_a_bell_that_breaks_breaks_nothing(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def breaks(workspace_id: int) -> None:
            raise ConnectionError

        monkeypatch.setattr(bus, "ring_lists", breaks)
        assert record(session.pk, EventType.SESSION_UPDATED, {}).seq == 1
