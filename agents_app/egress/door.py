"""The one way from an agent behind a wall to the web: a forward proxy in the worker's event loop.

It resolves a name itself, once; every address must be of the public web; and it connects to an address that
it looked at, so no second answer of a name server leads elsewhere (`web.py`). It follows nothing and
looks into nothing.

Behind the wall is no network but a loopback of its own. What starts an agent there (`launcher/inside.py`)
opens a listening socket on that loopback and hands it over here (`handover.py`): from then on whoever
connects to it in there is served out here, and no process of ours has to stay inside.
"""

import asyncio
import logging
import secrets
import socket as sockets
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol
from uuid import UUID

from agents_app.egress import requests
from agents_app.egress.handover import Handover
from agents_app.egress.names import MOST_OF_ONE, Resolve, resolved
from agents_app.egress.refusals import Refusal, Refusals
from agents_app.egress.requests import Destination, Refused
from agents_app.egress.telling import Heard, Telling
from agents_app.egress.web import PublicWeb, reads_as_public
from permissions_app import audit
from permissions_app.audit import Outcome
from permissions_app.rules.decision import Decision, Verdict

logger = logging.getLogger(__name__)

PORTS = frozenset({80, 443, 8080, 8443})
PIECE = 64 << 10
MOST_AT_ONCE = 32  # connections of one process
OWN = 8  # characters that a process has for itself in the name of its socket


@dataclass(frozen=True)
class Limits:
    head: float = 10.0  # seconds until a request is there
    connect: float = 20.0  # seconds to resolve and connect
    idle: float = 60.0  # seconds without a byte in either direction
    whole: float = 600.0  # seconds of one connection
    size: int = 256 << 20  # bytes of one connection, both directions together
    counts: float = 1.0  # seconds in which refusals that repeat one are counted


class Reaches(Protocol):
    """Says of the hosts of one turn whether they may be reached. What it raises is a refusal."""

    async def __call__(self, host: str) -> Decision:
        """May ask a person, and wait."""

    async def hears(self) -> None:
        """Told before the first byte of an answer is passed on. Where it raises none is."""

    def leave(self) -> None:
        """The turn is over."""


@dataclass(eq=False)
class EgressPass:
    """What lets one process out, while a turn runs in it."""

    session_id: UUID
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    turn_id: UUID | None = None
    reach: Reaches | None = field(default=None, repr=False)
    connections: set["asyncio.Task[None]"] = field(default_factory=set, repr=False)
    lookups: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_OF_ONE), repr=False)
    handover: Handover = field(init=False, repr=False)
    refusals: Refusals = field(init=False, repr=False)
    server: asyncio.Server | None = field(default=None, repr=False)
    is_open: asyncio.Event = field(default_factory=asyncio.Event, repr=False)  # once it has its server
    _issued: set["EgressPass"] = field(default_factory=set, repr=False)

    def enter(self, turn_id: UUID, reach: Reaches) -> None:
        self.refusals.end()
        self.turn_id, self.reach = turn_id, reach

    def leave(self) -> None:
        """Between turns nothing goes out, and what went is cut."""
        self.refusals.end()
        if self.reach is not None:
            self.reach.leave()
        self.turn_id, self.reach = None, None
        for each in self.connections:
            each.cancel()

    def revoke(self) -> None:
        self._issued.discard(self)
        self.leave()
        self.handover.close()
        if self.server is not None:
            self.server.close()


