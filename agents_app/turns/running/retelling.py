"""What was said so far, told to an agent whose own memory of it is gone: the last messages that fit."""

from dataclasses import dataclass
from typing import Any

from agents_app.prompts.contexts import CHARACTERS_A_TOKEN, tokens_of
from sessions_app.history import conversation
from sessions_app.models import Session

MOST_TOKENS = 50_000
INTRODUCTION = (
    "## Earlier in this conversation\n\nYour own record of it is not at hand. This is what was said last, "
    "oldest first:"
)


@dataclass(frozen=True)
class Retold:
    text: str = ""
    messages: int = 0
    tokens: int = 0

    def before(self, text: str) -> str:
        return f"{self.text}\n\n---\n\n## Now\n\n{text}" if self.text else text


def retell(session: Session) -> Retold:
    room = MOST_TOKENS * CHARACTERS_A_TOKEN - len(INTRODUCTION)
    kept: list[str] = []
    for said in reversed(conversation.messages(session)):
        paragraph = _paragraph(said)
        if not paragraph:
            continue
        room -= len(paragraph) + 2
        if room < 0:
            break
        kept.append(paragraph)
    if not kept:
        return Retold()
    text = "\n\n".join((INTRODUCTION, *reversed(kept)))
    return Retold(text, len(kept), tokens_of(text))


def _paragraph(said: dict[str, Any]) -> str:
    """Words whole, tools and files by name: what they said is for the agent to look up again."""
    words = [_words(block) for block in said["content"]]
    words += [f"[attached {file['path']}]" for file in said.get("attachments", [])]
    text = "\n".join(word for word in words if word)
    who = "You" if said["role"] == "assistant" else "The person"
    return f"**{who}:** {text}" if text else ""


def _words(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", "")).strip()
        case "tool_use":
            return f"[used {block.get('name')}]"
    return ""
