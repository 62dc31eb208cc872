"""When a cron line is due. Its times are those of a clock on the wall: one that the clock leaves out is due
at the moment in which it jumps over it, and one that it shows twice is due the first time."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
DAYS_LOOKED_AT = 366 * 8 + 3  # the 29th of February is eight years from the last one, at times


@dataclass(frozen=True)
class Cron:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    is_any_day: bool
    is_any_weekday: bool

    @classmethod
    def of(cls, line: str) -> "Cron":
        """A line that `schema.py` has taken."""
        parts = line.split()
        minutes, hours, days, months, weekdays = (
            _numbers(part, *bounds) for part, bounds in zip(parts, _BOUNDS, strict=True)
        )
        return cls(
            minutes,
            hours,
            days,
            months,
            frozenset(each % 7 for each in weekdays),
            is_any_day=parts[2].startswith("*"),
            is_any_weekday=parts[4].startswith("*"),
        )

    def last_before(self, now: datetime, zone: tzinfo) -> datetime | None:
        """The newest time, until now, at which it was due. None for a line that never is."""
        local = now.astimezone(zone)
        day = local.date() + timedelta(
            days=1
        )  # where the clock was set back, tomorrow may have begun already
        for _ in range(DAYS_LOOKED_AT):
            if self._is_on(day) and (found := self._last_of(day, now, zone)):
                return found
            day -= timedelta(days=1)
        return None

    def first_after(self, now: datetime, zone: tzinfo) -> datetime | None:
        day = now.astimezone(zone).date() - timedelta(days=1)
        for _ in range(DAYS_LOOKED_AT):
            if self._is_on(day):
                due = [each for each in self._times(day, zone) if each > now]
                if due:
                    return min(due)
            day += timedelta(days=1)
        return None

    def _is_on(self, day: date) -> bool:
        """Where a line names days of the month and of the week, either will do, as cron has it."""
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.is_any_day or self.is_any_weekday:
            return of_month and of_week
        return of_month or of_week

    def _last_of(self, day: date, now: datetime, zone: tzinfo) -> datetime | None:
        return max((each for each in self._times(day, zone) if each <= now), default=None)

    def _times(self, day: date, zone: tzinfo) -> list[datetime]:
        return [
            _in_utc(datetime.combine(day, time(hour, minute)), zone)
            for hour in self.hours
            for minute in self.minutes
        ]


def _numbers(part: str, lowest: int, highest: int) -> frozenset[int]:
    found: set[int] = set()
    for each in part.split(","):
        span, _, step = each.partition("/")
        first, _, last = span.partition("-")
        if first == "*":
            begin, end = lowest, highest
        else:
            begin = int(first)
            end = int(last) if last else highest if step else begin
        found.update(range(begin, end + 1, int(step or 1)))
    return frozenset(found)


def _in_utc(local: datetime, zone: tzinfo) -> datetime:
    """One that the clock leaves out becomes the moment of the jump: there and back again it is another
    time."""
    at = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) == local:
        return at
    return _jump(at - timedelta(hours=3), at + timedelta(hours=3), zone)


def _jump(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The minute in which the clock is put forward, between these."""
    first = before.astimezone(zone).utcoffset()
    while after - before > timedelta(minutes=1):
        middle = before + (after - before) / 2
        if middle.astimezone(zone).utcoffset() == first:
            before = middle
        else:
            after = middle
    return (before + timedelta(seconds=59)).replace(second=0, microsecond=0)
