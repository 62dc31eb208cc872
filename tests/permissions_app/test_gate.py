"""The gate answers, always, and on any doubt it says no."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from permissions_app import gate as gates
from permissions_app.audit import Entry
from permissions_app.audit.decisions import TurnAudit
from permissions_app.gate import Answer, Carried, Gate
from permissions_app.rules.decision import Decision, Verdict, allow, deny
from permissions_app.rules.ladder import ToolCall
from permissions_app.rules.setting import Patterns, Setting, Trust

READ = ToolCall("t1", "Read", {"file_path": "Welcome.md"})
SECRET = ToolCall("t2", "Read", {"file_path": ".env"})
STEERING = ToolCall("t5", "Write", {"file_path": "CLAUDE.md", "content": "x"})
PLAIN = ToolCall("t6", "Write", {"file_path": "Garden/Pears.md", "content": "x"})
QUESTION = ToolCall("t3", "AskUserQuestion", {"questions": []})


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    (tmp_path / "vault/Garden").mkdir(parents=True)
    return Setting(
        trust=Trust.VAULT,
        behind_wall=True,
        operator=False,
        vault=tmp_path / "vault",
        working_directory=tmp_path / "vault",
        home=tmp_path / "home",
        scratch=None,
        own_config=None,
        own_servers=frozenset(),
    )


class Turn:
    """What the gate asks of a turn, and what it tells it."""

    def __init__(self) -> None:
        self.is_held: bool | Exception = True
        self.refusals: list[tuple[str, str]] = []

    def standing(self, setting: Setting) -> Setting | None:
        if isinstance(self.is_held, Exception):
            raise self.is_held
        return setting if self.is_held else None

    async def on_denied(self, call: ToolCall, decision: Decision) -> None:
        self.refusals.append((call.id, decision.rule))


class Person:
    def __init__(self) -> None:
        self.says: Decision | BaseException = allow("person", "Yes.")
        self.meanwhile: Callable[[], object] = lambda: None
        self.asked: list[ToolCall] = []
        self.place: Path | None = None

    async def __call__(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        self.asked.append(call)
        self.meanwhile()
        if isinstance(self.says, BaseException):
            raise self.says
        return Answer(self.says, place=self.place)


@pytest.fixture
def turn() -> Turn:
    return Turn()


@pytest.fixture
def gate(setting: Setting, turn: Turn) -> Gate:
    return Gate(setting, standing=turn.standing, on_denied=turn.on_denied)


async def test_what_is_allowed_is_let_through_with_this_very_input(gate: Gate, setting: Setting) -> None:
    assert (await gate(READ, setting.vault)).verdict is Verdict.ALLOW
    assert gate.allowed_this(READ)
    assert not gate.allowed_this(replace(READ, input={"file_path": "Other.md"}))
    assert not gate.allowed_this(replace(READ, id="t9"))
    assert not gate.allowed_this(replace(READ, name="Write"))


async def test_what_is_denied_is_told_once(gate: Gate, setting: Setting, turn: Turn) -> None:
    assert (await gate(SECRET, setting.vault)).verdict is Verdict.DENY
    await gate.refused_elsewhere(SECRET, "deny_list", "The CLI says so too.")
    assert turn.refusals == [("t2", "deny_list")]
    assert not gate.allowed_this(SECRET)


async def test_a_refusal_by_the_cli_alone_is_told_too(gate: Gate, turn: Turn) -> None:
    decision = await gate.refused_elsewhere(SECRET, "deny_list", "The CLI says so.")
    assert (decision.verdict, turn.refusals) == (Verdict.DENY, [("t2", "deny_list")])


async def test_where_nobody_can_be_asked_it_is_denied(gate: Gate, setting: Setting, turn: Turn) -> None:
    decision = await gate(QUESTION, setting.vault)
    assert decision.verdict is Verdict.DENY
    assert "Nobody can be asked here" in decision.reason
    assert turn.refusals == [("t3", "question")]


async def test_a_path_is_read_from_where_the_agent_stands(gate: Gate, setting: Setting) -> None:
    up = ToolCall("t4", "Read", {"file_path": "../Welcome.md"})
    assert (await gate(up, setting.vault / "Garden")).verdict is Verdict.ALLOW
    assert (await gate(up, setting.vault)).verdict is Verdict.DENY


async def test_a_worker_that_lost_its_turn_lets_nothing_run(gate: Gate, setting: Setting, turn: Turn) -> None:
    turn.is_held = False
    decision = await gate(READ, setting.vault)
    assert (decision.verdict, decision.rule) == (Verdict.DENY, "turn_lost")
    assert not gate.allowed_this(READ)


class TestAsking:
    """A call of which the rules say `ask` is answered so at once, and made only if `ask` allows it."""

    @pytest.fixture
    def person(self) -> "Person":
        return Person()

    @pytest.fixture
    def gate(self, setting: Setting, turn: Turn, person: "Person") -> Gate:
        return Gate(setting, standing=turn.standing, on_denied=turn.on_denied, asks=person)

    async def test_it_is_made_if_a_person_allows_it(self, gate: Gate, setting: Setting) -> None:
        assert (await gate(QUESTION, setting.vault)).verdict is Verdict.ASK
        assert gate.asks_about(QUESTION)
        assert not gate.asks_about(replace(QUESTION, input={}))
        assert not gate.allowed_this(QUESTION)
        assert (await gate.ask(QUESTION)).decision.verdict is Verdict.ALLOW
        assert gate.allowed_this(QUESTION)
        assert not gate.asks_about(QUESTION)

    async def test_what_they_do_not_allow_is_told(
        self, gate: Gate, setting: Setting, turn: Turn, person: "Person"
    ) -> None:
        person.says = deny("person", "No.")
        await gate(QUESTION, setting.vault)
        assert (await gate.ask(QUESTION)).decision == person.says
        assert turn.refusals == [("t3", "person")]

    async def test_what_the_rules_allow_by_now_is_not_asked_about(
        self, gate: Gate, setting: Setting, person: "Person", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await gate(QUESTION, setting.vault)
        monkeypatch.setattr(gates, "decide", lambda *_: allow("pattern", "A pattern covers it."))
        assert (await gate.ask(QUESTION)).decision.rule == "pattern"
        assert person.asked == []

    async def test_what_the_rules_deny_by_then_is_not_made(
        self, gate: Gate, setting: Setting, person: "Person", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await gate(QUESTION, setting.vault)
        person.meanwhile = lambda: monkeypatch.setattr(gates, "decide", lambda *_: deny("link", "A link."))
        assert (await gate.ask(QUESTION)).decision.rule == "link"
        assert not gate.allowed_this(QUESTION)

    async def test_nor_where_the_turn_is_lost_by_then(
        self, gate: Gate, setting: Setting, turn: Turn, person: "Person"
    ) -> None:
        await gate(QUESTION, setting.vault)
        person.meanwhile = lambda: setattr(turn, "is_held", False)
        assert (await gate.ask(QUESTION)).decision.rule == "turn_lost"

    async def test_nor_where_asking_fails(
        self, gate: Gate, setting: Setting, person: "Person", caplog: pytest.LogCaptureFixture
    ) -> None:
        await gate(QUESTION, setting.vault)
        person.says = ConnectionError("sk-ant-secret")
        answer = await gate.ask(QUESTION)
        assert (answer.decision.verdict, answer.decision.rule) == (Verdict.DENY, "gate_failed")
        assert "sk-ant" not in answer.decision.reason
        assert not gate.allowed_this(QUESTION)

    async def test_nor_what_nobody_was_to_be_asked_about(
        self, gate: Gate, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert (await gate.ask(QUESTION)).decision.verdict is Verdict.DENY


class Server:
    """Makes writes in the place of the agent, below a wall that leaves nothing open."""

    def __init__(self) -> None:
        self.made: list[tuple[ToolCall, Path]] = []
        self.comes_to: Carried | Exception = Carried("Done: it is written.")

    def wants(self, call: ToolCall, place: Path, *, is_approved: bool) -> bool:
        return True

    async def __call__(self, call: ToolCall, place: Path) -> Carried:
        self.made.append((call, place))
        if isinstance(self.comes_to, Exception):
            raise self.comes_to
        return self.comes_to


class TestCarrying:
    """What is allowed and what the wall keeps the agent from, the server makes."""

    @pytest.fixture
    def person(self) -> Person:
        return Person()

    @pytest.fixture
    def server(self) -> Server:
        return Server()

    @pytest.fixture
    def rules(self) -> list[str]:
        return []

    @pytest.fixture
    def gate(self, setting: Setting, turn: Turn, person: Person, server: Server, rules: list[str]) -> Gate:
        gate = Gate(
            setting,
            standing=turn.standing,
            on_denied=turn.on_denied,
            asks=person,
            audit=lambda call, decision, ms: rules.append(f"{decision.verdict} {decision.rule}"),
        )
        gate.stands_behind(server)
        return gate

    async def test_what_a_person_allows(
        self, gate: Gate, setting: Setting, turn: Turn, server: Server, rules: list[str]
    ) -> None:
        await gate(STEERING, setting.vault)
        answer = await gate.ask(STEERING)
        assert answer.carried == server.comes_to
        assert server.made == [(STEERING, setting.vault / "CLAUDE.md")]
        assert rules == ["ask control_file", "allow carried_out"]
        assert not gate.allowed_this(STEERING)
        assert not gate.asks_about(STEERING)
        await gate.refused_elsewhere(STEERING, "deny_list", "The CLI was told no, and tells it.")
        assert turn.refusals == []

    async def test_what_the_rules_allow_asks_nobody(
        self, gate: Gate, setting: Setting, person: Person, server: Server, rules: list[str]
    ) -> None:
        assert (await gate(PLAIN, setting.vault)).verdict is Verdict.ASK
        assert (await gate.ask(PLAIN)).carried == server.comes_to
        assert person.asked == []
        assert rules == ["allow writing", "allow carried_out"]

    async def test_what_is_no_write_goes_on_as_ever(
        self, gate: Gate, setting: Setting, server: Server
    ) -> None:
        assert (await gate(READ, setting.vault)).verdict is Verdict.ALLOW
        await gate(QUESTION, setting.vault)
        assert (await gate.ask(QUESTION)).carried is None
        assert server.made == []

    async def test_what_they_do_not_allow_is_not_made(
        self, gate: Gate, setting: Setting, person: Person, server: Server
    ) -> None:
        person.says = deny("person", "No.")
        await gate(STEERING, setting.vault)
        assert (await gate.ask(STEERING)).carried is None
        assert server.made == []

    async def test_what_could_not_be_made_is_no_denial(
        self, gate: Gate, setting: Setting, turn: Turn, server: Server, rules: list[str]
    ) -> None:
        server.comes_to = Carried("The disk is full.", is_error=True)
        await gate(STEERING, setting.vault)
        answer = await gate.ask(STEERING)
        assert answer.carried == server.comes_to
        assert rules[-1] == "allow not_carried_out"
        assert turn.refusals == []

    async def test_nor_is_it_let_through_where_making_it_fails(
        self, gate: Gate, setting: Setting, server: Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.comes_to = ConnectionError()
        await gate(STEERING, setting.vault)
        assert (await gate.ask(STEERING)).decision.rule == "gate_failed"
        assert not gate.allowed_this(STEERING)

    async def test_a_link_that_leads_to_a_secret_by_then_is_denied(
        self, gate: Gate, setting: Setting, person: Person, server: Server
    ) -> None:
        person.meanwhile = lambda: (setting.vault / "CLAUDE.md").symlink_to(setting.vault / ".env")
        await gate(STEERING, setting.vault)
        assert (await gate.ask(STEERING)).decision.rule == "deny_list"
        assert server.made == []

    async def test_the_place_that_was_allowed_is_judged_whatever_the_path_leads_to_by_then(
        self, gate: Gate, setting: Setting, person: Person, server: Server
    ) -> None:
        """It was found to be the call that a person allowed while a link led to a secret for a moment."""
        person.place = setting.vault / ".env"
        await gate(STEERING, setting.vault)
        assert (await gate.ask(STEERING)).decision.rule == "deny_list"
        assert server.made == []

    async def test_what_the_rules_allowed_at_another_place_is_not_made(
        self, gate: Gate, setting: Setting, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await gate(PLAIN, setting.vault)
        monkeypatch.setattr(gates, "place_written", lambda *_: setting.vault / "CLAUDE.md")
        assert (await gate.ask(PLAIN)).decision.rule == "changed"
        assert server.made == []

    async def test_nor_where_the_turn_is_lost_by_then(
        self, gate: Gate, setting: Setting, turn: Turn, person: Person, server: Server
    ) -> None:
        await gate(STEERING, setting.vault)
        person.meanwhile = lambda: setattr(turn, "is_held", False)
        assert (await gate.ask(STEERING)).decision.rule == "turn_lost"
        assert server.made == []


class TestItFailsClosed:
    async def test_where_the_turn_cannot_be_looked_at(
        self, gate: Gate, setting: Setting, turn: Turn, caplog: pytest.LogCaptureFixture
    ) -> None:
        turn.is_held = ConnectionError("sk-ant-secret")
        decision = await gate(READ, setting.vault)
        assert (decision.verdict, decision.rule) == (Verdict.DENY, "gate_failed")
        assert "sk-ant" not in decision.reason

    async def test_where_a_rule_raises(
        self, gate: Gate, setting: Setting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def raises(*_: object) -> Decision:
            raise RecursionError

        monkeypatch.setattr(gates, "decide", raises)
        assert (await gate(READ, setting.vault)).verdict is Verdict.DENY

    async def test_where_a_refusal_cannot_be_written(
        self, setting: Setting, turn: Turn, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def fails(*_: object) -> None:
            raise ConnectionError

        gate = Gate(setting, standing=turn.standing, on_denied=fails)
        assert (await gate(SECRET, setting.vault)).verdict is Verdict.DENY

    async def test_where_a_file_makes_it_wait(
        self, gate: Gate, setting: Setting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A disk that hangs. The loop, and with it every other turn, goes on meanwhile."""
        asked, answers = threading.Event(), threading.Event()

        def hangs(*_: Any) -> Decision:
            asked.set()
            answers.wait(20)
            return Decision(Verdict.ALLOW, "late", "too late")

        monkeypatch.setattr(gates, "decide", hangs)
        monkeypatch.setattr(gates, "ANSWERS_WITHIN", 0.05)
        decision = await gate(READ, setting.vault)
        answers.set()
        assert asked.is_set()
        assert (decision.verdict, decision.rule) == (Verdict.DENY, "gate_failed")
        assert not gate.allowed_this(READ)


