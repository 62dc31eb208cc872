"""What was found in a command line."""

from dataclasses import dataclass, field
from enum import IntEnum

from permissions_app.rules.git_settings import Change
from permissions_app.rules.paths import Place


class Outcome(IntEnum):
    """The worst in a line counts, so they are in order."""

    WORDS = 0
    UNREADABLE = 1
    SECRET = 2
    DANGEROUS = 3


@dataclass(frozen=True)
class Command:
    """A simple command: its words without quotes."""

    words: tuple[str, ...]


@dataclass
class Reading:
    outcome: Outcome = Outcome.WORDS
    commands: list[Command] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)  # what its words would be as paths
    writes: list[Place] = field(default_factory=list)  # those of them that it writes or removes
    scripts: list[Place] = field(default_factory=list)  # files that may hold what it runs
    settings: list[Change] = field(default_factory=list)  # what it changes in repositories' settings
    # Something makes words mean another thing than they say (a function, an alias, a variable in front), or
    # starts a command from words, or is known at run time only: no pattern holds for such a line.
    indirect: bool = False
    stops_computer: bool = False  # or all that its user runs

    def found(self, outcome: Outcome) -> None:
        self.outcome = max(self.outcome, outcome)
