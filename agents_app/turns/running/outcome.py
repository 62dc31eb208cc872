"""What a run came to, as its terminal event tells it."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from agents_app.errors import AgentError
from agents_app.runtimes.events import Ended
from agents_app.turns.running.kept import joined
from agents_app.turns.running.prepare import Prepared
from agents_app.turns.running.recorder import Recorder
from sessions_app.models import EventType

log = logging.getLogger(__name__)

STOPPED = AgentError("cli_crashed", "The agent stopped in the middle, and nobody had asked it to.")


@dataclass
class TurnOutcome:
    """The answers of one run: to its message, and to what was said meanwhile."""

    responses: list[str] = field(default_factory=list)
    model: str = ""
    usage: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0
    interrupted: bool = False

    def add(self, ended: Ended) -> None:
        if ended.response:
            self.responses.append(ended.response)
        self.model = ended.model
        self.usage.update(ended.usage)
        self.cost_usd += ended.cost_usd
        self.interrupted = ended.interrupted

    def as_done(self, prepared: Prepared, recorder: Recorder, *, seconds: float) -> dict[str, Any]:
        response = "\n\n".join(self.responses) or recorder.response
        return {
            "response": _whole(prepared.start.begun, response),
            "model": self.model,
            "durationMs": round(seconds * 1000),
            "toolCalls": recorder.tool_calls,
            "spawned": [],
            "permissionDenials": recorder.denials,
            "sessionResume": _session_resume(prepared, was_warm=recorder.was_warm),
            "usage": dict(self.usage),
            "costUsd": self.cost_usd,
        }


def _whole(begun: str, response: str) -> str:
    """With what was said before it was interrupted, unless it was said again."""
    return response if response.startswith(begun) else joined([begun, response])


def _session_resume(prepared: Prepared, *, was_warm: bool) -> dict[str, Any]:
    start = prepared.start
    return {
        "method": start.method,
        "sdkSessionValid": start.resumes,
        "sdkResumeAttempted": start.resumes or prepared.resume_failed,
        "contextInjected": bool(start.retold.text),
        "messagesInjected": start.retold.messages,
        "tokensEstimate": start.retold.tokens,
        "previousMessageCount": prepared.previous_messages,
        "loadedFromDisk": start.resumes and not was_warm,
        "cacheHit": was_warm,
    }


def problem_of(work: asyncio.Task[TurnOutcome]) -> BaseException | None:
    """Why it did not come to its end; None where it did. That somebody stopped it is known already."""
    if work.cancelled():
        return STOPPED
    return work.exception() or (STOPPED if work.result().interrupted else None)


def as_failure(turn_id: UUID, error: BaseException) -> tuple[EventType, dict[str, Any]]:
    """What a person may know of it; the log has the rest."""
    if isinstance(error, AgentError):
        log.warning("Turn %s failed: %s: %s", turn_id, error.code, error.message)
        return EventType.TYPED_ERROR, error.as_payload()
    incident = uuid4().hex[:12]
    log.error("Turn %s failed, incident %s", turn_id, incident, exc_info=error)
    text = f"Something failed that was not foreseen. The log has it as incident {incident}."
    return EventType.ERROR, {"error": text, "incidentId": incident}
