"""The one place that decides a tool call. It answers, always, and on any doubt it says no."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

from permissions_app.rules.decision import Decision, Verdict
from permissions_app.rules.ladder import ToolCall, decide
from permissions_app.rules.setting import Setting

log = logging.getLogger(__name__)

ANSWERS_WITHIN = 20.0  # seconds; the CLI itself blocks a call whose hook takes a minute

Heard = Callable[[ToolCall, Decision], Awaitable[None]]
Audit = Callable[[ToolCall, Decision, float], None]  # with how many ms it took; returns at once, never raises


def _unheard(call: ToolCall, decision: Decision, latency_ms: float) -> None: ...


class Gate:
    """The gate of one turn.

    `is_current` says whether the worker still holds the turn; `on_denied` writes a refusal into the stream;
    `audit` is told each decision.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        is_current: Callable[[], Awaitable[bool]],
        on_denied: Heard,
        audit: Audit = _unheard,
    ) -> None:
        self._audit = audit
        self.setting = setting
        self._is_current = is_current
        self._on_denied = on_denied
        self._allowed: dict[str, ToolCall] = {}
        self._refused: set[str] = set()

    async def __call__(self, call: ToolCall, directory: Path) -> Decision:
        """Decides one call of an agent that stands in `directory` at this moment."""
        began = monotonic()
        decision = await self._answer(call, directory)
        self._audit(call, decision, (monotonic() - began) * 1000)
        return decision

    async def _answer(self, call: ToolCall, directory: Path) -> Decision:
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                decision = await self._decide(call, replace(self.setting, working_directory=directory))
                if decision.verdict is Verdict.ALLOW:
                    self._allowed[call.id] = call
                else:
                    await self._refuse(call, decision)
        except Exception as error:
            log.exception("The gate failed and refused %s", call.name)
            return Decision(
                Verdict.DENY, "gate_failed", f"The gate could not decide ({type(error).__name__})."
            )
        return decision

    def allowed_this(self, call: ToolCall) -> bool:
        """Whether this very call, with this input, was allowed a moment ago."""
        return self._allowed.get(call.id) == call

    async def refused_elsewhere(self, call: ToolCall, rule: str, reason: str) -> Decision:
        """A refusal that the gate did not make itself, such as the CLI's own: told all the same, once."""
        decision = Decision(Verdict.DENY, rule, reason)
        if call.id not in self._refused:
            self._audit(call, decision, 0.0)
            await self._refuse(call, decision)
        return decision

    async def _refuse(self, call: ToolCall, decision: Decision) -> None:
        self._refused.add(call.id)
        await self._on_denied(call, decision)

    async def _decide(self, call: ToolCall, setting: Setting) -> Decision:
        if not await self._is_current():
            return Decision(Verdict.DENY, "turn_lost", "This turn has been taken over by another worker.")
        # In a thread: it looks at files, and a disk that hangs shall not hang every other turn.
        decision = await asyncio.to_thread(decide, call, setting)
        if decision.verdict is not Verdict.ASK:
            return decision
        # Asking a person comes with its own endpoints; until there are any, nobody could answer.
        return Decision(Verdict.DENY, decision.rule, f"{decision.reason} Nobody can be asked here yet.")
