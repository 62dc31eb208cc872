"""What the CLI refused by itself, read from its messages."""

from collections.abc import Iterator, Mapping

from claude_agent_sdk import Message, ResultMessage, ToolResultBlock, UserMessage

from permissions_app.rules.ladder import ToolCall

ITS_WORDS = ("has been denied.", "denied by your permission settings")


def refusals(message: Message, calls: Mapping[str, ToolCall]) -> Iterator[ToolCall]:
    """Told at once where the words of a result say so, and by the list at the end whatever its words are."""
    match message:
        case UserMessage(content=[*blocks]):
            for block in blocks:
                if isinstance(block, ToolResultBlock) and _is_refusal(block) and block.tool_use_id in calls:
                    yield calls[block.tool_use_id]
        case ResultMessage(permission_denials=[*denials]):
            for denial in denials:
                yield ToolCall(denial["tool_use_id"], denial["tool_name"], denial["tool_input"])


def _is_refusal(block: ToolResultBlock) -> bool:
    return bool(block.is_error) and any(words in str(block.content) for words in ITS_WORDS)
