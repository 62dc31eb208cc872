"""Old chats in the archive are deleted by themselves, if somebody wants that, and no others."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents_app.tasks import clean_up_old_sessions
from agents_app.turns.said.deleting import CleanUp
from agents_app.turns.said.opening import Opening, open_turn
from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.models import Session

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)


def a_chat(caller: Caller, *, days: int, archived: bool = True) -> Session:
    pk = open_turn(caller, Opening("When?")).session_id
    services.archive(caller, pk, archived=archived)
    Session.objects.filter(pk=pk).update(last_accessed=timezone.now() - timedelta(days=days))
    return Session.objects.get(pk=pk)


def run(*given: str) -> str:
    call_command("cleanup_old_sessions", *given, stdout=(said := StringIO()))
    return said.getvalue()


def test_old_ones_in_the_archive_go_and_no_others(as_ada: Caller) -> None:
    old = a_chat(as_ada, days=31)
    kept = {a_chat(as_ada, days=29).pk, a_chat(as_ada, days=31, archived=False).pk}
    said = run("--days", "30", "--dry-run")
    assert str(old.pk) in said
    assert "1 chat would be deleted. Nothing was." in said
    assert old.title not in said
    assert run("--days", "30") == "1 chat deleted.\n"
    assert set(Session.objects.values_list("pk", flat=True)) == kept
    with pytest.raises(CommandError, match="1 or more"):
        run("--days", "0")


def test_it_happens_by_night_only_where_it_is_switched_on(as_ada: Caller, settings: Any) -> None:
    a_chat(as_ada, days=31)
    clean_up_old_sessions()
    assert Session.objects.count() == 1
    settings.PARACHUTE_CLEANUP_DAYS = 30
    clean_up_old_sessions()
    assert Session.objects.count() == 0


def test_one_that_is_spoken_to_meanwhile_stays(as_ada: Caller) -> None:
    session = a_chat(as_ada, days=31)
    old = CleanUp(30)
    found = list(old.sessions)
    open_turn(as_ada, Opening("Are you there?", session_id=session.pk))
    assert found == [session]
    assert not old._delete_one(session.pk)
    assert Session.objects.filter(pk=session.pk).exists()
