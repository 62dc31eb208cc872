from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Field

from permissions_app.models import ToolRequest
from permissions_app.rules.suggestions import Scope
from sessions_app.schemas import Order, Text, Wire

LONGEST_REASON = 2_000
LONGEST_ANSWER = 10_000
LONGEST_PATTERN = 500

Answer = Annotated[Text, Field(max_length=LONGEST_ANSWER)]


class SuggestedGrant(Wire):
    scope: Scope
    pattern: str
    label: str


class PermissionRequest(Wire):
    id: UUID
    session_id: UUID
    turn_id: UUID
    tool_name: str
    tool_use_id: str
    permission_type: Literal["read", "write", "bash", "mcp", "other"]
    file_path: str
    input: dict[str, Any]
    suggested_grants: list[SuggestedGrant]
    agent_name: str
    created_at: datetime
    expires_at: datetime
    status: str
    subject: str = Field(description="The same for requests of one turn that a page shows as one card")
    reason: str = Field(description="Why a person is asked")
    on_host: bool = Field(description="No wall stands around it: only an operator decides")

    @classmethod
    def of(cls, request: ToolRequest) -> Self:
        return cls.model_construct(
            **{name: getattr(request, name) for name in _AS_THEY_ARE},
            suggested_grants=[
                SuggestedGrant.model_construct(**{**each, "scope": Scope(each["scope"])})
                for each in request.suggested_grants
            ],
            reason=request.why,
        )

    @classmethod
    def told(cls, request: ToolRequest) -> dict[str, Any]:
        """As an event tells it."""
        return cls.of(request).model_dump(by_alias=True, mode="json")


_AS_THEY_ARE = tuple(
    name for name in PermissionRequest.model_fields if name not in {"suggested_grants", "reason"}
)


class PendingQuestion(Wire):
    request_id: UUID
    questions: list[dict[str, Any]]
    expires_at: datetime
    session_id: UUID
    turn_id: UUID
    tool_use_id: str

    @classmethod
    def of(cls, request: ToolRequest) -> Self:
        return cls.model_construct(
            request_id=request.pk,
            questions=request.input["questions"],
            expires_at=request.expires_at,
            session_id=request.session_id,
            turn_id=request.turn_id,
            tool_use_id=request.tool_use_id,
        )

    @classmethod
    def told(cls, request: ToolRequest) -> dict[str, Any]:
        return cls.of(request).model_dump(by_alias=True, mode="json")


class GrantOrder(Order):
    pattern: Annotated[Text, Field(max_length=LONGEST_PATTERN)] | None = Field(
        None, description="Widens the session by this", examples=["Plans/**"]
    )
    scope: Scope | None = Field(None, description="One of the suggested; without one and a pattern: `once`")


class DenyOrder(Order):
    reason: Annotated[Text, Field(max_length=LONGEST_REASON)] = Field("", description="The agent reads it")


class SessionGrantOrder(GrantOrder):
    request_id: UUID


class SessionDenyOrder(DenyOrder):
    request_id: UUID


class AnswerOrder(Order):
    request_id: UUID
    answers: dict[Answer, Answer | list[Answer]] = Field(
        description="A question's text to a label, labels, or free text"
    )


class Decided(Wire):
    id: UUID
    decision: str


class Answered(Wire):
    request_id: UUID
    answers: dict[str, Any]


class Card(Wire):
    id: UUID
    expires_at: datetime


class Pending(Wire):
    pending: list[PermissionRequest]


class PermissionsOfSession(Pending):
    permissions: dict[str, Any] = Field(description="What the session is allowed: `PATCH` makes it less")


class PendingQuestions(Wire):
    pending: list[PendingQuestion]


class PreviewOut(Wire):
    covered: list[str]
    not_covered: list[str]
    deny_listed: list[str]
