"""The one place that decides a tool call. It answers, always, and on any doubt it says no."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from permissions_app.rules.decision import Decision, Verdict, allow, deny
from permissions_app.rules.ladder import ToolCall, decide
from permissions_app.rules.places import at_place, place_written
from permissions_app.rules.setting import Setting
from permissions_app.rules.tools import READS_STRANGERS
from sessions_app.threads import looked_up

log = logging.getLogger(__name__)

ANSWERS_WITHIN = 20.0  # seconds; the CLI itself blocks a call whose hook takes a minute

TURN_LOST = Decision(Verdict.DENY, "turn_lost", "This turn has been taken over by another worker.")

CARRIED_OUT = "carried_out"
NOT_CARRIED_OUT = "not_carried_out"
LEADS_ELSEWHERE = deny("changed", "Where this path leads changed meanwhile. Make the call again.")

Heard = Callable[[ToolCall, Decision], Awaitable[None]]
Audit = Callable[[ToolCall, Decision, float], None]  # with how many ms it took; returns at once, never raises
Standing = Callable[[Setting], Setting | None]  # asks the database: called in a thread


def _unheard(call: ToolCall, decision: Decision, latency_ms: float) -> None: ...


async def _unmarked() -> None: ...


@dataclass(frozen=True)
class Carried:
    """What came of a call that the server made in the place of the agent: what the tool answers with."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Answer:
    """What a call that was asked about comes to: never `ask` again. `input` takes the place of what the agent
    gave, where a person's answers belong into it. `place`: where the write that was allowed leads, as it was
    when it was found to be exactly that one. What was `carried` out must not be made again."""

    decision: Decision
    input: Mapping[str, Any] | None = None
    place: Path | None = None
    carried: Carried | None = None


