"""What an agent is told before anybody speaks: from which source, of which parts, and how long each is. The
turn sends this, `prompt_metadata` tells it, and the page shows it: one function makes it for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents_app.definitions.definition import Definition
from agents_app.prompts import contexts
from agents_app.prompts.contexts import Context, tokens_of

AGENTS = "other agents"
Source = Literal["claude_code_preset", "custom", "agent"]


@dataclass(frozen=True)
class Part:
    """Without a text it is the preset, which the CLI brings."""

    name: str
    text: str

    @property
    def tokens(self) -> int:
        return tokens_of(self.text)


@dataclass(frozen=True)
class Prompt:
    source: Source
    system: str  # empty: the preset
    context: Context
    block: str = ""  # of the agents that it may start, behind all else

    @property
    def parts(self) -> list[Part]:
        first = {"claude_code_preset": "Claude Code", "custom": "systemPrompt", "agent": "agent"}[self.source]
        behind = [Part(AGENTS, self.block)] if self.block else []
        return [Part(first, self.system), *(Part(name, text) for name, text in self.context.parts), *behind]

    @property
    def tokens(self) -> int:
        """Of what is ours to tell: the preset's own length is the CLI's."""
        return self.context.tokens + tokens_of(self.system) + tokens_of(self.block)

    def sent(self) -> tuple[str, str]:
        """In the place of the preset, and behind it. The block stands behind whichever it is."""
        if self.system:
            return _joined(self.system, self.block), self.context.text
        return "", _joined(self.context.text, self.block)


def assembled(
    definition: Definition,
    *,
    own: str,
    vault: Path,
    directory: Path,
    chosen: Iterable[str],
    block: str = "",
) -> Prompt:
    """`own` is the system prompt of the request, which stands alone. An agent's own prompt takes the place of
    the preset; of the context files it is told those that somebody chose for its session."""
    if own:
        return Prompt("custom", own, contexts.NONE, block)
    if definition.prompt:
        return Prompt("agent", definition.prompt, contexts.of_chosen(vault, chosen), block)
    return Prompt("claude_code_preset", "", contexts.assemble(vault, directory, chosen), block)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
