"""What a script of a small language (`sed`, `awk`) does, for whoever reads the command that it is part of."""

from dataclasses import dataclass, field


@dataclass
class Script:
    is_readable: bool = True
    runs: bool = False  # it starts commands
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


class Unclear(Exception):
    """It, or two programs that read it, could mean two things."""
