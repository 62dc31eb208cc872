"""Asking a person, and waiting for the answer: the worker's side of a request.

1. Read the call: what a person is shown of it, and what makes it exactly this call.
2. Write the request, unless a person has decided exactly this call already and nobody used that.
3. Wait: for a ring, or two seconds, and then read the row. Rows are the truth; a lost ring costs seconds.
4. Nobody answered: it expires, and the agent is told the ticket under which a late answer comes.
5. What was granted is used, once, and only if it is still exactly this call.

Whatever else happens, the call is not made.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from django.utils import timezone

from permissions_app import services
from permissions_app.gate import TURN_LOST, Answer
from permissions_app.models import RequestKind, RequestStatus, ToolRequest
from permissions_app.rules.decision import Decision, Verdict, allow, deny
from permissions_app.rules.exact import exactly_this
from permissions_app.rules.places import written_by
from permissions_app.rules.request import read
from permissions_app.rules.setting import Setting, Trust
from permissions_app.rules.suggestions import exactly, permission_type, subject, suggested
from permissions_app.rules.tools import MEANWHILE, REACH, ToolCall, named_paths
from permissions_app.services.asked import NewRequest
from sessions_app.storable import storable
from sessions_app.streaming import bus
from sessions_app.streaming.bus import Listener
from sessions_app.streaming.log import Hold, HoldLost
from sessions_app.threads import in_thread

log = logging.getLogger(__name__)

READS_EVERY = 2.0  # seconds, beside the ring
# What is longer is not asked about: nobody could have read what they allow. So a card shows all of its call.
LONGEST_TEXT = 20_000  # characters of one text
LONGEST_COMMAND = 10_000
LARGEST_INPUT = 200_000
MOST_LINES = 2_500  # of it all: where a thousand are replaced by a thousand, a person is asked
QUESTION = "AskUserQuestion"

NOT_READABLE = deny("too_long_to_ask", "This is too long for a person to read. Split it into smaller calls.")
NO_QUESTION = deny("question", "It asks nothing: give questions with a text each.")
GRANTED = allow("person", "A person allowed this call.")
CHANGED = deny("changed", "What this call does changed while a person was asked. Make it again.")
SPENT = deny("spent", "What a person said to this call counts no more: it was used, or the turn was stopped.")


class Asking:
    """For one attempt of one turn. `settled`: what is told of the turn before its work is written; `told_of`:
    and so is the tool with this id."""

    def __init__(
        self,
        session_id: UUID,
        hold: Hold,
        *,
        agent: str,
        settled: Callable[[], Awaitable[None]],
        told_of: Callable[[str], Awaitable[None]],
    ) -> None:
        self._session_id = session_id
        self._hold = hold
        self._agent = agent
        self._settled = settled
        self._told_of = told_of

    async def __call__(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        try:
            return await self._ask(call, decision, setting)
        except HoldLost:
            return Answer(TURN_LOST)

    async def _ask(self, call: ToolCall, decision: Decision, setting: Setting) -> Answer:
        wanted = await asyncio.to_thread(self._read, call, decision, setting)
        if isinstance(wanted, Decision):
            return Answer(wanted)
        is_once = call.name == REACH  # a program tries again and again: it is one question in a turn
        await (self._settled() if is_once else self._told_of(call.id))  # the first is within a tool, not one
        request = await in_thread(services.ask)(self._hold, wanted, once_a_turn=is_once)
        try:
            request = await self._answered(request)
        except BaseException:
            # Cancelled, or the rows cannot be read: nobody waits for an answer any more.
            await self._close(request)
            raise
        return await self._use(request, call, setting)

    async def _close(self, request: ToolRequest) -> None:
        try:
            await in_thread(services.close)(self._hold, request.pk)
        except HoldLost:
            pass  # whoever took the turn back has closed it
        except Exception:
            log.exception("Request %s waits for nobody, and could not be closed", request.pk)

    def _read(self, call: ToolCall, decision: Decision, setting: Setting) -> NewRequest | Decision:
        """It looks at files: call it in a thread."""
        is_question = call.name == QUESTION
        if _is_too_long(call.input):
            return NOT_READABLE
        meanwhile = {MEANWHILE: list(call.meanwhile)} if call.meanwhile else {}
        shown = storable({**call.input, **meanwhile})
        if is_question and not _has_questions(shown):
            return NO_QUESTION
        grants = () if is_question else suggested(call, setting)
        return NewRequest(
            session_id=self._session_id,
            kind=RequestKind.QUESTION if is_question else RequestKind.APPROVAL,
            tool_name=call.name,
            tool_use_id=call.id,
            permission_type=permission_type(call).value,
            rule=decision.rule,
            why=decision.reason,
            input=shown,
            file_path=storable(next(iter(named_paths(call)), "")),
            directory=str(setting.working_directory),
            suggested_grants=[
                {"scope": each.scope.value, "pattern": each.pattern, "label": each.label} for each in grants
            ],
            subject=storable(subject(call, setting)),
            agent_name=self._agent,
            digest=exactly(call, setting),
            on_host=setting.trust is Trust.FULL or not setting.behind_wall,
        )

    async def _answered(self, request: ToolRequest) -> ToolRequest:
        """As it is once it is no longer pending."""
        async with _rings(self._hold.turn_id) as rung:
            while True:
                request = await in_thread(ToolRequest.objects.get)(pk=request.pk)
                if request.status != RequestStatus.PENDING:
                    return request
                left = (request.expires_at - timezone.now()).total_seconds()
                if left <= 0:
                    await in_thread(services.expire)(self._hold, request.pk)
                else:
                    await rung(min(left, READS_EVERY))

    async def _use(self, request: ToolRequest, call: ToolCall, setting: Setting) -> Answer:
        match request.status:
            case RequestStatus.GRANTED if self._holds(request, call):
                return Answer(GRANTED)
            case RequestStatus.GRANTED:
                digest, place = await asyncio.to_thread(_now, call, setting)
                if digest != request.digest:
                    return Answer(CHANGED)
                is_ours = await in_thread(services.use)(self._hold, request.pk)
                return Answer(GRANTED, place=place) if is_ours else Answer(SPENT)
            case RequestStatus.ANSWERED:
                is_ours = await in_thread(services.use)(self._hold, request.pk)
                return Answer(GRANTED, with_answers(call, request.answers)) if is_ours else Answer(SPENT)
            case RequestStatus.EXPIRED if request.is_question:
                return Answer(allow("question", "Nobody answered in time."), with_answers(call, {}))
            case RequestStatus.EXPIRED:
                return Answer(not_now(request))
            case RequestStatus.DENIED:
                said = f" They said: {request.reason}" if request.reason else ""
                return Answer(deny("person", f"A person did not allow this.{said}"))
        return Answer(deny("stopped", "The turn was stopped while a person was asked."))

    def _holds(self, request: ToolRequest, call: ToolCall) -> bool:
        """What was allowed of a host, and used, is good for the rest of its turn."""
        return call.name == REACH and request.used_at is not None and request.turn_id == self._hold.turn_id


def _now(call: ToolCall, setting: Setting) -> tuple[str, Path | None]:
    """What makes it this call, and where it writes, of one look: what a link is changed to between two is not
    what was allowed."""
    request = read(call, setting)
    return exactly_this(request), written_by(request)


def not_now(request: ToolRequest) -> Decision:
    return Decision(
        Verdict.DENY,
        "nobody_answered",
        f"Not now: nobody answered in time. This is ticket {request.ticket}; should a person allow it later, "
        "you are told. Go on with something else, or end your turn.",
    )


def with_answers(call: ToolCall, answers: Mapping[str, Any]) -> Mapping[str, Any]:
    """As the tool takes them: one text for each question."""
    texts = {
        question: ", ".join(said) if isinstance(said, list) else said for question, said in answers.items()
    }
    return {**call.input, "answers": texts}


Rung = Callable[[float], Awaitable[None]]


@asynccontextmanager
async def _rings(turn_id: UUID) -> AsyncIterator[Rung]:
    """Waits for a ring of this turn, or for a while. Where the bus is away it is the while."""
    async with AsyncExitStack() as stack:
        listener: Listener | None = None
        try:
            listener = await stack.enter_async_context(bus.current().subscribe(bus.turn_topic(turn_id)))
        except Exception:
            log.exception("There is no bell for what turn %s asks; its row is read again and again.", turn_id)

        async def rung(timeout: float) -> None:
            nonlocal listener
            if listener is None:
                await asyncio.sleep(timeout)
                return
            try:
                await listener.next(timeout)
            except Exception:
                log.exception(
                    "The bell for what turn %s asks broke; its row is read again and again.", turn_id
                )
                listener = None

        yield rung


def _has_questions(given: Mapping[str, Any]) -> bool:
    asked = given.get("questions")
    return (
        isinstance(asked, list)
        and bool(asked)
        and all(isinstance(each, dict) and isinstance(each.get("question"), str) for each in asked)
    )


def _is_too_long(given: Mapping[str, Any]) -> bool:
    return (
        len(str(given.get("command", ""))) > LONGEST_COMMAND
        or any(isinstance(part, str) and len(part) > LONGEST_TEXT for part in _parts(given))
        or sum(map(_lines, _parts(given))) > MOST_LINES
        or len(json.dumps(dict(given))) > LARGEST_INPUT
    )


def _lines(part: Any) -> int:
    """That it takes on a card, where each number in a list has one of its own."""
    return max(1, len(part.splitlines())) if isinstance(part, str) else 1


def _parts(given: Mapping[str, Any]) -> Iterator[Any]:
    """Keys too: they are shown as well. A loop and not a recursion: a model may nest as deep as it likes."""
    waiting: list[Any] = [given]
    while waiting:
        part = waiting.pop()
        yield part
        match part:
            case Mapping() as inner:
                waiting += (*inner.keys(), *inner.values())
            case list() | tuple() as inner:
                waiting += inner
