"""The clock of the house: the times of agents are rows, which an operator may switch off; the sweeps of the
house itself stand in `celery.py` and nowhere else, so nobody can."""

from datetime import UTC, datetime
from typing import Any

from celery.beat import ScheduleEntry
from django_celery_beat.schedulers import DatabaseScheduler

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class HouseClock(DatabaseScheduler):
    _last_timestamp: datetime | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._own: dict[str, ScheduleEntry] = {}
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self._own = {
            name: ScheduleEntry(name=name, app=self.app, **entry)
            for name, entry in self.app.conf.beat_schedule.items()
        }
        _ = self.schedule

    @property
    def schedule(self) -> dict[str, ScheduleEntry]:
        return {**super().schedule, **self._own}

    def schedule_changed(self) -> bool:
        """As it is there, the first row that there ever is would be no change."""
        self._last_timestamp = self._last_timestamp or LONG_AGO
        return bool(super().schedule_changed())

    def reserve(self, entry: ScheduleEntry) -> ScheduleEntry:
        if entry.name not in self._own:
            return super().reserve(entry)
        self._own[entry.name] = next(entry)
        return self._own[entry.name]
