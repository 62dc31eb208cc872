"""The database itself refuses what must never be, whoever writes."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from sessions_app.models import (
    ApiKey,
    Attachment,
    ContentType,
    EventType,
    Membership,
    Message,
    Receipt,
    Session,
    SessionEvent,
    SessionKind,
    SessionStatus,
    SignInLink,
    Turn,
    TurnStatus,
    Workspace,
)
from sessions_app.models.attachment import LARGEST
from sessions_app.models.event import TERMINAL
from sessions_app.models.session import LIVE
from sessions_app.models.turn import ACTIVE, OVER

pytestmark = [pytest.mark.database, pytest.mark.django_db]

MakeTurn = Callable[..., Turn]


def refused_by(constraint: str, write: Callable[[], object]) -> None:
    """SQLite names the columns of a unique constraint and not the constraint: these are compared there."""
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        write()
    said = str(refusal.value)
    assert constraint in said or ("UNIQUE" in said and "CHECK" not in said), said


def event(session: Session, seq: int, **more: Any) -> SessionEvent:
    made: SessionEvent = SessionEvent.objects.create(
        session=session, seq=seq, **{"type": EventType.MODEL, **more}
    )
    return made


def orchestrator(workspace: Workspace, **more: Any) -> Session:
    fields = {
        "kind": SessionKind.ORCHESTRATOR,
        "agent_slug": "gardener",
        "model": "m",
        "vault_root": "/v",
        **more,
    }
    made: Session = Session.objects.create(workspace=workspace, **fields)
    return made


def attachment(session: Session, turn: MakeTurn, **more: Any) -> Attachment:
    message = more.pop("message", None) or Message.objects.create(session=session, turn=turn(), content="x")
    fields = {"position": 0, "file_name": "x.md", "mime_type": ContentType.TEXT, "size": 1, **more}
    return Attachment.objects.create(
        session=session, message=message, **{"path": "Chat/assets/2026-11-18/x.md", **fields}
    )


def test_a_seq_is_given_once(session: Session) -> None:
    event(session, 1)
    refused_by("one_event_a_seq", lambda: event(session, 1))


def test_a_seq_is_given_once_in_each_session(session: Session, workspace: Workspace) -> None:
    event(session, 1)
    event(orchestrator(workspace), 1)


@pytest.mark.parametrize("seq", [0, -1])
def test_a_seq_starts_at_one(session: Session, seq: int) -> None:
    refused_by("seq", lambda: event(session, seq))


@pytest.mark.parametrize("first", TERMINAL)
@pytest.mark.parametrize("second", TERMINAL)
def test_a_turn_has_one_terminal_event(
    session: Session, turn: MakeTurn, first: EventType, second: EventType
) -> None:
    of_turn = turn(TurnStatus.DONE)
    event(session, 1, turn=of_turn, type=first)
    refused_by("one_terminal_event_a_turn", lambda: event(session, 2, turn=of_turn, type=second))


def test_a_turn_has_many_other_events(session: Session, turn: MakeTurn) -> None:
    of_turn = turn(TurnStatus.RUNNING)
    for seq, kind in enumerate((EventType.TEXT, EventType.TEXT, EventType.DONE, EventType.WARNING), 1):
        event(session, seq, turn=of_turn, type=kind)


@pytest.mark.parametrize("first", ACTIVE)
@pytest.mark.parametrize("second", ACTIVE)
def test_a_session_has_one_active_turn(turn: MakeTurn, first: TurnStatus, second: TurnStatus) -> None:
    turn(first)
    refused_by("one_active_turn_a_session", lambda: turn(second))


def test_turns_wait_behind_the_active_one(turn: MakeTurn) -> None:
    for status in (*OVER, TurnStatus.WAITING, TurnStatus.QUEUED, TurnStatus.QUEUED):
        turn(status)


def test_two_turns_do_not_share_a_place_in_the_order(turn: MakeTurn) -> None:
    turn(opened_seq=2)
    refused_by("turns_run_in_order", lambda: turn(opened_seq=2))


@pytest.mark.parametrize("status", ACTIVE)
@pytest.mark.parametrize("lacks", ["leased_at", "boot"])
def test_an_active_turn_has_a_lease(turn: MakeTurn, status: TurnStatus, lacks: str) -> None:
    refused_by("an_active_turn_has_a_lease", lambda: turn(status, **{lacks: None}))


@pytest.mark.parametrize("status", [TurnStatus.QUEUED, *OVER])
@pytest.mark.parametrize("has", ["leased_at", "boot"])
def test_no_other_turn_has_a_lease(turn: MakeTurn, status: TurnStatus, has: str) -> None:
    value = {"leased_at": timezone.now(), "boot": uuid4()}[has]
    refused_by("an_active_turn_has_a_lease", lambda: turn(status, **{has: value}))


@pytest.mark.parametrize("status", OVER)
def test_a_turn_that_is_over_has_ended(turn: MakeTurn, status: TurnStatus) -> None:
    refused_by("a_turn_that_is_over_has_ended", lambda: turn(status, ended_at=None))


@pytest.mark.parametrize("status", [TurnStatus.QUEUED, *ACTIVE])
def test_a_turn_that_is_not_over_has_not_ended(turn: MakeTurn, status: TurnStatus) -> None:
    refused_by("a_turn_that_is_over_has_ended", lambda: turn(status, ended_at=timezone.now()))


def test_one_tool_use_has_one_child(session: Session, workspace: Workspace) -> None:
    def spawn() -> Session:
        return orchestrator(workspace, kind=SessionKind.WORKER, parent=session, parent_tool_use_id="toolu_1")

    spawn()
    refused_by("one_child_a_tool_use", spawn)


def test_the_same_tool_use_of_another_parent_has_its_own_child(
    session: Session, workspace: Workspace
) -> None:
    other = orchestrator(workspace)
    for parent in (session, other):
        orchestrator(workspace, kind=SessionKind.WORKER, parent=parent, parent_tool_use_id="toolu_1")


@pytest.mark.parametrize("status", LIVE)
def test_an_orchestrator_has_one_live_session(workspace: Workspace, status: SessionStatus) -> None:
    orchestrator(workspace)
    refused_by("one_live_session_an_orchestrator", lambda: orchestrator(workspace, status=status))


def test_an_orchestrator_that_ended_makes_room(workspace: Workspace) -> None:
    for status in (SessionStatus.COMPLETE, SessionStatus.FAILED, SessionStatus.RUNNING):
        orchestrator(workspace, status=status)
    orchestrator(workspace, kind=SessionKind.WORKER, status=SessionStatus.RUNNING)


def test_a_session_is_not_its_own_parent(session: Session) -> None:
    own = Session.objects.filter(pk=session.pk)
    refused_by("session_is_not_its_own_parent", lambda: own.update(parent=session))


def test_a_person_is_a_member_once(workspace: Workspace, ada: User) -> None:
    refused_by("one_membership_a_user", lambda: Membership.objects.create(workspace=workspace, user=ada))


def test_an_idempotency_key_has_one_receipt_a_caller() -> None:
    def note(caller: str) -> Receipt:
        made: Receipt = Receipt.objects.create(caller=caller, key="k", body_digest="")
        return made

    note("user:1")
    note("user:2")
    refused_by("one_receipt_a_key", lambda: note("user:1"))


@pytest.mark.parametrize(
    ("constraint", "wrong"),
    [
        ("attachment_size_is_allowed", {"size": 0}),
        ("attachment_size_is_allowed", {"size": LARGEST + 1}),
        ("attachment_lies_in_its_folder", {"path": "Garden/x.md"}),
        ("attachment_has_a_name", {"file_name": ""}),
    ],
)
def test_an_attachment_is_a_file_of_ours(
    constraint: str, wrong: dict[str, Any], session: Session, turn: MakeTurn
) -> None:
    refused_by(constraint, lambda: attachment(session, turn, **wrong))


def test_the_attachments_of_a_message_have_an_order(session: Session, turn: MakeTurn) -> None:
    message = attachment(session, turn).message
    refused_by("attachments_have_an_order", lambda: attachment(session, turn, message=message))


def test_a_link_expires_after_it_was_made(ada: User) -> None:
    now = timezone.now()
    refused_by(
        "link_expires_after_it_was_made",
        lambda: SignInLink.objects.create(user=ada, digest="d", created_at=now, expires_at=now),
    )


CHOSEN = [
    (model, field.name)
    for model in (ApiKey, Attachment, Membership, Message, Session, SessionEvent, Turn, Workspace)
    for field in model._meta.get_fields()
    if isinstance(field, models.CharField) and field.choices
]


@pytest.fixture
def one_of_each(session: Session, turn: MakeTurn) -> None:
    event(session, 1)
    attachment(session, turn)


@pytest.mark.parametrize(("model", "field"), CHOSEN, ids=lambda value: getattr(value, "__name__", value))
def test_every_choice_is_held_by_the_database(
    one_of_each: None, model: type[models.Model], field: str
) -> None:
    rows = model._default_manager.all()
    assert rows.exists()
    with pytest.raises(IntegrityError, match="known"), transaction.atomic():
        rows.update(**{field: "?"})


def test_every_status_is_among_those_choices() -> None:
    assert {(Session, "status"), (Turn, "status"), (SessionEvent, "type"), (Membership, "role")} <= set(
        CHOSEN
    )
