"""What comes out of a runtime, whatever runs inside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class BlockKind(StrEnum):
    TEXT = "text"
    THINKING = "thinking"


@dataclass(frozen=True)
class Ready:
    """The agent is up: what it may use, and as which model."""

    model: str
    tools: tuple[str, ...]
    mcp_servers: tuple[Mapping[str, str], ...]
    permission_mode: str
    was_warm: bool = False  # its process had rested since the turn before


@dataclass(frozen=True)
class Delta:
    """A piece of the block that is being written. One that starts while another is unfinished replaces it:
    the model was asked again."""

    kind: BlockKind
    text: str
    starts: bool = False


@dataclass(frozen=True)
class Said:
    """A finished block. Its deltas, if any came, join to exactly this content; where they do not, the model
    was asked again and answered in one piece, which takes their place."""

    kind: BlockKind
    content: str


@dataclass(frozen=True)
class Used:
    id: str
    name: str
    input: Mapping[str, Any]
    parent_id: str | None = None


@dataclass(frozen=True)
class Answered:
    tool_use_id: str
    content: str
    is_error: bool
    parent_id: str | None = None


@dataclass(frozen=True)
class Warned:
    """Something that a person should see and that does not end the turn."""

    code: str
    title: str
    message: str


@dataclass(frozen=True)
class Ended:
    """The end of an answer, or of a turn that was interrupted."""

    interrupted: bool = False
    response: str = ""
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float = 0.0


RuntimeEvent = Ready | Delta | Said | Used | Answered | Warned | Ended