class Egress:
    """`place` is how the paths of its sockets begin; they end at 107 bytes. `also` are addresses that count
    as public: for tests, whose traffic stays on the loopback."""

    def __init__(
        self,
        place: Path,
        *,
        resolve: Resolve = resolved,
        ports: frozenset[int] = PORTS,
        also: frozenset[str] = frozenset(),
        limits: Limits | None = None,
        heard: Heard = audit.record,
    ) -> None:
        self._place = place
        self._ports, self._limits = ports, limits or Limits()
        self._web = PublicWeb(resolve, also, patience=self._limits.connect)
        self._heard = heard
        self._issued: set[EgressPass] = set()
        self._remove_leftovers()

    def close(self) -> None:
        for known in tuple(self._issued):
            known.revoke()

    def issue(self, session_id: UUID) -> EgressPass:
        """With a socket that is this process's alone, and closed once it has handed its listener over."""
        known = EgressPass(session_id, _issued=self._issued)
        path = self._place.with_name(f"{self._place.name}-{secrets.token_hex(OWN // 2)}")
        take = partial(self._take_over, known)
        known.handover = Handover(path, known.token, take, patience=self._limits.head)
        known.refusals = Refusals(lambda times: self._telling(known).again(times), lasts=self._limits.counts)
        self._issued.add(known)
        return known

    def _remove_leftovers(self) -> None:
        """Of a worker of this name that was killed. Their length says that they are not those of `a-b`, where
        this one is `a`."""
        length = len(self._place.name) + 1 + OWN
        for each in self._place.parent.iterdir():
            if each.name.startswith(f"{self._place.name}-") and len(each.name) == length and each.is_socket():
                each.unlink()

    async def _take_over(self, known: EgressPass, listener: sockets.socket) -> None:
        """Once for each process, before its agent runs: an agent could make a listener of its own that holds
        the whole loop up, by keeping a second handle on it."""
        known.server = await asyncio.start_server(
            partial(self._serve, known), sock=listener, limit=requests.LONGEST, start_serving=False
        )
        await known.server.start_serving()  # it is in the pass by now: who revokes that ends it
        known.is_open.set()

    async def _serve(self, known: EgressPass, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        known.connections.add(task)
        try:
            if len(known.connections) > 4 * MOST_AT_ONCE:
                raise ConnectionAbortedError  # it does not wait for answers: this one is not even read
            await self._answer(known, reader, writer)
        except Refused as refused:
            with suppress(OSError):
                writer.write(refused.response())
                await writer.drain()
        except (TimeoutError, OSError, asyncio.CancelledError):
            writer.transport.abort()  # half an answer must not look whole
        finally:
            known.connections.discard(task)
            writer.close()

    async def _answer(self, known: EgressPass, reader: StreamReader, writer: StreamWriter) -> None:
        async with asyncio.timeout(self._limits.head):
            wanted = await requests.read(reader)
        tell = partial(self._telling(known).one, wanted, began=monotonic())
        try:
            reach, rule = await self._let_through(known, wanted)
            remote = await self._web.connected(wanted, known.lookups)
        except Refused as refused:
            refusal = Refusal(wanted.host, wanted.port, refused.rule)
            await known.refusals.tell(refusal, partial(tell, Outcome.DENIED, refused.rule))
            raise
        tell(Outcome.ALLOWED, rule)
        try:
            if wanted.is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                remote[1].write(wanted.head)
            await self._relay((reader, writer), remote, reach.hears)
        finally:
            remote[1].close()

    async def _let_through(self, known: EgressPass, wanted: Destination) -> tuple[Reaches, str]:
        """By which rule. Before the name is looked up: to look it up tells its server something already."""
        reach = known.reach
        if known.turn_id is None or reach is None:
            raise Refused(403, "no_turn", "No turn is running: nothing goes out between turns.")
        if len(known.connections) > MOST_AT_ONCE:
            raise Refused(503, "too_many", f"An agent may have {MOST_AT_ONCE} connections at once.")
        if wanted.port not in self._ports:
            ports = ", ".join(map(str, sorted(self._ports)))
            raise Refused(403, "port", f"Only the ports {ports} are open to agents.")
        if not reads_as_public(wanted.host):
            raise Refused(403, "private_host", "This is no host of the public web. Agents reach no other.")
        try:
            decision = await reach(wanted.host)
        except Exception as error:
            logger.exception("Nobody could say whether %s may be reached.", wanted.host)
            raise Refused(403, "gate_failed", "Parachute could not decide about this host.") from error
        if decision.verdict is not Verdict.ALLOW:
            raise Refused(403, decision.rule, decision.reason)
        return reach, decision.rule

    async def _relay(
        self,
        ours: tuple[StreamReader, StreamWriter],
        remote: tuple[StreamReader, StreamWriter],
        hears: Callable[[], Awaitable[None]],
    ) -> None:
        """Until the host has said all, or a limit is met."""
        left, end = self._limits.size, asyncio.get_running_loop().time() + self._limits.whole

        async def pump(reader: StreamReader, writer: StreamWriter, limit: asyncio.Timeout) -> None:
            nonlocal left
            while piece := await reader.read(PIECE):
                left -= len(piece)
                if left < 0:
                    raise OSError("too large")
                limit.reschedule(min(asyncio.get_running_loop().time() + self._limits.idle, end))
                if reader is remote[0]:
                    await hears()
                writer.write(piece)
                await writer.drain()
            writer.write_eof()

        async with asyncio.timeout(self._limits.idle) as limit:
            sending = asyncio.create_task(pump(ours[0], remote[1], limit))
            try:
                await pump(remote[0], ours[1], limit)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    def _telling(self, known: EgressPass) -> Telling:
        return Telling(self._heard, known.session_id, known.turn_id)