class Asks(Protocol):
    """Asks a person about a call, and waits. May take as long as people do; what it raises is a refusal."""

    async def __call__(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer: ...


class Carries(Protocol):
    """Makes the writes that are allowed and that the agent's wall keeps it from."""

    def wants(self, call: ToolCall, place: Path, *, is_approved: bool) -> bool:
        """`is_approved`: by a person, and not by the rules alone."""

    async def __call__(self, call: ToolCall, place: Path) -> Carried:
        """Exactly this, exactly there."""


@dataclass(frozen=True)
class _Asked:
    call: ToolCall
    decision: Decision
    setting: Setting


class _Look(NamedTuple):
    decision: Decision
    setting: Setting
    place: Path | None = None  # where what is allowed writes, if somebody else may have to write it


class Gate:
    """The gate of one turn.

    `standing` gives the setting with what people have allowed by now, or None where the worker does not hold
    the turn any more; `on_denied` writes a refusal into the stream; `asks` asks a person, where somebody can
    be asked; `audit` is told each decision; `reads_strangers` is told, before it happens, that the session
    reads what strangers wrote.

    A call of which the rules say `ask` is answered so at once, because whoever waits for the gate does not
    wait for people. It is made only if `ask`, called for it afterwards, allows it. A write that the rules
    allow and the wall does not goes this way too: nobody is asked, and `carries`, which a runtime with a wall
    sets, makes it.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        standing: Standing,
        on_denied: Heard,
        asks: Asks | None = None,
        audit: Audit = _unheard,
        reads_strangers: Callable[[], Awaitable[None]] = _unmarked,
    ) -> None:
        self._audit = audit
        self.setting = setting
        self._standing = standing
        self._on_denied = on_denied
        self._asks = asks
        self.reads_strangers = reads_strangers
        self._allowed: dict[str, ToolCall] = {}
        self._asked: dict[str, _Asked] = {}
        self._refused: set[str] = set()
        self._untold: dict[str, Decision] = {}
        self._carried: set[str] = set()
        self.carries: Carries | None = None

    def stands_behind(self, carries: Carries | None, held: frozenset[str] = frozenset()) -> None:
        """The wall of this turn is there: who writes what it keeps closed, and the settings of repositories
        that it shows read-only."""
        self.carries = carries
        self.setting = replace(self.setting, held=held)

    async def __call__(self, call: ToolCall, directory: Path) -> Decision:
        """Decides one call of an agent that stands in `directory` at this moment."""
        began = monotonic()
        decision = await self._answer(call, directory)
        self._audit(call, decision, (monotonic() - began) * 1000)
        if decision.verdict is Verdict.ALLOW and self.asks_about(call):
            return replace(decision, verdict=Verdict.ASK)
        return decision

    async def _answer(self, call: ToolCall, directory: Path) -> Decision:
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                look = await looked_up(self._look)(call, directory)
                if look.decision.verdict is Verdict.ALLOW:
                    await self._mark(call, look.setting)
                decision = self._heard(call, look)
                if decision.verdict is Verdict.DENY:
                    await self._refuse(call, decision)
        except Exception as error:
            log.exception("The gate failed and refused %s", call.name)
            return self._failed(call, error)
        return decision

    def _look(self, call: ToolCall, directory: Path) -> _Look:
        """Whose turn it is, and what the rules say, who look at files. One way into a thread for all."""
        now = self._standing(self.setting)
        if now is None:
            return _Look(TURN_LOST, self.setting)
        is_there = now.working_directory == directory
        setting = now if is_there else replace(now, working_directory=directory)
        decision = self.decision_on(call, setting)
        is_allowed = decision.verdict is Verdict.ALLOW
        return _Look(decision, setting, place_written(call, setting) if is_allowed and self.carries else None)

    def decision_on(self, call: ToolCall, setting: Setting) -> Decision:
        """What the rules say. A gate of something other than a turn may have others."""
        return decide(call, setting)

    def _heard(self, call: ToolCall, look: _Look) -> Decision:
        """Keeps what was found, for when the CLI comes with this call once more."""
        decision, setting, place = look
        match decision.verdict:
            case Verdict.ALLOW if (
                self.carries and place and self.carries.wants(call, place, is_approved=False)
            ):
                self._asked[call.id] = _Asked(call, decision, setting)
            case Verdict.ALLOW:
                self._allowed[call.id] = call
            case Verdict.ASK if self._asks is None:
                return Decision(Verdict.DENY, decision.rule, f"{decision.reason} Nobody can be asked here.")
            case Verdict.ASK:
                self._asked[call.id] = _Asked(call, decision, setting)
        return decision

    async def _mark(self, call: ToolCall, setting: Setting) -> None:
        if call.name in READS_STRANGERS and not setting.has_read_strangers:
            await self.reads_strangers()

    def allowed_this(self, call: ToolCall) -> bool:
        """Whether this very call, with this input, was allowed a moment ago."""
        return self._allowed.get(call.id) == call

    def asks_about(self, call: ToolCall) -> bool:
        """Whether of this very call it was said a moment ago that a person is to be asked."""
        asked = self._asked.get(call.id)
        return asked is not None and asked.call == call

    async def ask(self, call: ToolCall) -> Answer:
        """Waits for a person's answer to a call that it `asks_about`. Once a call. Until it is allowed it
        counts as refused by the gate, also where nobody waits for the answer any more."""
        answer: Answer | None = None
        began = monotonic()
        self._refused.add(call.id)
        try:
            asked = self._asked.pop(call.id)
            assert asked.call == call
            answer = await self._answer_to(asked)
            self._audit(call, answer.decision, (monotonic() - began) * 1000)
            if answer.carried:
                return answer
            if answer.decision.verdict is Verdict.ALLOW:
                await self._mark(call, asked.setting)
                self._allowed[call.id] = call
                self._refused.discard(call.id)
            else:
                await self._refuse(call, answer.decision)
        except Exception as error:
            log.exception("Nobody could be asked, and %s was refused", call.name)
            if answer is not None and answer.decision.verdict is Verdict.DENY:
                return answer
            failed = self._failed(call, error)
            self._audit(call, failed, (monotonic() - began) * 1000)
            return Answer(failed)
        return answer

    async def refused_elsewhere(self, call: ToolCall, rule: str, reason: str) -> Decision:
        """A refusal that the gate did not make itself, such as the CLI's own: told all the same, once. Of one
        that it made and could not tell it is reminded."""
        if failed := self._untold.pop(call.id, None):
            await self._refuse(call, failed)
            return failed
        decision = Decision(Verdict.DENY, rule, reason)
        if call.id not in self._refused | self._carried:
            self._audit(call, decision, 0.0)
            await self._refuse(call, decision)
        return decision

    def _failed(self, call: ToolCall, error: Exception) -> Decision:
        """The stream may be what failed: it is told of this with the end of the turn."""
        decision = deny("gate_failed", f"The gate could not decide ({type(error).__name__}).")
        self._refused.add(call.id)
        self._untold[call.id] = decision
        return decision

    async def _refuse(self, call: ToolCall, decision: Decision) -> None:
        self._refused.add(call.id)
        if decision is not TURN_LOST:  # whoever has the turn now writes its rows
            await self._on_denied(call, decision)

    async def _answer_to(self, asked: _Asked) -> Answer:
        """The rules are asked again before a person is, who may have answered for this call with another, and
        after: people take their time, and what is denied by then stays denied, whatever they saw."""
        now = await self._again(asked)
        if now.verdict is not Verdict.ASK:
            return await self._carry(asked, Answer(now))
        if self._asks is None:
            return Answer(deny(now.rule, f"{now.reason} Nobody can be asked here."))
        answer = await self._asks(asked.call, now, asked.setting)
        if answer.decision.verdict is not Verdict.ALLOW:
            return answer
        then = await self._again(asked)
        if then.verdict is Verdict.DENY:
            return Answer(then)
        return await self._carry(asked, answer, by_person=True)

    async def _carry(self, asked: _Asked, answer: Answer, *, by_person: bool = False) -> Answer:
        """The same answer, or what came of it where the server makes the write. The rules say once more what
        they say of the very place, because a link on the way to it may have been swapped since."""
        if self.carries is None or answer.decision.verdict is not Verdict.ALLOW:
            return answer
        place = answer.place or await asyncio.to_thread(place_written, asked.call, asked.setting)
        if place is None or not self.carries.wants(asked.call, place, is_approved=by_person):
            return answer
        there = await self._again(replace(asked, call=at_place(asked.call, place)))
        if there.verdict is Verdict.DENY:
            return Answer(there)
        if there.verdict is Verdict.ASK and not by_person:
            return Answer(LEADS_ELSEWHERE)
        self._carried.add(asked.call.id)
        carried = await self.carries(asked.call, place)
        rule = NOT_CARRIED_OUT if carried.is_error else CARRIED_OUT
        return Answer(allow(rule, carried.text), carried=carried)

    async def _again(self, asked: _Asked) -> Decision:
        look = await looked_up(self._look)(asked.call, asked.setting.working_directory)
        return look.decision
