"""What a request to the Messages API asks, read from its JSON.

The CLI sends more than people type: reminders around their words, marks of an interruption, and what
they said while it worked as a message of the role `system`. Here only the people are left.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_OF_A_SKILL = "Base directory for this skill:"  # the CLI hands one over as if a person had said it
_INTERRUPTED = re.compile(r"^\[Request interrupted by user[^\]]*\]$", re.MULTILINE)
_MEANWHILE = re.compile(
    r"The user sent a new message while you were working:\n"
    r"(.*?)(?=\n\nThis is how Claude Code|\n</system-reminder>|\Z)",
    re.DOTALL,
)
_DIRECTORY = re.compile(r"^\W*Primary working directory: (/.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class ToolResult:
    """What a tool answered, with the call that it answers."""

    id: str
    text: str
    is_error: bool
    name: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """Something that a person said, and how many times the model has answered since."""

    text: str
    rounds: int


@dataclass(frozen=True)
class Asked:
    """The last thing a person said, and what has happened since."""

    text: str
    results: tuple[ToolResult, ...]
    tools: frozenset[str]
    system: str
    body: dict[str, Any]
    rounds: int = 0
    meanwhile: tuple[Said, ...] = ()
    earlier: str = ""
    times: int = 1  # how often it was said without anything else between
    directory: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def read(body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Asked:
    turn = _Turn()
    for message in body["messages"]:
        turn.add(message)
    system = _text(body.get("system", ""))
    return Asked(
        text=turn.text,
        results=tuple(turn.results),
        tools=frozenset(str(tool.get("name")) for tool in body.get("tools", [])),
        system=system,
        body=body,
        rounds=turn.rounds,
        meanwhile=tuple(Said(text, turn.rounds - before) for text, before in turn.meanwhile),
        earlier=turn.earlier,
        times=turn.times,
        directory=_directory(system, body["messages"]),
        headers=headers or {},
    )


class _Turn:
    """Hears a conversation message by message, and remembers what belongs to its last turn."""

    def __init__(self) -> None:
        self.text = self.earlier = ""
        self.times = 0
        self._begin("")

    def _begin(self, text: str) -> None:
        self.times = self.times + 1 if text == self.text else 1
        self.text = text
        self.rounds = 0
        self.results = list[ToolResult]()
        self.meanwhile = list[tuple[str, int]]()
        self._calls = dict[str, dict[str, Any]]()
        self._model_spoke_last = False

    def add(self, message: dict[str, Any]) -> None:
        match message.get("role"):
            case "assistant":
                self._answer(message)
            case "user":
                self._hear(message)
            case "system":
                self._notice(_text(message.get("content", "")))

    def _answer(self, message: dict[str, Any]) -> None:
        # A transcript has a row for each block: what stands together was one answer.
        self.rounds += not self._model_spoke_last
        self._model_spoke_last = True
        calls = (block for block in _blocks(message) if block.get("type") == "tool_use")
        self._calls |= {str(call.get("id")): call for call in calls}

    def _hear(self, message: dict[str, Any]) -> None:
        self._model_spoke_last = False
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                self.results.append(self._result(block))
            elif block.get("type") == "text":
                self._notice(str(block.get("text", "")))
                if said := _said(block):
                    self.earlier = self.text or self.earlier
                    self._begin(said)

    def _notice(self, text: str) -> None:
        self.meanwhile += [(said.strip(), self.rounds) for said in _MEANWHILE.findall(text)]

    def _result(self, block: dict[str, Any]) -> ToolResult:
        id = str(block.get("tool_use_id"))
        call = self._calls.get(id, {})
        text = _REMINDER.sub("", _text(block.get("content", ""))).strip("\n")
        return ToolResult(
            id, text, bool(block.get("is_error")), str(call.get("name", "")), call.get("input", {})
        )


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _said(block: dict[str, Any]) -> str:
    text = _INTERRUPTED.sub("", _REMINDER.sub("", str(block.get("text", "")))).strip()
    return "" if text.startswith(_OF_A_SKILL) else text


def _text(content: Any) -> str:
    """The text of a content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)


def _directory(system: str, messages: list[dict[str, Any]]) -> str:
    """Where the CLI works, as it told the model last; empty where it told nothing.

    Only what the CLI says itself counts: a person may quote such a line too.
    """
    told = [place for text in _told(system, messages) for place in _DIRECTORY.findall(text)]
    return told[-1] if told else ""


def _told(system: str, messages: list[dict[str, Any]]) -> Iterator[str]:
    yield system
    for message in messages:
        text = _text(message.get("content", ""))
        if message.get("role") == "system":
            yield text
        elif message.get("role") == "user":
            yield from _REMINDER.findall(text)
