from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import Field

from agents_app.schedules.models import AgentSchedule, Tick
from agents_app.schedules.services import last_ticks, next_of
from sessions_app.schemas import Order, Wire


class ScheduleSwitch(Order):
    is_on: bool


class TickOut(Wire):
    due_at: datetime
    outcome: Literal["started", "woken", "skipped", "refused"]
    reason: str = Field(description="Why nothing began", examples=["The one before it still runs."])
    is_by_hand: bool
    session_id: UUID | None

    @classmethod
    def of(cls, tick: Tick) -> Self:
        same = {name: getattr(tick, name) for name in ("due_at", "outcome", "reason", "is_by_hand")}
        return cls(**same, session_id=tick.session_id)


class ScheduleOut(Wire):
    agent: str = Field(examples=["gardener"])
    cron: str = Field(description="As its file says it", examples=["0 7 * * 1-5"])
    time_zone: str = Field(description="Empty: the machine's", examples=["Europe/Vienna"])
    is_on: bool
    next_at: datetime | None = Field(description="Null: switched off, or no day fits its line")
    ticks: list[TickOut] = Field(description="The last times, the newest first")

    @classmethod
    def of(cls, row: AgentSchedule) -> Self:
        same = {name: getattr(row, name) for name in ("agent", "cron", "time_zone", "is_on")}
        ticks = [TickOut.of(tick) for tick in last_ticks(row.workspace_id, row.agent)]
        return cls(**same, next_at=next_of(row), ticks=ticks)
