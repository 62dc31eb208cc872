"""What a tab is told over its socket."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents_app.runtimes.events import BlockKind
from agents_app.runtimes.scripted import Begin, Pause, Say, ScriptedRuntime, Use
from parachute_site.pages import live
from sessions_app.models import Session
from sessions_app.threads import in_thread
from tests.api.web import Web
from tests.asked import asks

pytestmark = pytest.mark.django_db(transaction=True)


async def follow(web: Web, session: str, *, after: int = 0, until: str = "done") -> list[dict[str, Any]]:
    """All that a tab hears up to a row of that type, each row by itself."""
    heard: list[dict[str, Any]] = []
    async with web.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "sessionId": session, "after": after})
        while not any(row.get("type") == until for row in heard):
            said = await socket.next()
            heard += said["told"] if said["type"] == "told" else [said]
    return heard


async def test_rows_come_as_markup_with_their_place(ada_calls: Web, worker: ScriptedRuntime) -> None:
    worker.scripts["x"] = [Say("**Ripe.**")]
    said = await ada_calls.say("x")
    rows = {row["type"]: row for row in await follow(ada_calls, said["sessionId"])}
    assert rows["user_message"]["items"][0]["into"] == f"turn-{said['turnId']}"
    assert rows["user_message"]["brief"] == "x"
    assert "<strong>Ripe.</strong>" in rows["text"]["items"][0]["html"]
    assert rows["done"]["items"][0]["html"]
    assert rows["session"]["items"] == []


async def test_nothing_but_what_the_page_needs_goes_over_the_wire(
    ada_calls: Web, worker: ScriptedRuntime
) -> None:
    worker.scripts["x"] = [Use("Read", {"file_path": "a.md"}, lambda: "y" * 90_000), Say("Done.")]
    said = await ada_calls.say("x")
    heard = await follow(ada_calls, said["sessionId"])
    assert sum(len(str(row)) for row in heard) < 30_000


async def test_a_text_that_grows_is_drawn_while_it_is_written(
    ada_calls: Web, worker: ScriptedRuntime
) -> None:
    hold = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["x"] = [Begin("# Quinces\n\nThey are **ri"), hold, Say("# Quinces\n\nThey are **ripe**.")]
    said = await ada_calls.say("x")
    async with ada_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 0})
        grown = (await socket.until("grown"))[-1]
        assert grown["id"] == f"live-{said['turnId']}"
        assert "<h3>Quinces</h3>" in grown["more"] + grown["end"]
        hold.go_on.set()
        told = (await socket.until("told"))[-1]["told"]
        assert [row["type"] for row in told] == ["text"]
        assert "<strong>ripe</strong>" in told[0]["items"][0]["html"]


async def test_who_comes_late_gets_the_text_so_far(ada_calls: Web, worker: ScriptedRuntime) -> None:
    hold = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["x"] = [Begin("They are **ripe** n"), hold, Say("They are **ripe** now.")]
    said = await ada_calls.say("x")
    await hold.reached.wait()
    async with ada_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 0})
        assert "<strong>ripe</strong> n" in (await socket.until("grown"))[-1]["end"]
        hold.go_on.set()
        await socket.until("told")


async def test_thinking_is_passed_on_as_it_comes(ada_calls: Web, worker: ScriptedRuntime) -> None:
    hold = Pause(asyncio.Event(), asyncio.Event())
    worker.scripts["x"] = [Begin("hm <b>", BlockKind.THINKING), hold, Say("hm <b>!", BlockKind.THINKING)]
    said = await ada_calls.say("x")
    async with ada_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 0})
        assert (await socket.until("thinking"))[-1]["delta"] == "hm <b>"
        hold.go_on.set()
        told = (await socket.until("told"))[-1]["told"]
        assert "hm &lt;b&gt;!" in told[0]["items"][0]["html"]


async def test_an_outsider_is_refused(cy_calls: Web, nobody: Web, ada_calls: Web) -> None:
    said = await ada_calls.say("private")
    async with cy_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 0})
        heard = await socket.next()
        assert (heard["type"], heard["error"]["code"]) == ("refused", "not_found")
    async with nobody.socket("/ws/page") as socket:
        assert await socket.closed() == 4401


async def test_one_part_of_many_rows_is_one_message(ada_calls: Web, worker: ScriptedRuntime) -> None:
    worker.scripts["x"] = [Say(f"part {number}") for number in range(30)]
    said = await ada_calls.say("x")
    await follow(ada_calls, said["sessionId"])
    async with ada_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "sessionId": said["sessionId"], "after": 0})
        assert len((await socket.until("told"))[-1]["told"]) > 30


async def test_what_waits_for_a_person_is_counted_and_goes_with_its_answer(
    ada_calls: Web, cy_calls: Web
) -> None:
    said = await ada_calls.say("x")
    request = await in_thread(asks)(said["sessionId"])
    async with ada_calls.socket("/ws/page") as socket, cy_calls.socket("/ws/page") as of_cy:
        await socket.send({"type": "follow", "inbox": True})
        await of_cy.send({"type": "follow", "inbox": True})
        assert (await of_cy.until("inbox"))[-1]["count"] == 0
        first, asked = [(await socket.until("inbox"))[-1] for _ in range(2)]
        assert (first["count"], first["isAll"], asked["count"]) == (0, True, 1)
        assert f'data-request="{request.pk}"' in asked["items"][0]["html"]
        await ada_calls.post(f"/api/permissions/{request.pk}/deny")
        gone = (await socket.until("inbox"))[-1]
        assert (gone["count"], gone["items"]) == (0, [{"id": f"asked-{request.pk}"}])


async def test_what_a_child_asks_is_a_card_in_its_parents_page_until_it_is_answered(ada_calls: Web) -> None:
    child, parent = [(await ada_calls.say("x"))["sessionId"] for _ in range(2)]
    await Session.objects.filter(pk=child).aupdate(parent=parent)
    request = await in_thread(asks)(child)
    async with ada_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "sessionId": parent, "after": 0})
        first, asked = [(await socket.until("children"))[-1] for _ in range(2)]
        assert (first["isAll"], first["items"]) == (True, [])
        assert f'data-request="{request.pk}"' in asked["items"][0]["html"]
        await ada_calls.post(f"/api/permissions/{request.pk}/deny")
        gone = (await socket.until("children"))[-1]
        assert (gone["sessionId"], gone["items"]) == (parent, [{"id": f"asked-{request.pk}"}])


async def test_a_part_of_a_page_is_told_anew_when_it_is_another(
    ada_calls: Web, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LOOKS_EVERY", 0.01)
    (vault / "Agents").mkdir()
    async with ada_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "part": "agents", "of": "default"})
        assert "Gardener" not in (await socket.until("part"))[-1]["html"]
        (vault / "Agents" / "gardener.md").write_text("---\nname: Gardener\n---\n")
        told = (await socket.until("part"))[-1]
        assert (told["part"], told["of"]) == ("agents", "default")
        assert "Gardener" in told["html"]
        await socket.send({"type": "follow", "part": "secrets"})
        assert (await socket.until("refused"))[-1]["error"]["code"] == "invalid"


async def test_nobody_follows_a_part_of_a_workspace_that_is_not_theirs(cy_calls: Web, vault: Path) -> None:
    (vault / "Agents").mkdir()
    (vault / "Agents" / "gardener.md").write_text("---\nname: Gardener\n---\n")
    async with cy_calls.socket("/ws/page") as socket:
        await socket.send({"type": "follow", "part": "agent", "of": "default gardener"})
        assert (await socket.until("refused"))[-1]["error"]["code"] == "not_found"
