from datetime import UTC, datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, Field

from sessions_app.schemas import Text, Wire
from sessions_app.search.finding import Hit, Wish

KindOfContent = Literal["session", "journal", "document"]


def _in_utc(given: datetime) -> datetime:
    try:
        return given.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no calendar has this time in UTC") from error


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]


class SearchQuery(Wire):
    q: Annotated[Text, Field(max_length=500, description="Words; the last may be the beginning of one")]
    kind: Annotated[KindOfContent | None, Field(description="Only these")] = None
    tag: Text = ""
    workspace: Text = ""
    since: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20

    def as_wish(self) -> Wish:
        return Wish(
            text=self.q,
            kinds=(self.kind,) if self.kind else (),
            tag=self.tag,
            workspace=self.workspace,
            since=self.since,
            limit=self.limit,
        )


class SearchResult(Wire):
    content_id: str = Field(examples=["1:file:Garden/Quinces.md"])
    content_type: str = Field(examples=["document"])
    title: str = Field(examples=["Quinces"])
    excerpt: str = Field(
        description="As text, without the marks of its markdown",
        examples=["They ripen in October, a week after the first frost."],
    )
    marks: list[tuple[int, int]] = Field(
        description="Where in the excerpt the words stand", examples=[[[15, 22]]]
    )
    score: float = Field(examples=[0.0164])
    matched: Literal["text", "meaning", "both"] = Field(description="Why it was found")
    session_id: UUID | None
    path: str = Field(description="In the vault; empty for a chat", examples=["Garden/Quinces.md"])
    workspace: str = Field(examples=["default"])
    changed_at: datetime

    @classmethod
    def of(cls, hit: Hit) -> Self:
        return cls.model_construct(**{name: getattr(hit, name) for name in cls.model_fields})


class SearchResults(Wire):
    results: list[SearchResult]