async def test_each_decision_is_audited_once_with_what_it_took(setting: Setting, turn: Turn) -> None:
    heard: list[tuple[str, Verdict, str]] = []

    def audit(call: ToolCall, decision: Decision, latency_ms: float) -> None:
        assert 0 <= latency_ms < 20_000
        heard.append((call.id, decision.verdict, decision.rule))

    gate = Gate(setting, standing=turn.standing, on_denied=turn.on_denied, audit=audit)
    allowed = await gate(READ, setting.vault)
    await gate(SECRET, setting.vault)
    await gate.refused_elsewhere(SECRET, "deny_list", "The CLI says so too.")
    await gate.refused_elsewhere(QUESTION, "deny_list", "The CLI alone says so.")
    turn.is_held = ConnectionError()
    await gate(PLAIN, setting.vault)
    await gate.refused_elsewhere(PLAIN, "deny_list", "The CLI lists it with what it refused.")
    assert [(each[0], each[1].value, each[2]) for each in heard] == [
        ("t1", "allow", allowed.rule),
        ("t2", "deny", "deny_list"),
        ("t3", "deny", "deny_list"),
        ("t6", "deny", "gate_failed"),
    ]
    assert turn.refusals == [("t2", "deny_list"), ("t3", "deny_list"), ("t6", "gate_failed")]


