"""Whose a chat is: private until it is shared, and what is told to whom when that changes."""

import asyncio
import logging
from typing import Any

import pytest

from agents_app.runtimes.scripted import Pause, Say, ScriptedRuntime
from sessions_app.models import Session, Turn
from sessions_app.threads import in_thread
from tests.api.web import Web
from tests.asked import asks

pytestmark = pytest.mark.django_db(transaction=True)

SHARED, PRIVATE = {"visibility": "workspace"}, {"visibility": "private"}
WITHIN = 1.0  # second, after which nobody reads on who may not


@pytest.fixture
async def chat(ada_calls: Web) -> str:
    return str((await ada_calls.say("quinces"))["sessionId"])


@pytest.fixture
async def bens(ben_calls: Web) -> str:
    """Ben's, shared: Ada owns the workspace."""
    chat = str((await ben_calls.say("medlars"))["sessionId"])
    await ben_calls.share(chat)
    return chat


def where(chat: str) -> str:
    return f"/api/chat/{chat}"


async def test_shared_it_is_everybodys_to_write_in_and_says_who_wrote(
    ada_calls: Web, ben_calls: Web, chat: str
) -> None:
    await ada_calls.share(chat)
    await ben_calls.say("And medlars?", sessionId=chat)
    seen = (await ben_calls.get(where(chat))).json
    assert (seen["visibility"], seen["author"]) == ("workspace", "ada")
    async with ben_calls.streaming("GET", f"{where(chat)}/events") as stream:
        said = [(await stream.until("user_message"))[-1].data for _ in range(2)]
    assert [each["author"] for each in said] == ["ada", "ben"]


async def test_whoever_began_it_is_told_of_each_message_that_is_over(
    ada_calls: Web, worker: ScriptedRuntime
) -> None:
    answer = await ada_calls.post("/api/chat", {"message": "x"}, {"accept": "application/json"})
    whole = await ada_calls.get(where(answer.json["sessionId"]))
    assert whole.json["messages"][0]["author"] == "ada"


async def test_what_becomes_of_it_is_its_authors_or_an_owners_to_say(
    ada_calls: Web, ben_calls: Web, chat: str, bens: str
) -> None:
    await ada_calls.share(chat)
    for ask in (
        ben_calls.patch(where(chat), PRIVATE),
        ben_calls.post(f"{where(chat)}/archive"),
        ben_calls.post(f"{where(chat)}/unarchive"),
        ben_calls.delete(where(chat)),
    ):
        assert (await ask).refused == (403, "forbidden")
    assert (await ada_calls.post(f"{where(bens)}/archive")).status == 200
    assert (await ada_calls.patch(where(bens), PRIVATE)).json["visibility"] == "private"
    assert (await ada_calls.get(where(bens))).refused == (404, "not_found")
    assert (await ben_calls.delete(where(bens))).status == 204


async def test_it_goes_with_those_that_it_started(ada_calls: Web, ben_calls: Web, chat: str) -> None:
    parent = await Session.objects.aget(pk=chat)
    same = {name: getattr(parent, name) for name in ("workspace_id", "created_by_id", "model", "vault_root")}
    child = await Session.objects.acreate(parent=parent, **same)
    await ada_calls.share(chat)
    assert (await ben_calls.get(where(str(child.pk)))).status == 200
    assert (await ada_calls.patch(where(str(child.pk)), PRIVATE)).refused == (422, "invalid")
    await ada_calls.patch(where(chat), PRIVATE)
    assert (await ben_calls.get(where(str(child.pk)))).status == 404


@pytest.mark.parametrize("started", [{"created_by": None}, {"kind": "orchestrator"}, {"kind": "scheduled"}])
async def test_what_the_platform_started_is_nobodys_own(
    ada_calls: Web, chat: str, started: dict[str, Any]
) -> None:
    await Session.objects.filter(pk=chat).aupdate(visibility="workspace", **started)
    assert (await ada_calls.patch(where(chat), PRIVATE)).refused == (422, "invalid")


async def test_what_others_said_to_it_and_is_not_done_is_stopped(
    ada_calls: Web, ben_calls: Web, chat: str
) -> None:
    """Else it would be done with the rights of a chat that they do not see."""
    await ada_calls.share(chat)
    bens = await ben_calls.say("and medlars?", sessionId=chat)
    adas = await ada_calls.say("and pears?", sessionId=chat)
    await ada_calls.patch(where(chat), PRIVATE)
    statuses = {str(turn.pk): turn.status async for turn in Turn.objects.filter(session_id=chat)}
    assert (statuses[bens["turnId"]], statuses[adas["turnId"]]) == ("aborted", "queued")


