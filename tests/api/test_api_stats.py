"""How much there is, and a long conversation in parts, over HTTP."""

import pytest

from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)


async def test_stats_count_what_the_caller_may_see(ada_calls: Web, ben_calls: Web) -> None:
    await ada_calls.say("When are the medlars ripe?")
    mine, theirs = (await ada_calls.get("/api/stats")).json, (await ben_calls.get("/api/stats")).json
    assert (mine["sessions"]["total"], mine["turns"]["total"]) == (1, 1)
    assert mine["sessions"]["bySource"] == {"parachute": 1}
    assert mine["memory"]["mb"] > 1
    assert theirs["sessions"] == {"total": 0, "archived": 0, "children": 0, "bySource": {}, "byAgent": {}}
    assert theirs["turns"] == {"total": 0, "byStatus": {}}


async def test_a_part_that_there_is_not_is_refused(ada_calls: Web) -> None:
    chat = (await ada_calls.say("When are the medlars ripe?"))["sessionId"]
    empty = await ada_calls.get(f"/api/chat/{chat}/transcript")
    assert empty.json == {"messages": [], "segments": [], "segmentCount": 0, "skippedLines": 0}
    refused = await ada_calls.get(f"/api/chat/{chat}/transcript?segment=-1")
    assert refused.refused == (422, "invalid")
