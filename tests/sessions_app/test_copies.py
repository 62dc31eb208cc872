"""Readable copies: what stands in them, whose they are once somebody has edited them, and of which chats."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User

from agents_app.turns.said.deleting import delete
from sessions_app import copies
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Message, Session, SessionCopy, SessionTag
from tests.pages.conversations import said_and_answered
from tests.sessions_app.transcripts_written import as_jsonl, prompt, put, said, text
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


def test_a_vault_that_is_not_there_keeps_no_other_from_it(
    alone: None, as_ada: Caller, ada: User, vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "AT_ONCE", 1)
    gone = Workspace.objects.create(slug="gone", name="Gone", vault_path=str(tmp_path / "gone"))
    Session.objects.create(workspace=gone, created_by=ada, model="m", vault_root="x", message_count=2)
    a_chat(as_ada)
    assert copies.write_copies() == 1


def test_of_one_that_was_deleted_while_it_was_written_nothing_stays(
    alone: None, as_ada: Caller, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_chat(as_ada)
    own_name = copies._own_name

    def deleted_meanwhile(*given: Any) -> str | None:
        delete(as_ada, session.pk)
        return own_name(*given)

    monkeypatch.setattr(copies, "_own_name", deleted_meanwhile)
    copies.write_copies()
    assert (texts(vault), SessionCopy.objects.count()) == ({}, 0)


def test_two_sweeps_at_once_are_one(
    alone: None, as_ada: Caller, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_chat(as_ada)
    lines, at_once = copies._lines, list[int]()

    def meanwhile(session: Session) -> Any:
        if not at_once:
            at_once.append(0)
            at_once.append(copies.write_copies())
        return lines(session)

    monkeypatch.setattr(copies, "_lines", meanwhile)
    assert (copies.write_copies(), at_once, len(texts(vault))) == (1, [0, 0], 1)


def test_where_somebody_took_all_of_them_away_there_is_none_to_take_away(
    workspace: Workspace, as_ada: Caller, vault: Path
) -> None:
    share(a_chat(as_ada).pk)
    copies.write_copies()
    shutil.rmtree(vault / "agent-sessions")
    Session.objects.update(visibility="private")
    assert (copies.write_copies(), copies.write_copies()) == (1, 0)


def test_letters_of_four_bytes_have_a_name_and_a_time_of_no_calendar_is_none(
    alone: None, as_ada: Caller, vault: Path, settings: Any, tmp_path: Path
) -> None:
    settings.PARACHUTE_HOME = tmp_path / "home"
    opened = said_and_answered(as_ada, "When?")
    rows = (
        prompt(Message.objects.get().pk, "When?"),
        said(text("Ripe."), timestamp="0001-01-01T00:00:00+14:00"),
    )
    put(opened.session_id, as_jsonl(*rows))
    Session.objects.update(message_count=2, title="\U00020000" * 60)
    assert copies.write_copies() == 1
    ((name, copy),) = texts(vault).items()
    assert "\U00020000" * 40 in name
    assert "### Assistant | ?" in copy