async def test_it_does_not_name_the_private_one_that_it_goes_on_from(
    ada_calls: Web, ben_calls: Web, chat: str
) -> None:
    next_one = (await ada_calls.say("go on", continuedFrom=chat))["sessionId"]
    assert (await ada_calls.get(where(next_one))).json["continuedFrom"] == chat
    await ada_calls.share(next_one)
    assert (await ben_calls.get(where(next_one))).json["continuedFrom"] is None
    await ada_calls.share(chat)
    assert (await ben_calls.get(where(next_one))).json["continuedFrom"] == chat


async def test_a_request_of_it_comes_to_others_and_goes_again(
    ada_calls: Web, ben_calls: Web, chat: str
) -> None:
    request = await in_thread(asks)(chat)
    async with ben_calls.socket() as socket:
        await socket.send({"type": "follow", "inbox": True})
        await ada_calls.share(chat)
        assert (await socket.next())["id"] == str(request.pk)
        await ada_calls.patch(where(chat), PRIVATE)
        assert (await socket.next())["requestId"] == str(request.pk)


async def test_the_list_shows_it_while_it_is_shared(ada_calls: Web, ben_calls: Web, chat: str) -> None:
    async with ben_calls.socket() as socket:
        await socket.send({"type": "follow", "list": True})
        totals = [(await socket.next())["total"]]
        for order in (SHARED, PRIVATE):
            await ada_calls.patch(where(chat), order)
            totals.append((await socket.next())["total"])
    assert totals == [0, 1, 0]


class TestWhoReadsItMeanwhile:
    """The stream of each kind, while somebody else's chat is not shared any more."""

    async def test_over_server_sent_events(self, ada_calls: Web, ben_calls: Web, chat: str) -> None:
        await ada_calls.share(chat)
        async with ben_calls.streaming("GET", f"{where(chat)}/events?after=3") as stream:
            async with asyncio.timeout(WITHIN):
                await ada_calls.patch(where(chat), PRIVATE)
                assert await stream.rest() == []

    async def test_over_the_socket_of_one_session(self, ada_calls: Web, ben_calls: Web, chat: str) -> None:
        await ada_calls.share(chat)
        async with ben_calls.socket(f"/ws/chat/{chat}?after=3") as socket, asyncio.timeout(WITHIN):
            await ada_calls.patch(where(chat), PRIVATE)
            assert await socket.closed() == 4404

    @pytest.mark.parametrize("path", ["/ws", "/ws/page"])
    async def test_over_a_socket_that_goes_on(
        self, ada_calls: Web, ben_calls: Web, chat: str, path: str
    ) -> None:
        await ada_calls.share(chat)
        own = await ben_calls.say("medlars")
        async with ben_calls.socket(path) as socket:
            await socket.send({"type": "follow", "sessionId": chat, "after": 3})
            async with asyncio.timeout(WITHIN):
                await ada_calls.patch(where(chat), PRIVATE)
                heard = (await socket.until("refused"))[-1]
            assert (heard["sessionId"], heard["error"]["code"]) == (chat, "not_found")
            await socket.send({"type": "follow", "sessionId": own["sessionId"], "after": 0})
            while (await socket.next())["sessionId"] != own["sessionId"]:
                pass

    async def test_in_the_answer_to_their_own_message(
        self,
        ada_calls: Web,
        ben_calls: Web,
        chat: str,
        worker: ScriptedRuntime,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        here = Pause(asyncio.Event(), asyncio.Event())
        worker.scripts["medlars"] = [here, Say("In November.")]
        await ada_calls.share(chat)
        order = {"message": "medlars", "sessionId": chat}
        asking = asyncio.create_task(ben_calls.post("/api/chat", order, {"accept": "application/json"}))
        await here.reached.wait()
        async with asyncio.timeout(WITHIN):
            await ada_calls.patch(where(chat), PRIVATE)
            assert (await asking).refused == (404, "not_found")
        here.go_on.set()
        assert not [each for each in caplog.records if each.levelno >= logging.WARNING]

    async def test_its_author_reads_on(self, ada_calls: Web, chat: str) -> None:
        await ada_calls.share(chat)
        async with ada_calls.streaming("GET", f"{where(chat)}/events?after=3") as stream:
            await ada_calls.patch(where(chat), PRIVATE)
            assert (await stream.next()).data["visibility"] == "private"
            await ada_calls.patch(where(chat), {"title": "T"})
            assert (await stream.next()).data["title"] == "T"
