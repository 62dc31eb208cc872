"""What the end of a request says to those who read it."""

from uuid import UUID

import pytest
from django.utils import timezone

from agents_app.turns.said.opening import Opening, open_turn
from permissions_app.frames import as_end
from permissions_app.models import RequestStatus, ToolRequest
from sessions_app.access.caller import Caller
from tests.asked import asks

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(as_ada: Caller, monkeypatch: pytest.MonkeyPatch) -> UUID:
    monkeypatch.setattr("agents_app.turns.said.saying.ring_workers", lambda *_: None)
    return open_turn(as_ada, Opening("hi")).session_id


@pytest.fixture
def request_(session: UUID) -> ToolRequest:
    return asks(session)


@pytest.mark.parametrize(
    ("status", "decision", "can_still_be_allowed"),
    [
        (RequestStatus.GRANTED, "granted", False),
        (RequestStatus.DENIED, "denied", False),
        (RequestStatus.EXPIRED, "expired", True),
        (RequestStatus.ABORTED, "expired", False),
    ],
)
def test_it_says_whether_it_can_still_be_allowed(
    request_: ToolRequest, status: RequestStatus, decision: str, can_still_be_allowed: bool
) -> None:
    request_.status, request_.decided_at = status, timezone.now()
    _, told = as_end(request_)
    assert (told["decision"], told["canStillBeAllowed"]) == (decision, can_still_be_allowed)


@pytest.mark.parametrize(
    ("status", "timed_out", "given_up"),
    [
        (RequestStatus.ANSWERED, False, False),
        (RequestStatus.EXPIRED, True, False),
        (RequestStatus.ABORTED, True, True),
    ],
)
def test_a_question_says_whether_its_time_was_over_or_its_turn(
    session: UUID, status: RequestStatus, timed_out: bool, given_up: bool
) -> None:
    question = asks(session, is_question=True)
    question.status, question.decided_at = status, timezone.now()
    _, told = as_end(question)
    assert (told["timedOut"], told["givenUp"]) == (timed_out, given_up)
