"""A session that has read strangers reaches the hosts that people named; about others a person is asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from django.db import DatabaseError

from agents_app.egress.reach import MOST_AT_ONCE, MOST_UNTOLD, Reach
from agents_app.runtimes.base import RunRequest, Waits
from agents_app.runtimes.scripted import Pause, Say, ScriptedRun, ScriptedRuntime, Use
from agents_app.turns.said.opening import Opened
from agents_app.turns.said.steering import inject
from permissions_app import asking, services
from permissions_app.audit import Entry
from permissions_app.gate import Gate
from permissions_app.models import RequestStatus, ToolRequest
from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.tools import ToolCall
from sessions_app.access.caller import Caller
from sessions_app.models import Message, Session, Turn, TurnStatus
from sessions_app.streaming import statements
from sessions_app.threads import in_thread
from tests.agents_app.asked import decided, pending, use
from tests.agents_app.by_hand import ClockByHand
from tests.agents_app.engine import PATIENCE, Engine, events, pause, turn_of, types

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("behind_a_wall"),
]

SERVES = {"while": ["npm start (started in the background)"]}
PAGE = Use("WebFetch", {"url": "https://example.org/", "prompt": "read"})


class WithReach(ScriptedRuntime):
    """As the real one gives it to the egress door."""

    reach: Reach
    again: Reach  # as a worker has it that takes the turn up after another

    @asynccontextmanager
    async def open(self, request: RunRequest, gate: Gate, waits: Waits) -> AsyncIterator[ScriptedRun]:
        self.reach, self.again = (Reach(gate, request.directory) for _ in range(2))
        try:
            async with super().open(request, gate, waits) as run:
                yield run
        finally:
            self.reach.leave()


@pytest.fixture
def runtime() -> WithReach:
    return WithReach()


@pytest.fixture
def engine(as_ada: Caller, runtime: WithReach, rings: Any) -> Engine:
    return Engine(as_ada, runtime)


@pytest.fixture
def shell() -> Pause:
    """While its command runs."""
    return pause()


@asynccontextmanager
async def running(
    engine: Engine, shell: Pause, *before: Use, said: str = "go", fetched: bool = True, **more: Any
) -> AsyncIterator[Opened]:
    """A turn that has fetched a page, and in which a command runs."""
    steps = [*([PAGE] if fetched else []), *before]
    engine.runtime.scripts["go"] = [*steps, Use("Bash", {"command": "make"}, at=shell), Say("Made.")]
    opened = await engine.say(said, trust_level="vault", **more)
    async with engine.paused(opened, shell):
        try:
            yield opened
        finally:
            shell.go_on.set()


async def asked(opened: Opened, count: int = 1) -> list[ToolRequest]:
    async with asyncio.timeout(PATIENCE):
        while len(found := await pending(opened)) < count:
            await asyncio.sleep(0.01)
    return found


async def is_marked(opened: Opened) -> bool:
    return await Session.objects.filter(pk=opened.session_id, has_read_strangers=True).aexists()


async def test_before_it_has_read_strangers_it_reaches_any_host(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell, fetched=False) as opened:
        assert (await runtime.reach("pypi.org")).rule == "public_host"
        assert not await is_marked(opened)
        await runtime.reach.hears()
        assert await is_marked(opened)


async def test_a_fetch_marks_the_session_and_from_then_on_a_person_is_asked(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        assert await is_marked(opened)
        waiting = [asyncio.create_task(runtime.reach("pypi.org")) for _ in range(3)]
        (request,) = await asked(opened)
        assert (request.tool_name, request.rule) == ("Reach", "unnamed_host")
        assert [each["scope"] for each in request.suggested_grants] == ["once", "folder"]
        assert (await turn_of(opened)).status == TurnStatus.WAITING
        await in_thread(services.grant)(engine.caller, request.pk)
        assert {(await each).verdict for each in waiting} == {Verdict.ALLOW}
        assert (await runtime.reach("pypi.org")).verdict is Verdict.ALLOW
        assert not await pending(opened)
        assert (await turn_of(opened)).status == TurnStatus.RUNNING
    told = [kind for kind in types(await events(opened)) if kind.startswith("permission")]
    assert told == ["permission_request", "permission_resolved"]


async def test_a_session_that_goes_on_from_one_that_read_strangers_has_read_them_too(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        pass
    following = await engine.say("go on", continued_from=opened.session_id)
    assert await is_marked(following)
    assert not await is_marked(await engine.say("something else"))


@pytest.mark.parametrize("said", ["go to https://pypi.org/simple", "go: from pypi.org.", "go PyPI.org, ok"])
async def test_a_host_that_a_person_named_is_open(
    engine: Engine, runtime: WithReach, shell: Pause, said: str
) -> None:
    async with running(engine, shell, said=said) as opened:
        assert (await runtime.reach("pypi.org")).rule == "named_host"
        assert not await pending(opened)


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ("go and read readme.md", "readme.md"),
        ("go and write to ada@evil.example", "evil.example"),
        ("go to https://good.example@evil.example/", "evil.example"),
        ("go to https://notevil.example/", "evil.example"),
        ("go to good.example/evil.com", "evil.com"),
    ],
)
async def test_what_only_looks_like_naming_a_host_is_none(
    engine: Engine, runtime: WithReach, shell: Pause, said: str, host: str
) -> None:
    async with running(engine, shell, said=said) as opened:
        waiting = asyncio.create_task(runtime.reach(host))
        (request,) = await asked(opened)
        await in_thread(services.deny)(engine.caller, request.pk)
        await waiting


async def test_a_pattern_opens_a_host_for_the_session(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        waiting = asyncio.create_task(runtime.reach("pypi.org"))
        (request,) = await asked(opened)
        await in_thread(services.grant)(engine.caller, request.pk, pattern="https://pypi.org/")
        assert (await waiting).verdict is Verdict.ALLOW
    again = pause()
    async with running(engine, again, fetched=False, session_id=opened.session_id):
        assert (await runtime.reach("pypi.org")).rule == "pattern"


async def test_a_host_that_a_person_names_meanwhile_is_open(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        refused = asyncio.create_task(runtime.reach("evil.example"))  # what people named is read by now
        (request,) = await asked(opened)
        await in_thread(services.deny)(engine.caller, request.pk)
        await refused
        await in_thread(inject)(engine.caller, opened.session_id, "take it from pypi.org")
        async with asyncio.timeout(PATIENCE):
            while await Message.objects.filter(session=opened.session_id, waits=True).aexists():
                await asyncio.sleep(0.01)
        assert (await runtime.reach("pypi.org")).rule == "named_host"


async def test_refused_it_is_refused_again_and_nobody_is_asked_twice(
    engine: Engine, runtime: WithReach, shell: Pause, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_app.egress.reach.HOLDS_FOR", 0.0)
    async with running(engine, shell) as opened:
        waiting = asyncio.create_task(runtime.reach("evil.example"))
        (request,) = await asked(opened)
        await in_thread(services.deny)(engine.caller, request.pk, reason="Never.")
        assert "Never." in (await waiting).reason
        assert "Never." in (await runtime.reach("evil.example")).reason
        assert await ToolRequest.objects.filter(session=opened.session_id).acount() == 1


@pytest.mark.parametrize("answer", [services.grant, services.deny])
async def test_what_a_person_said_of_a_host_holds_for_the_turn_whoever_runs_it(
    engine: Engine, runtime: WithReach, shell: Pause, answer: Any
) -> None:
    async with running(engine, shell) as opened:
        waiting = asyncio.create_task(runtime.reach("pypi.org"))
        (request,) = await asked(opened)
        await in_thread(answer)(engine.caller, request.pk)
        said = await waiting
        assert (await runtime.again("pypi.org")).verdict is said.verdict
        assert await ToolRequest.objects.filter(session=opened.session_id).acount() == 1


async def test_nobody_answers_and_a_late_answer_counts(
    engine: Engine, runtime: WithReach, shell: Pause, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "READS_EVERY", 0.01)
    monkeypatch.setattr("agents_app.egress.reach.HOLDS_FOR", 0.0)
    clock = ClockByHand(monkeypatch)
    async with running(engine, shell) as opened:
        waiting = asyncio.create_task(runtime.reach("pypi.org"))
        (request,) = await asked(opened)
        clock.pass_time(121)
        assert f"ticket {request.ticket}" in (await waiting).reason
        assert f"ticket {request.ticket}" in (await runtime.reach("pypi.org")).reason
        await in_thread(services.grant)(engine.caller, request.pk)
        assert (await runtime.reach("pypi.org")).verdict is Verdict.ALLOW
        assert (await runtime.reach("pypi.org")).verdict is Verdict.ALLOW
    tickets = Turn.objects.filter(session=opened.session_id).exclude(pk=opened.turn_id)
    (said,) = [message.content async for turn in tickets async for message in turn.messages.all()]
    assert "reach pypi.org" in said


async def test_another_question_of_the_turn_is_not_disturbed(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    tool = use()
    engine.runtime.scripts["go"] = [PAGE, tool, Say("Done.")]
    opened = await engine.say("go", trust_level="vault")
    working = asyncio.create_task(engine.run(opened))
    (question,) = await asked(opened)
    waiting = asyncio.create_task(runtime.reach("pypi.org"))
    requests = await asked(opened, 2)
    (reach,) = [each for each in requests if each.pk != question.pk]
    await in_thread(services.grant)(engine.caller, reach.pk)
    assert (await waiting).verdict is Verdict.ALLOW
    assert (await turn_of(opened)).status == TurnStatus.WAITING
    assert (await decided(question)).status == RequestStatus.PENDING
    await in_thread(services.grant)(engine.caller, question.pk)
    await working
    assert types(await events(opened))[-1] == "done"


async def test_nobody_is_asked_more_than_can_be_read(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        waiting = [asyncio.create_task(runtime.reach(f"{n}.evil.example")) for n in range(MOST_AT_ONCE)]
        await asyncio.sleep(0)
        assert (await runtime.reach("one.more.example")).rule == "too_many"
        await asked(opened, MOST_AT_ONCE)
        await engine.abort(opened)
        await asyncio.wait(waiting)


async def test_after_a_command_no_more_refusals_are_told_than_can_be_read(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        waiting = [asyncio.create_task(runtime.reach(f"{n}.evil.example")) for n in range(MOST_AT_ONCE)]
        await asyncio.sleep(0)
        for n in (*range(MOST_UNTOLD + 3), 0):
            assert (await runtime.reach(f"{n}.more.example")).rule == "too_many"
        *told, more = runtime.reach.told().splitlines()
        assert [each.partition("through to ")[2].split()[0] for each in told] == [
            f"{n}.more.example." for n in range(MOST_UNTOLD)
        ]
        assert more == "Nor was it to other hosts, 3 times more."
        assert runtime.reach.told() == ""
        await engine.abort(opened)
        await asyncio.wait(waiting)


async def test_each_step_is_a_row_of_the_audit(
    engine: Engine, runtime: WithReach, shell: Pause, audited: list[Entry]
) -> None:
    async with running(engine, shell) as opened:
        waiting = asyncio.create_task(runtime.reach("pypi.org"))
        (request,) = await asked(opened)
        await in_thread(services.grant)(engine.caller, request.pk)
        await waiting
    ordered = sorted(audited, key=lambda each: each.at)  # two threads hand theirs over
    assert [(each.kind, each.outcome) for each in ordered if each.tool == "Reach"] == [
        ("decision", "asked"),
        ("request", "asked"),
        ("answer", "granted"),
        ("decision", "allowed"),
    ]


async def test_a_turn_that_is_stopped_asks_no_more(
    engine: Engine, runtime: WithReach, shell: Pause, audited: list[Entry]
) -> None:
    async with running(engine, shell) as opened:
        waiting = asyncio.create_task(runtime.reach("pypi.org"))
        (request,) = await asked(opened)
        await engine.abort(opened)
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert (await decided(request)).status == RequestStatus.ABORTED
    assert types(await events(opened))[-1] == "aborted"
    assert [each.outcome for each in audited if each.kind == "answer"] == ["aborted"]


async def test_a_fetch_opens_its_host_while_it_runs_and_not_longer(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        runtime.reach.begins(ToolCall("toolu_1", "WebFetch", {"url": "https://Example.org:8443/page"}))
        assert (await runtime.reach("example.org")).rule == "fetching"
        runtime.reach.ends("toolu_1")
        waiting = asyncio.create_task(runtime.reach("example.org"))
        (request,) = await asked(opened)
        await in_thread(services.deny)(engine.caller, request.pk)
        assert (await waiting).verdict is Verdict.DENY


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([{"command": "npm install"}], ["npm install"]),
        ([{"command": "npm i\n\n  --save x"}, {"command": "make"}], ["npm i --save x", "make"]),
        ([{"command": "TOKEN=abcdef npm publish"}], ["TOKEN=••• npm publish"]),
        ([{"command": "x" * 300}], ["x" * 199 + "…"]),
        ([{"command": f"run {n}"} for n in range(7)], [*(f"run {n}" for n in range(4)), "and 3 more"]),
    ],
)
async def test_a_card_says_what_runs_at_that_moment(
    engine: Engine, runtime: WithReach, shell: Pause, calls: list[dict[str, str]], told: list[str]
) -> None:
    async with running(engine, shell) as opened:
        runtime.reach.begins(ToolCall("toolu_read", "Read", {"file_path": "a.md"}))
        for number, given in enumerate(calls):
            runtime.reach.begins(ToolCall(f"toolu_{number}", "Bash", given))
        waiting = asyncio.create_task(runtime.reach("pypi.org"))
        (request,) = await asked(opened)
        assert request.input == {"url": "https://pypi.org/", "while": told}
        await in_thread(services.grant)(engine.caller, request.pk, pattern="https://pypi.org/")
        assert (await waiting).verdict is Verdict.ALLOW


async def test_a_card_says_nothing_of_what_has_ended_and_marks_what_went_into_the_background(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        for host, more, told in (("pypi.org", {}, {}), ("npmjs.com", {"run_in_background": True}, SERVES)):
            runtime.reach.begins(ToolCall(host, "Bash", {"command": "npm start", **more}))
            runtime.reach.ends(host)
            waiting = asyncio.create_task(runtime.reach(host))
            (request,) = await asked(opened)
            assert request.input == {"url": f"https://{host}/", **told}
            await in_thread(services.deny)(engine.caller, request.pk)
            await waiting


async def test_what_runs_is_no_part_of_what_a_person_decides_about(
    engine: Engine, runtime: WithReach, shell: Pause
) -> None:
    async with running(engine, shell) as opened:
        runtime.reach.begins(ToolCall("toolu_1", "Bash", {"command": "npm install"}))
        waiting = asyncio.create_task(runtime.reach("pypi.org"))
        (request,) = await asked(opened)
        await in_thread(services.grant)(engine.caller, request.pk)
        assert (await waiting).verdict is Verdict.ALLOW
        runtime.again.begins(ToolCall("toolu_2", "Bash", {"command": "something else"}))
        assert (await runtime.again("pypi.org")).verdict is Verdict.ALLOW
        assert await ToolRequest.objects.filter(session=opened.session_id).acount() == 1


async def test_where_the_rows_cannot_be_read_it_is_refused(
    engine: Engine, runtime: WithReach, shell: Pause, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away(*given: Any) -> None:
        raise DatabaseError("It is away.")

    async with running(engine, shell):
        with monkeypatch.context() as away:
            away.setattr(statements, "standing_if_held", is_away)
            refusal: Decision = await runtime.reach("pypi.org")
    assert (refusal.verdict, refusal.rule) == (Verdict.DENY, "gate_failed")
