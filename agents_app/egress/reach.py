"""Which hosts the programs of one turn may reach: the gate's word, which may be a person's.

Each connection is a call of the tool `Reach`, which no agent has: so it is decided by the rules of WebFetch,
asked about with the same card, and told and audited like any call. Which program connects the door does not
see; the card says what runs at that moment.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from time import monotonic
from uuid import uuid4

from permissions_app.audit.masking import about
from permissions_app.gate import Gate
from permissions_app.rules.decision import Decision, Verdict, allow, deny
from permissions_app.rules.hosts import host_of
from permissions_app.rules.paths import NotUnderstood
from permissions_app.rules.tools import REACH, ToolCall, ToolKind, kind_of

HOLDS_FOR = 15.0  # seconds that a refusal is said again without asking: programs try, and try again
BY_PEOPLE = frozenset({"person", "nobody_answered"})

MOST_AT_ONCE = 20  # hosts of one turn that are decided about: a person is asked no more than can be read
TOO_MANY = deny("too_many", f"{MOST_AT_ONCE} hosts wait for an answer already. Wait for that, or name fewer.")
MOST_UNTOLD = 10  # hosts that one command was refused, named to the agent: a program can name any number
RUN_PROGRAMS = frozenset({ToolKind.SHELL, ToolKind.MCP})
MOST_TOLD = 4  # of what runs: the last line says how many more
FETCHING = allow("fetching", "The gate let a fetch from this host through, and it runs.")
GRANTED = allow("person", "A person allowed this host in this turn.")


class Reach:
    """Several connections to one host are one question. What a person allowed of one holds for the turn."""

    def __init__(self, gate: Gate, directory: Path) -> None:
        self.gate = gate
        self._directory = directory
        self._fetching: dict[str, str] = {}  # the host of each fetch that runs, by the call's id
        self._running: dict[str, ToolCall] = {}
        self._granted: set[str] = set()
        self._refused: dict[str, tuple[Decision, float]] = {}
        self._asking: dict[str, asyncio.Task[Decision]] = {}
        self._is_marked = False
        self._untold: dict[str, str] = {}
        self._untold_beyond = 0

    async def __call__(self, host: str) -> Decision:
        """Of a host, as it stands in a request. Waits as long as a person takes."""
        url = f"https://[{host}]/" if ":" in host else f"https://{host}/"
        with suppress(NotUnderstood):  # that is the gate's to say
            host = host_of(url)
        decision = self._known(host) or await self._decided(host, url)
        if decision.verdict is not Verdict.ALLOW:
            self._keep(host, decision.reason)
        return decision

    def told(self) -> str:
        """What was refused since this was asked last, for the agent to read."""
        lines = [f"This command was not let through to {host}. {why}" for host, why in self._untold.items()]
        if self._untold_beyond:
            lines.append(f"Nor was it to other hosts, {self._untold_beyond} times more.")
        self._untold, self._untold_beyond = {}, 0
        return "\n".join(lines)

    async def hears(self) -> None:
        """Before the first byte of an answer is passed on: whoever reads it reads a stranger's words."""
        if not self._is_marked:
            await self.gate.reads_strangers()
            self._is_marked = True

    def begins(self, call: ToolCall) -> None:
        """A call that the gate allowed. While a fetch runs, its host is open: nobody is asked twice."""
        with suppress(NotUnderstood):
            if call.name == "WebFetch":
                self._fetching[call.id] = host_of(str(call.input.get("url", "")))
            elif kind_of(call.name, call.input) in RUN_PROGRAMS:
                self._running[call.id] = call

    def ends(self, call_id: str) -> None:
        """It was answered. What went into the background goes on."""
        self._fetching.pop(call_id, None)
        if call_id in self._running and not _is_in_background(self._running[call_id]):
            del self._running[call_id]

    def leave(self) -> None:
        """The turn is over: nobody waits for an answer any more."""
        for task in self._asking.values():
            task.cancel()

    def _keep(self, host: str, reason: str) -> None:
        if host in self._untold or len(self._untold) < MOST_UNTOLD:
            self._untold[host] = reason
        else:
            self._untold_beyond += 1

    def _known(self, host: str) -> Decision | None:
        if host in self._fetching.values():
            return FETCHING
        if host in self._granted:
            return GRANTED
        refused, until = self._refused.get(host, (None, 0.0))
        return refused if monotonic() < until else None

    async def _decided(self, host: str, url: str) -> Decision:
        if host not in self._asking and len(self._asking) >= MOST_AT_ONCE:
            return TOO_MANY
        if host not in self._asking:
            task = self._asking[host] = asyncio.create_task(self._decide(host, url))
            task.add_done_callback(lambda _: self._asking.pop(host, None))
        return await asyncio.shield(self._asking[host])

    async def _decide(self, host: str, url: str) -> Decision:
        call = ToolCall(f"reach_{uuid4().hex}", REACH, {"url": url}, self._runs())
        decision = await self.gate(call, self._directory)
        if decision.verdict is Verdict.ASK:
            decision = (await self.gate.ask(call)).decision
        if decision.rule in BY_PEOPLE:
            if decision.verdict is Verdict.ALLOW:
                self._granted.add(host)
            else:
                self._refused[host] = decision, monotonic() + HOLDS_FOR
        return decision

    def _runs(self) -> tuple[str, ...]:
        """For whoever is asked: a line for each."""
        lines = tuple(_line(call) for call in self._running.values())
        more = len(lines) - MOST_TOLD
        return (*lines[:MOST_TOLD], f"and {more} more") if more > 0 else lines


def _line(call: ToolCall) -> str:
    if call.name != "Bash":
        return f"{call.name} {about(call.input)}"
    return about(call.input) + (" (started in the background)" if _is_in_background(call) else "")


def _is_in_background(call: ToolCall) -> bool:
    return call.input.get("run_in_background") is True
