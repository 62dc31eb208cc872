"""What one tab is told of one session, when much of it comes at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

import pytest

from parachute_site.pages.socket import Pane
from parachute_site.pages.vault import Links
from sessions_app.access.caller import Caller
from sessions_app.streaming.bus import Payload

pytestmark = pytest.mark.django_db(transaction=True)
SESSION, TURN = uuid4(), str(uuid4())
WRITES = {"tool": {"id": "t", "name": "Write", "input": {"file_path": "/vault/CLAUDE.md", "content": "x"}}}
ASKS: dict[str, Any] = {
    "id": "1",
    "sessionId": str(SESSION),
    "toolName": "Write",
    "toolUseId": "t",
    "permissionType": "write",
    "input": {"file_path": "/vault/CLAUDE.md", "content": "x"},
    "suggestedGrants": [],
    "reason": "A person decides.",
    "expiresAt": "2026-11-18T10:02:00Z",
}
NOBODY_ANSWERED = {"requestId": "1", "decision": "expired", "canStillBeAllowed": True}
ALLOWED = {"requestId": "1", "decision": "granted", "canStillBeAllowed": False}
FAILED = {"toolUseId": "t", "content": "no", "isError": True, "durationMs": 240, "truncated": False}


def row(seq: int, kind: str, **payload: Any) -> Payload:
    return {"type": kind, "turnId": TURN, "seq": seq, "ts": "2026-11-18T10:00:00Z", **payload}


ROWS = [
    row(1, "tool_use", **WRITES, parentToolUseId=None),
    row(2, "permission_request", **ASKS),
    row(3, "permission_resolved", **NOBODY_ANSWERED),
    row(4, "tool_result", **FAILED),
]


ADA = Caller(1, "user:1", is_operator=True, username="ada")


class Shown:
    def __init__(self) -> None:
        self.said: list[Payload] = []
        self.pane = Pane(SESSION, "/vault", Links("default"), self.say, self.begin, reader=ADA)

    async def say(self, payload: Payload) -> None:
        self.said.append(payload)

    def begin(self, task: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(task)

    async def told(self, *rows: Payload) -> list[Payload]:
        await self.pane.show([*rows])
        told: list[Payload] = self.said[-1]["told"]
        return told


async def test_what_comes_at_once_stands_in_the_order_in_which_it_began() -> None:
    told = await Shown().told(*ROWS)
    placed = dict.fromkeys(item["id"] for each in told for item in each["items"])
    assert list(placed) == ["tool-1", "row-2"]
    assert "failed" in told[0]["items"][0]["html"]  # as it ended, and not as it began
    assert told[3]["items"] == []


async def test_an_answer_has_its_card_with_it_also_when_the_card_came_just_before() -> None:
    """Without, the page takes the buttons off: of one that nobody answered in time, too."""
    told = await Shown().told(*ROWS)
    for each in told[1:3]:
        [item] = each["items"]
        assert item["id"] == "row-2"
        assert "It can still be allowed" in item["html"]
    assert told[2]["requestId"] == "1"


async def test_an_answer_that_comes_later_replaces_the_card() -> None:
    shown = Shown()
    await shown.told(*ROWS)
    [late] = await shown.told(row(9, "permission_resolved", **ALLOWED) | {"turnId": None})
    [card] = late["items"]
    assert (card["id"], "Allowed" in card["html"]) == ("row-2", True)


async def test_each_row_that_comes_alone_has_its_markup() -> None:
    shown = Shown()
    assert [len((await shown.told(each))[0]["items"]) for each in ROWS] == [1] * 4


RESUMED = row(5, "session", resumeInfo={"method": "sdk_resume"})


async def test_a_tool_whose_worker_was_lost_is_stopped_when_its_turn_is_taken_up() -> None:
    shown = Shown()
    await shown.told(*ROWS[:2])
    [told] = await shown.told(RESUMED)
    [tool] = told["items"]
    assert tool["id"] == "tool-1"
    for each in (tool, (await Shown().told(*ROWS[:2], RESUMED))[0]["items"][0]):
        assert ">stopped</span>" in each["html"]
        assert "running" not in each["html"]
