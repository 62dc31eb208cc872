"""Tools of our own, served to an agent by its worker: no process, no command line, no secret on its way.

An app offers a server by putting a maker into `makers` in its `ready()`. What a tool closes over is the
session's id, and nothing that may be another one later: a process that rests serves the next turn too, so
rights, grants and the turn that runs are read at each call.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sessions_app.incidents import incident
from sessions_app.models import Session

log = logging.getLogger(__name__)

Arguments = Mapping[str, Any]


class ToolRefused(Exception):
    """Answered as a result that is an error, with a code of the wire and a sentence for the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Told(NamedTuple):
    """What the model is told of one use."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class OwnTool:
    """`call` gets the arguments and the id of this use, and answers what JSON can say. It raises ToolRefused;
    whatever else it raises is told to the model as a failure with an incident."""

    name: str
    description: str
    schema: Mapping[str, Any]  # of its arguments, as JSON Schema says it
    call: Callable[[Arguments, str], Awaitable[Any]] = field(compare=False)

    async def told(self, arguments: Arguments, use_id: str) -> Told:
        try:
            return Told(_as_json(await self.call(arguments, use_id)))
        except ToolRefused as refusal:
            return refused(refusal)
        except Exception as error:  # noqa: BLE001 - `incident` logs it
            return refused(ToolRefused("internal", incident(log, f"The tool {self.name}", error).message))


@dataclass(frozen=True)
class OwnServer:
    """Two are equal where an agent could not tell them apart."""

    name: str
    tools: tuple[OwnTool, ...]

    def full_name(self, tool: OwnTool) -> str:
        """As the CLI calls it."""
        return f"mcp__{self.name}__{tool.name}"

    def named(self, full_name: str) -> OwnTool | None:
        return next((tool for tool in self.tools if self.full_name(tool) == full_name), None)


Maker = Callable[[Session], OwnServer | None]  # None: not for this session
makers: list[Maker] = []


def servers_for(session: Session) -> tuple[OwnServer, ...]:
    made = (make(session) for make in makers)
    return tuple(server for server in made if server is not None)


def _as_json(said: Any) -> str:
    return json.dumps(said, ensure_ascii=False, default=str)


def refused(refusal: ToolRefused) -> Told:
    return Told(_as_json({"error": {"code": refusal.code, "message": refusal.message}}), is_error=True)
