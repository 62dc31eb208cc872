from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from permissions_app.rules.decision import Decision
from permissions_app.rules.ladder import ToolCall, decide
from permissions_app.rules.setting import Setting, Trust

KEY = "-----BEGIN PRIVATE KEY-----\nMIIE\n"


@dataclass(frozen=True)
class Room:
    """A session of Ada's: at vault trust and behind a wall, unless a test says otherwise."""

    setting: Setting

    def with_(self, **changes: Any) -> "Room":
        return Room(replace(self.setting, **changes))

    @property
    def at_full(self) -> "Room":
        return self.with_(trust=Trust.FULL, behind_wall=False, operator=True)

    @property
    def without_wall(self) -> "Room":
        return self.with_(behind_wall=False)

    @property
    def sandboxed(self) -> "Room":
        return self.with_(trust=Trust.SANDBOXED)

    @property
    def vault(self) -> Path:
        return self.setting.vault

    @property
    def outside(self) -> Path:
        return self.vault.parent / "outside"

    @property
    def scratch(self) -> Path:
        assert self.setting.scratch
        return self.setting.scratch

    def decide(self, tool: str, /, **arguments: Any) -> Decision:
        return decide(ToolCall("toolu_1", tool, arguments), self.setting)

    def rule(self, tool: str, /, **arguments: Any) -> tuple[str, str]:
        decision = self.decide(tool, **arguments)
        return decision.verdict.value, decision.rule

    def read(self, path: Path | str) -> tuple[str, str]:
        return self.rule("Read", file_path=str(path))

    def write(self, path: Path | str) -> tuple[str, str]:
        return self.rule("Write", file_path=str(path), content="text")

    def bash(self, command: str) -> tuple[str, str]:
        return self.rule("Bash", command=command)
