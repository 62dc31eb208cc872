"""What happened, as a short table."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from tests.processes.program import TERMINAL
from tests.soak.kept import Kept
from tests.soak.killer import NAMES, Kill
from tests.soak.load import Conversation


@dataclass
class Report:
    seed: int
    home: Path
    kills: Sequence[Kill] = ()
    conversations: Sequence[Conversation] = ()
    kept: Kept = field(default_factory=lambda: Kept([], []))
    settled: float = 0.0
    stopped: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([*self._table(), *self._what_is_wrong()])

    def recoveries(self) -> dict[str, list[float]]:
        """Seconds from a kill until a session that waited went on, by who was killed."""
        return {
            name: [seconds for kill in self.kills if kill.name == name for seconds in kill.recoveries]
            for name in NAMES
        }

    def _table(self) -> Iterator[str]:
        yield f"seed {self.seed}"
        yield f"{'killed':12}{'times':>6}   seconds until a waiting session went on: median, worst"
        times = Counter(kill.name for kill in self.kills)
        for name, found in self.recoveries().items():
            seconds = f"{median(found):.1f}, {max(found):.1f}  ({len(found)})" if found else "nobody waited"
            yield f"{name:12}{times[name]:6}   {seconds}"
        turns = self.kept.turns
        restarts = [turn.restarts for turn in turns]
        yield f"{len(self.conversations)} sessions, {len(turns)} messages, {len(self.kept.events)} rows"
        lost = sum(map(bool, restarts))
        yield f"{sum(restarts)} restarts of {lost} turns, at most {max(restarts, default=0)} of one"
        instead: Counter[str] = sum((each.instead for each in self.conversations), Counter())
        yield f"tried again: {', '.join(f'{count} x {what}' for what, count in instead.most_common())}"
        yield f"the longest time without an answer was {self._longest_silence():.1f} s"
        yield f"settled in {self.settled:.1f} s after the last kill, stopped in {self.stopped:.1f} s"

    def _longest_silence(self) -> float:
        """Of all sessions together: a soak in which nothing runs proves nothing."""
        rows = [row for talk in self.conversations for row in talk.rows if row["type"] in TERMINAL]
        ends = sorted(datetime.fromisoformat(row["ts"]).timestamp() for row in rows)
        return max((later - earlier for earlier, later in pairwise(ends)), default=0.0)

    def _what_is_wrong(self) -> Iterator[str]:
        yield from (f"WRONG  {problem}" for problem in self.problems)
        if self.problems:
            yield f"{len(self.problems)} things are wrong. Logs and database: {self.home}"
        else:
            yield "Every message was answered once, in order."
