"""Readable copies: what stands in them, whose they are once somebody has edited them, and of which chats."""

from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User

from agents_app.turns.said.deleting import delete
from sessions_app import copies
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Session, SessionCopy, SessionTag
from tests.pages.conversations import said_and_answered
from tests.sharing import share

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)


@pytest.fixture
def alone(workspace: Workspace, ada: User) -> None:
    workspace.memberships.exclude(user=ada).delete()


def texts(vault: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (vault / "agent-sessions").glob("*.md")}


def a_chat(caller: Caller, text: str = "When are the quinces ripe? / now") -> Session:
    said_and_answered(caller, text)
    Session.objects.filter(message_count=0).update(message_count=2)
    return Session.objects.latest("created_at")


def test_it_has_the_facts_and_what_was_said(alone: None, as_ada: Caller, vault: Path) -> None:
    session = a_chat(as_ada)
    SessionTag.objects.create(session=session, tag="garden")
    assert (copies.write_copies(), copies.write_copies()) == (1, 0)
    ((name, text),) = texts(vault).items()
    assert (
        name
        == f"{session.created_at.astimezone():%Y-%m-%d}-When-are-the-quinces-ripe-now-{session.pk.hex[:8]}.md"
    )
    _, head, body = text.split("---\n", 2)
    facts = yaml.safe_load(head)
    assert (facts["session_id"], facts["title"], facts["tags"]) == (
        str(session.pk),
        session.title,
        ["garden"],
    )
    assert "### ada | " in body and "### Assistant | " in body
    assert "When are the quinces ripe?" in body


def test_what_is_said_later_is_in_it_and_an_edited_one_is_left_alone(
    alone: None, as_ada: Caller, vault: Path
) -> None:
    session = a_chat(as_ada)
    copies.write_copies()
    Session.objects.update(title="Later", last_accessed=session.last_accessed.replace(year=3000))
    copies.write_copies()
    ((name, text),) = texts(vault).items()
    assert "# Later" in text
    (vault / "agent-sessions" / name).write_text("mine now")
    SessionCopy.objects.update(written_at=session.created_at)
    copies.write_copies()
    both = texts(vault)
    assert (len(both), both[name]) == (2, "mine now")


def test_a_private_chat_in_company_has_none_and_loses_what_it_had(
    workspace: Workspace, as_ada: Caller, vault: Path
) -> None:
    session = a_chat(as_ada)
    assert copies.write_copies() == 0
    share(session.pk)
    assert copies.write_copies() == 1
    Session.objects.update(visibility="private")
    assert (copies.write_copies(), texts(vault)) == (1, {})


@pytest.mark.parametrize("is_edited", [False, True])
def test_it_goes_with_its_chat_unless_somebody_has_edited_it(
    alone: None, as_ada: Caller, vault: Path, is_edited: bool
) -> None:
    session = a_chat(as_ada)
    copies.write_copies()
    if is_edited:
        (name,) = texts(vault)
        (vault / "agent-sessions" / name).write_text("mine")
    delete(as_ada, session.pk)
    assert bool(texts(vault)) is is_edited


def test_a_workspace_may_want_none(alone: None, workspace: Workspace, as_ada: Caller, vault: Path) -> None:
    Workspace.objects.update(writes_copies=False)
    a_chat(as_ada)
    assert (copies.write_copies(), texts(vault)) == (0, {})


def test_one_that_cannot_be_written_keeps_no_other_from_it(
    alone: None, as_ada: Caller, vault: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a_chat(as_ada)
    (vault / "agent-sessions").symlink_to(tmp_path)
    assert copies.write_copies() == 0
    assert "could not be changed" in caplog.text
    (vault / "agent-sessions").unlink()
    assert copies.write_copies() == 1
