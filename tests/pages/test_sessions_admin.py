"""Sessions in the console: all are there, and of somebody else's private ones no words."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.access.models import Workspace
from sessions_app.access.services import caller_of_user
from sessions_app.models import Message, Session, SessionEvent, Turn
from tests.pages.conversations import said_and_answered

pytestmark = pytest.mark.django_db(transaction=True)

WORD = "Medlars"
WHERE: dict[str, Any] = {"session": Session, "turn": Turn, "message": Message, "sessionevent": SessionEvent}


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("model", WHERE)
def test_it_is_shown_that_they_are_there_and_words_only_of_what_is_shared(
    as_ada_in: Client, ben: User, workspace: Workspace, model: str, is_shared: bool
) -> None:
    said_and_answered(caller_of_user(ben), f"{WORD} are kept dark", answer=f"{WORD} it is.")
    if is_shared:
        Session.objects.update(visibility="workspace")
    where = f"/admin/sessions_app/{model}/"
    listed = as_ada_in.get(where)
    rows = listed.context["cl"].result_list
    assert len(rows) == WHERE[model].objects.count()
    one = as_ada_in.get(f"{where}{rows[0].pk}/change/")
    assert (listed.status_code, one.status_code) == (200, 200)
    of_one_session = as_ada_in.get(f"{where}?session__id__exact={Session.objects.get().pk}")
    assert of_one_session.status_code == (302 if model == "session" else 200)
    pages = (listed.content + one.content + of_one_session.content).decode()
    assert (WORD in pages) is is_shared
    if not is_shared:
        found = as_ada_in.get(f"{where}?q={WORD}").context["cl"].result_list
        assert not found


@pytest.mark.parametrize(("model", "column"), [("session", "title"), ("message", "content")])
def test_they_are_not_told_letter_by_letter(as_ada_in: Client, model: str, column: str) -> None:
    assert as_ada_in.get(f"/admin/sessions_app/{model}/?{column}__startswith=Med").status_code == 400
