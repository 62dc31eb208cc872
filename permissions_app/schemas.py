from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, Self, get_args
from uuid import UUID

from django.utils.translation import gettext as _
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from permissions_app.models import ToolRequest
from permissions_app.rules.suggestions import PatternScope
from sessions_app.schemas import Order, Text, Wire
from sessions_app.storable import storable

LONGEST_REASON = 2_000
LONGEST_PATTERN = 500
LONGEST_ANSWER = 10_000  # of one, and of a question's text
MOST_QUESTIONS = 20
MOST_LABELS = 50  # to one question
LONGEST_ANSWERS = 100_000  # with their questions: they go to every reader, in one row

# After the length: a length that is looked at after it is told in "items", not in characters.
_IS_TEXT = get_args(Text)[1]
Pattern = Annotated[str, Field(max_length=LONGEST_PATTERN), _IS_TEXT]


class SuggestedGrant(Wire):
    scope: PatternScope
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
                SuggestedGrant.model_construct(**{**each, "scope": PatternScope(each["scope"])})
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
    pattern: Pattern | None = Field(None, description="Widens the session by this", examples=["Plans/**"])
    scope: PatternScope | None = Field(
        None, description="One of the suggested; without one and a pattern: `once`"
    )


class DenyOrder(Order):
    reason: Annotated[str, Field(max_length=LONGEST_REASON), _IS_TEXT] = Field(
        "", description="The agent reads it"
    )


class SessionGrantOrder(GrantOrder):
    request_id: UUID


class SessionDenyOrder(DenyOrder):
    request_id: UUID


def _answers(given: Any) -> Any:
    """Looked at as a whole: of what is wrong within, pydantic would name the branch of the union and the
    function that found it, as if they were fields."""
    if why := _what_is_wrong(given):
        raise PydanticCustomError("answers", why)
    return given


def _what_is_wrong(given: Any) -> str:
    if not isinstance(given, dict) or not all(map(_is_answer, given.values())):
        return _("Give each question's text, and for it a label, labels, or free text.")
    if len(given) > MOST_QUESTIONS:
        return _("At most %(most)d questions are answered at once.") % {"most": MOST_QUESTIONS}
    if any(len(each) > MOST_LABELS for each in given.values() if isinstance(each, list)):
        return _("A question is answered with at most %(most)d labels.") % {"most": MOST_LABELS}
    texts = list(_texts(given))
    if max(map(len, texts), default=0) > LONGEST_ANSWER:
        return _("A question and an answer have at most %(most)d characters each.") % {"most": LONGEST_ANSWER}
    if sum(map(len, texts)) > LONGEST_ANSWERS:
        return _("All answers and their questions have at most %(most)d characters.") % {
            "most": LONGEST_ANSWERS
        }
    if any(storable(text) != text for text in texts):
        return _("It holds a character that is no text (NUL or half of a pair).")
    return ""


def _is_answer(given: Any) -> bool:
    return isinstance(given, str) or (
        isinstance(given, list) and all(isinstance(label, str) for label in given)
    )


def _texts(answers: dict[str, str | list[str]]) -> Iterator[str]:
    for question, answer in answers.items():
        yield question
        yield from [answer] if isinstance(answer, str) else answer


class AnswerOrder(Order):
    request_id: UUID
    answers: Annotated[dict[str, str | list[str]], BeforeValidator(_answers)] = Field(
        description="A question's text to a label, labels, or free text. At most "
        f"{MOST_QUESTIONS} questions, {MOST_LABELS} labels each, {LONGEST_ANSWER:,} characters a text, and "
        f"{LONGEST_ANSWERS:,} in all"
    )


class Decided(Wire):
    id: UUID
    decision: str


class Answered(Wire):
    request_id: UUID
    answers: dict[str, Any]


class Card(Wire):
    id: UUID
    status: str = Field(description="`pending`, or what was decided meanwhile: then no clock of it moves")
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
