"""Running, ending and pausing agents over HTTP; the ledger, the shares, and what helper processes may."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents_app.orchestration import helpers, shares, spawning
from agents_app.orchestration.models import Supervision
from agents_app.orchestration.spawning import Order, spawn
from agents_app.schedules import services as schedules
from agents_app.turns.held.claim import claim
from agents_app.turns.held.holder import Holder
from agents_app.turns.running import finish
from permissions_app import audit
from sessions_app.access.models import KeyScope
from sessions_app.access.services import make_key
from sessions_app.models import Session, SessionStatus, Turn
from sessions_app.threads import in_thread
from tests.agents_app.conftest import Rings
from tests.api.web import Web
from tests.orchestration.conftest import Write

pytestmark = pytest.mark.django_db(transaction=True)

RUN = "/api/workspaces/default/agents/boss/sessions"


async def calls_of(user: User) -> Web:
    _, token = await in_thread(make_key)(user, "every scope", scopes=list(KeyScope))
    return Web({"authorization": f"Bearer {token}"})


@pytest.fixture
async def adas(ada: User, cast: None, rings: Rings) -> AsyncIterator[Web]:
    yield await calls_of(ada)


async def test_run_finds_the_one_that_lives_and_twenty_at_once_make_one(adas: Web) -> None:
    answers = await asyncio.gather(*(adas.post(RUN, {}) for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert await Turn.objects.acount() == 1, "only the one that was made is told to begin"
    said = await adas.post(RUN, {"prompt": "And quinces."})
    assert (said.status, await Turn.objects.acount()) == (200, 2)


async def test_a_worker_is_another_session_each_time(adas: Web) -> None:
    path = RUN.replace("boss", "writer")
    first, second = [(await adas.post(path, {"prompt": "Write."})) for _ in range(2)]
    assert (first.status, second.status, first.json["id"] != second.json["id"]) == (201, 201, True)
    assert (await adas.post(RUN.replace("boss", "nobody"), {})).refused == (404, "not_found")


async def test_it_is_paused_resumed_and_ended(adas: Web) -> None:
    live = (await adas.post(RUN, {})).json["id"]
    assert (await adas.post(f"{RUN}/{live}/pause", {})).status == 200
    assert await Supervision.objects.filter(session=live, paused_at__isnull=False).aexists()
    assert (await adas.post(f"{RUN}/{live}/resume", {})).status == 200
    ended = await adas.post(f"{RUN}/{live}/cancel", {"reason": "enough"})
    assert (ended.status, ended.json["status"]) == (200, "failed")
    assert (await adas.post(f"{RUN}/{live}/cancel", {})).refused == (409, "session_not_running")
    assert (await adas.post(f"{RUN}/{live}/pause", {})).refused == (409, "session_ended")
    assert (await adas.post(RUN, {})).status == 201


async def test_who_may_only_look_runs_and_ends_nothing(adas: Web, vi: User) -> None:
    live = (await adas.post(RUN, {})).json["id"]
    vis = await calls_of(vi)
    for path in (RUN, f"{RUN}/{live}/cancel", f"{RUN}/{live}/pause"):
        assert (await vis.post(path, {})).refused == (403, "forbidden")


async def test_owners_switch_when_an_agent_runs_by_itself_and_run_it(
    adas: Web, ben: User, write_agent: Write, audited: list[audit.Entry]
) -> None:
    at = "/api/agents/daily/schedule"
    await in_thread(write_agent)("daily", kind="scheduled", schedule='"0 7 * * *"', timezone="UTC")
    await in_thread(schedules.sync)()
    bens = await calls_of(ben)
    assert (await bens.post(f"{at}/switch", {"isOn": False})).refused == (403, "forbidden")
    assert (await bens.post(f"{at}/run", {})).refused == (403, "forbidden")
    off = (await adas.post(f"{at}/switch", {"isOn": False})).json
    assert (off["isOn"], off["nextAt"], off["ticks"], off["cron"]) == (False, None, [], "0 7 * * *")
    ran = (await adas.post(f"{at}/run", {})).json
    assert (ran["outcome"], ran["isByHand"], len(ran["sessionId"])) == ("started", True, 36)
    on = (await adas.post(f"{at}/switch", {"isOn": True})).json
    assert on["nextAt"] and [each["sessionId"] for each in on["ticks"]] == [ran["sessionId"]]
    rows = [each for each in audited if each.tool == "agent-schedule"]
    assert [each.outcome for each in rows] == ["revoked", "granted", "granted"]
    assert (await adas.post("/api/agents/boss/schedule/run", {})).refused == (404, "not_found")


async def test_the_ledger_says_what_each_kind_has_cost(adas: Web) -> None:
    live = (await adas.post(RUN, {})).json["id"]
    await in_thread(_with_a_child)(live)
    found = (await adas.get(f"/api/workspaces/default/wakes?session={live}")).json
    (wake,) = found["wakes"]
    assert (wake["kind"], wake["state"], wake["costUsd"]) == ("state_change", "delivered", 0.25)
    assert found["costs"] == [{"kind": "state_change", "count": 1, "costUsd": 0.25}]
    (session,) = (await adas.get("/api/chat")).json["sessions"]
    assert session["activity"] == "quiescent"


def _done(session_id: Any, cost: float = 0) -> None:
    claimed = claim(session_id, Holder("w"))
    assert claimed
    finish.done(*claimed, {}, usage={}, cost_usd=cost)


def _with_a_child(live: str) -> None:
    _done(live)
    child = spawn(Session.objects.get(pk=live).pk, Order("writer", "Write.", "toolu_1"))
    _done(child.pk)
    _done(live, 0.25)


async def test_an_idle_one_whose_children_live_is_attentive(adas: Web) -> None:
    live = (await adas.post(RUN, {})).json["id"]
    await in_thread(_done)(live)
    await in_thread(spawn)(live, Order("writer", "Write.", "toolu_1"))
    assert (await adas.get(f"/api/chat/{live}")).json["activity"] == "attentive"


async def test_a_share_is_resolved_once(adas: Web, vi: User) -> None:
    live = (await adas.post(RUN, {})).json["id"]
    for n, title in enumerate(
        ["Needs human review: pears", "Needs cancellation: x", "Post-mortem: y", "Pears"]
    ):
        await in_thread(shares.share)(live, f"toolu_{n}", title, "It says **why**.")
    found = (await adas.get("/api/workspaces/default/shares")).json["shares"]
    assert [each["kind"] for each in found] == ["report", "post_mortem", "cancellation", "review"]
    path = f"/api/workspaces/default/shares/{found[-1]['id']}/resolve"
    assert (await (await calls_of(vi)).post(path, {})).refused == (403, "forbidden")
    assert (await adas.post(path, {})).json["resolvedBy"] == "ada"
    assert (await adas.post(path, {})).refused == (409, "already_decided")


class TestHelpers:
    """A process that speaks for an agent, by a token of its session."""

    @pytest.fixture
    async def held(self, adas: Web) -> Turn:
        live = (await adas.post(RUN, {})).json["id"]
        claimed = await in_thread(claim)(live, Holder("w"))
        assert claimed
        return claimed[0]

    def web(self, turn: Turn) -> Web:
        return Web({"authorization": f"Bearer {helpers.issue(turn)}"})

    def order(self, turn: Turn, **more: Any) -> dict[str, Any]:
        usual = {"agent_slug": "writer", "initial_prompt": "Write.", "parent_tool_use_id": "toolu_1"}
        return {**usual, "workspace_slug": "default", "parent_session_id": str(turn.session_id), **more}

    async def test_it_starts_reads_and_speaks_as_the_tools_do(self, held: Turn) -> None:
        web = self.web(held)
        made = [await web.post("/api/internal/sessions", self.order(held)) for _ in range(2)]
        assert {answer.status for answer in made} == {201}
        (child,) = {answer.json["sessionId"] for answer in made}
        said = await web.post(f"/api/internal/sessions/{child}/messages", {"text": "And quinces."})
        assert (said.status, said.json["status"]) == (202, "queued")
        read = (await web.get(f"/api/internal/sessions/{child}/events?after_seq=0")).json
        assert (read["status"], read["last_seq"], len(read["events"])) == ("pending", 5, 5)
        claimed = await in_thread(claim)(child, Holder("w"))
        assert claimed
        up = f"/api/internal/sessions/{held.session_id}/messages"
        told = await self.web(claimed[0]).post(up, {"text": "Half.", "needs_response": True})
        assert told.json == {"status": "sent"}

    async def test_it_is_refused_as_the_tools_are(self, held: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
        web = self.web(held)
        monkeypatch.setattr(spawning, "MOST_CHILDREN", 0)
        for more, refused in (
            ({}, (429, "too_many_children")),
            ({"workspace_slug": "elsewhere"}, (403, "workspace_mismatch")),
            ({"agent_slug": "default"}, (403, "agent_not_permitted")),
            ({"agent_slug": "boss"}, (403, "cycle")),
        ):
            assert (await web.post("/api/internal/sessions", self.order(held, **more))).refused == refused
        other = await Session.objects.acreate(
            workspace_id=held.session.workspace_id, vault_root="/", model="sonnet"
        )
        for method, path in (("post", "messages"), ("get", "events")):
            at = f"/api/internal/sessions/{other.pk}/{path}"
            answer = await (web.post(at, {"text": "x"}) if method == "post" else web.get(at))
            assert answer.refused == (403, "not_your_child")

    async def test_its_token_ends_with_its_turn_and_is_for_one_session(self, held: Turn, adas: Web) -> None:
        web = self.web(held)
        foreign = self.order(held, parent_session_id=str((await adas.say("hi"))["sessionId"]))
        assert (await web.post("/api/internal/sessions", foreign)).refused == (403, "forbidden")
        assert (await adas.post("/api/internal/sessions", self.order(held))).status == 401
        await Turn.objects.filter(pk=held.pk).aupdate(
            status="done", ended_at=held.created_at, boot=None, leased_at=None
        )
        assert (await web.post("/api/internal/sessions", self.order(held))).status == 401
        assert held.session.status == SessionStatus.RUNNING