@pytest.mark.parametrize(
    ("says", "rules"),
    [(asyncio.CancelledError(), ["control_file"]), (ConnectionError(), ["control_file", "gate_failed"])],
)
async def test_what_nobody_answered_is_not_laid_to_the_deny_list(
    setting: Setting, turn: Turn, says: BaseException, rules: list[str]
) -> None:
    """The CLI lists an interrupted call with what it refused."""
    heard: list[str] = []
    person = Person()
    person.says = says
    gate = Gate(
        setting,
        standing=turn.standing,
        on_denied=turn.on_denied,
        asks=person,
        audit=lambda call, decision, took: heard.append(decision.rule),
    )
    await gate(STEERING, setting.vault)
    with suppress(asyncio.CancelledError):
        await gate.ask(STEERING)
    await gate.refused_elsewhere(STEERING, "deny_list", "The CLI lists it with what it refused.")
    assert heard == rules
    assert turn.refusals == [("t5", rule) for rule in rules[1:]]


async def test_an_audit_row_names_the_pattern_that_covered_the_call(
    setting: Setting, turn: Turn, audited: list[Entry]
) -> None:
    told = TurnAudit("user:1", None, uuid4(), None)
    allowed = replace(setting, patterns=Patterns(write=("Garden/*",)), trust_mode=False)
    gate = Gate(allowed, standing=turn.standing, on_denied=turn.on_denied, audit=told)
    assert (await gate(PLAIN, setting.vault)).verdict is Verdict.ALLOW
    assert [(each.rule, each.pattern) for each in audited] == [("pattern", "Garden/*")]
