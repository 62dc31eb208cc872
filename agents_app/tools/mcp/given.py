"""A server as a run is given it: written into a file that its CLI reads, and into no command line."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class GivenServer:
    name: str
    kind: str
    config: str = field(repr=False)  # as JSON, with its secrets
    asks: bool = False  # a person, before each tool's first use in a session

    @property
    def is_process(self) -> bool:
        return self.kind == "stdio"

    @property
    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.config)
        return found


def given(name: str, config: dict[str, Any], *, asks: bool) -> GivenServer:
    return GivenServer(name, config["type"], json.dumps(config), asks)


def file_for(servers: Iterable[tuple[str, dict[str, Any]]]) -> str:
    return json.dumps({"mcpServers": dict(servers)})
