"""From the SDK's messages to the events of the seam."""

from collections.abc import Callable, Iterator
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from agents_app.model.door import Trouble
from agents_app.runtimes.claude.failures import failure_of, retry_of
from agents_app.runtimes.events import (
    Answered,
    BlockKind,
    Delta,
    Ended,
    Ready,
    RuntimeEvent,
    Said,
    Used,
)

INTERRUPTED = frozenset({"aborted_streaming", "aborted_tools"})


class Translator:
    """Remembers the little that one message needs of those before it."""

    def __init__(self, model_name: str = "", trouble: Callable[[], Trouble | None] = lambda: None) -> None:
        self._trouble = trouble  # what the door knows of a failure
        self._named = model_name  # what the model is called here, where that is not what the CLI calls it
        self._model = ""
        self._starts = False

    def events(self, message: Message) -> Iterator[RuntimeEvent]:
        match message:
            case StreamEvent() if message.parent_tool_use_id is None:
                yield from self._delta(message.event)
            case AssistantMessage():
                yield from self._assistant(message)
            case UserMessage() if isinstance(message.content, list):
                yield from _results(message)
            case SystemMessage(subtype="init"):
                yield self._ready(message.data)
            case SystemMessage(subtype="api_retry"):
                yield retry_of(message.data)
            case ResultMessage():
                yield self._ended(message)

    def _delta(self, event: dict[str, Any]) -> Iterator[Delta]:
        if event.get("type") == "content_block_start":
            self._starts = True
        if event.get("type") != "content_block_delta":
            return
        delta = event["delta"]
        kind = {"text_delta": BlockKind.TEXT, "thinking_delta": BlockKind.THINKING}.get(delta["type"])
        text = delta.get("text") or delta.get("thinking") or ""
        if kind and text:
            yield Delta(kind, text, starts=self._starts)
            self._starts = False

    def _assistant(self, message: AssistantMessage) -> Iterator[RuntimeEvent]:
        """A sub-agent's words stay inside; its tools are seen. An error told as text is told at the end."""
        for block in message.content:
            match block:
                case TextBlock(text=text) if text and not message.parent_tool_use_id and not message.error:
                    yield Said(BlockKind.TEXT, text)
                case ThinkingBlock(thinking=text) if text and not message.parent_tool_use_id:
                    yield Said(BlockKind.THINKING, text)
                case ToolUseBlock(id=id, name=name, input=given):
                    yield Used(id, name, given, message.parent_tool_use_id)

    def _ready(self, data: dict[str, Any]) -> Ready:
        self._model = self._named or str(data.get("model", ""))
        servers = tuple(
            {"name": str(s["name"]), "status": str(s["status"])} for s in data.get("mcp_servers", [])
        )
        return Ready(self._model, tuple(data.get("tools", ())), servers, str(data.get("permissionMode", "")))

    def _ended(self, result: ResultMessage) -> Ended:
        interrupted = result.terminal_reason in INTERRUPTED
        if result.is_error and not interrupted:
            raise failure_of(result, self._trouble())
        return Ended(
            interrupted=interrupted,
            response=result.result or "",
            model=self._model,
            usage=_usage(result.usage or {}),
            cost_usd=0.0 if self._named else result.total_cost_usd or 0.0,
        )


def _results(message: UserMessage) -> Iterator[Answered]:
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            text = _as_text(block.content)
            yield Answered(block.tool_use_id, text, bool(block.is_error), message.parent_tool_use_id)


def _as_text(content: str | list[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content)


def _usage(usage: dict[str, Any]) -> dict[str, int]:
    names = {
        "inputTokens": "input_tokens",
        "outputTokens": "output_tokens",
        "cacheReadTokens": "cache_read_input_tokens",
        "cacheCreationTokens": "cache_creation_input_tokens",
    }
    return {ours: int(usage.get(theirs) or 0) for ours, theirs in names.items()}
