"""What the log and the audit are told of the connections of one process: each, or how many."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any
from uuid import UUID

from agents_app.egress.refusals import Refusal
from agents_app.egress.requests import Destination
from permissions_app.audit import AuditKind, Entry, Outcome

logger = logging.getLogger(__name__)

Heard = Callable[[Entry], None]


@dataclass(frozen=True)
class Telling:
    heard: Heard
    session_id: UUID
    turn_id: UUID | None  # the one that it began in, though it ends meanwhile

    def one(self, wanted: Destination, outcome: Outcome, rule: str, *, began: float) -> None:
        logger.info(
            "Session %s: %s:%d was %s (%s).", self.session_id, wanted.host, wanted.port, outcome, rule
        )
        took = (monotonic() - began) * 1000
        self._hear(outcome, rule, {"host": wanted.host, "port": wanted.port}, took)

    def again(self, times: Counter[Refusal]) -> None:
        """Of refusals that were told a moment ago: how often each was repeated."""
        logger.info("Session %s: and %d more in the same second.", self.session_id, times.total())
        again = {str(each): count for each, count in times.items()}
        self._hear(Outcome.DENIED, "refused_again", {"more": times.total(), "again": again})

    def _hear(
        self, outcome: Outcome, rule: str, arguments: Mapping[str, Any], took: float | None = None
    ) -> None:
        entry = Entry(
            kind=AuditKind.EGRESS,
            outcome=outcome,
            session_id=self.session_id,
            turn_id=self.turn_id,
            tool="egress",
            arguments=arguments,
            rule=rule,
            latency_ms=took,
        )
        self.heard(entry)
