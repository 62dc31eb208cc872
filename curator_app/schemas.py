from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field, model_validator

from sessions_app.schemas import Order, Wire

LONGEST = 20_000  # characters that are read at all


class InternalChange(Order):
    """Of the three exactly one."""

    title: str | None = Field(None, max_length=LONGEST)
    summary: str | None = Field(None, max_length=LONGEST)
    activity: str | None = Field(None, max_length=LONGEST)

    @model_validator(mode="after")
    def _one(self) -> "InternalChange":
        if len(self.model_fields_set) != 1 or None in (getattr(self, name) for name in self.model_fields_set):
            raise ValueError("Give exactly one of title, summary and activity.")
        return self


class CuratorRunOut(Wire):
    id: UUID
    ts: datetime
    exchange_number: int
    actions: list[str]
    new_title: str | None
    status: Literal["queued", "running", "done", "failed"]
    error: str | None


class CuratorRuns(Wire):
    runs: list[CuratorRunOut]


class CuratorQueued(Wire):
    status: Literal["queued"] = "queued"
