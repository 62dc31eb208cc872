"""The page of a chat: what is there when it is loaded, and who gets it."""

import re
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries as AtMost

from agents_app.sandboxes import walls
from agents_app.turns.said.opening import Opening, open_turn
from parachute_site.pages.views import TOLD_AT_ONCE
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.labels import add_tag
from sessions_app.models import EventType, Session, TurnStatus
from tests.pages.browsing import Enter
from tests.pages.conversations import ended, said_and_answered

pytestmark = pytest.mark.django_db
SMALL = 150_000  # bytes: all that a page of 200 messages loads


def a_talk(caller: Caller, turns: int) -> str:
    first = said_and_answered(caller, "question 0")
    for number in range(1, turns):
        said_and_answered(caller, f"question {number}", session=first.session_id)
    return f"/chat/{first.session_id}"


def test_what_was_said_and_done_is_in_the_page(as_ada_in: Client, as_ada: Caller) -> None:
    page = as_ada_in.get(a_talk(as_ada, 1)).content.decode()
    for part in ("question 0", "<strong>quinces</strong>", "Garden/Quinces.md", "120 tokens", "Thought"):
        assert part in page


def test_how_a_turn_ended_is_still_there_after_a_reload(as_ada_in: Client, as_ada: Caller) -> None:
    stopped = open_turn(as_ada, Opening("one"))
    end = (EventType.ABORTED, {"partialResponse": "", "abortedBy": "ada"})
    ended(stopped, TurnStatus.ABORTED, [(EventType.TEXT, {"block": 0, "content": "Half"}), end])
    failed = open_turn(as_ada, Opening("two", session_id=stopped.session_id))
    error = {"code": "overloaded", "title": "Too busy", "message": "Wait.", "retryDelayMs": None}
    action = {"key": "r", "label": "Send again", "action": "retry"}
    ended(
        failed, TurnStatus.FAILED, [(EventType.TYPED_ERROR, {**error, "actions": [action], "canRetry": True})]
    )
    page = as_ada_in.get(f"/chat/{stopped.session_id}").content.decode()
    assert "Stopped." in page
    assert "Too busy" in page
    assert 'data-action="retry"' in page


def test_a_turn_that_is_not_over_is_left_to_the_stream(as_ada_in: Client, as_ada: Caller) -> None:
    said = open_turn(as_ada, Opening("still going"))
    page = as_ada_in.get(f"/chat/{said.session_id}").content.decode()
    assert f'id="turn-{said.turn_id}"' in page
    assert 'data-status="queued"' in page
    assert 'data-after="0"' in page
    assert 'class="said"' not in page


def test_older_turns_come_when_they_are_asked_for(as_ada_in: Client, as_ada: Caller) -> None:
    where = a_talk(as_ada, TOLD_AT_ONCE + 2)
    page = as_ada_in.get(where).content.decode()
    assert "question 2<" in page
    assert "question 1<" not in page
    before = page.split('data-before="')[1].split('"')[0]
    earlier = as_ada_in.get(f"{where}/earlier?before={before}").content.decode()
    assert earlier.index("question 0<") < earlier.index("question 1<")
    assert "question 2<" not in earlier
    assert "data-before" not in earlier


def test_what_was_over_before_the_oldest_open_turn_is_told_is_never_told_twice(
    as_ada_in: Client, as_ada: Caller
) -> None:
    """Many stopped while one went on: all that the stream would send again must be in the page."""
    first = open_turn(as_ada, Opening("long one"))
    for number in range(TOLD_AT_ONCE + 3):
        other = open_turn(as_ada, Opening(f"never mind {number}", session_id=first.session_id))
        ended(other, TurnStatus.ABORTED, [(EventType.ABORTED, {"partialResponse": "", "abortedBy": "ada"})])
    page = as_ada_in.get(f"/chat/{first.session_id}").content.decode()
    assert page.count("data-over") == TOLD_AT_ONCE + 3
    assert page.index(f'id="turn-{first.turn_id}"') < page.index("never mind 0<")


@pytest.mark.parametrize("before", ["", "x", "-1", "1e3", "9" * 30, "٣"])
def test_before_what_must_be_a_number(before: str, as_ada_in: Client, as_ada: Caller) -> None:
    assert as_ada_in.get(f"{a_talk(as_ada, 1)}/earlier?before={before}").status_code == 400


def test_a_long_talk_is_a_small_page(as_ada_in: Client, as_ada: Caller) -> None:
    assert len(as_ada_in.get(a_talk(as_ada, 100)).content) < SMALL * 2 / 3


def test_more_turns_ask_the_database_no_more(
    as_ada_in: Client, as_ada: Caller, django_assert_max_num_queries: AtMost
) -> None:
    where = a_talk(as_ada, 15)
    as_ada_in.get(where)
    with django_assert_max_num_queries(15):
        as_ada_in.get(where)


def test_an_outsider_gets_neither_the_past_nor_the_title(
    enter: Enter, cy: User, as_ada: Caller, as_cy: Caller, browser: Client
) -> None:
    where = a_talk(as_ada, 1)
    cys = enter(cy)
    for path in (where, f"{where}/earlier?before=99"):
        assert cys.get(path).status_code == 404
        assert cys.get(path.replace(where, f"/chat/{uuid4()}")).status_code == 404
        assert browser.get(path).status_code == 302
    assert browser.get("/rail").status_code == 302
    assert "data-session" not in cys.get("/rail?search=question").content.decode()
    add_tag(as_ada, UUID(where.rpartition("/")[2]), "between-us")
    assert "between-us" not in cys.get("/rail/filters").content.decode()


def test_the_list_is_searched_by_what_stands_in_it(as_ada_in: Client, as_ada: Caller) -> None:
    said_and_answered(as_ada, "About pears")
    said_and_answered(as_ada, "About plums")
    found = as_ada_in.get("/rail?search=pear").content.decode()
    assert "About pears" in found
    assert "plums" not in found
    assert "No chat has these words" in as_ada_in.get("/rail?search=%00nothing").content.decode()


def test_the_list_grows_and_is_narrowed(as_ada_in: Client, as_ada: Caller) -> None:
    session = Session.objects.get(pk=said_and_answered(as_ada, "About plums").session_id)
    others = [
        Session(workspace=session.workspace, created_by=session.created_by, title="Pears", vault_root="/v")
        for _ in range(60)
    ]
    Session.objects.bulk_create(others)
    add_tag(as_ada, others[7].pk, "garden")

    def listed(query: str) -> tuple[int, bool]:
        html = as_ada_in.get(f"/rail?{query}").content.decode()
        return html.count("data-session"), "data-more" in html

    assert listed("") == listed("limit=7") == listed("limit=x") == (50, True)
    assert listed("limit=100") == (61, False)
    assert listed("tag=garden") == (1, False)
    assert listed("agent=nobody") == (0, False)
    offered = as_ada_in.get("/rail/filters").content.decode()
    assert "garden (1)" in offered


def test_the_list_is_filtered_by_a_tag(as_ada_in: Client, as_ada: Caller) -> None:
    said_and_answered(as_ada, "About plums")
    add_tag(as_ada, said_and_answered(as_ada, "About pears").session_id, "Fruit trees")
    found = as_ada_in.get("/rail?search=%23fruit+Trees").content.decode()
    assert "About pears" in found
    assert "plums" not in found
    assert "No chat has this tag" in as_ada_in.get("/rail?search=%23pears").content.decode()


def test_who_may_only_read_has_nothing_to_write_with(enter: Enter, vi: User, as_ada: Caller) -> None:
    talk = a_talk(as_ada, 1)
    Session.objects.update(visibility="workspace")
    page = enter(vi).get(talk).content.decode()
    assert 'id="say"' not in page
    assert "You may read here, and not write." in page


def test_the_home_of_who_may_only_read_says_so(enter: Enter, vi: User) -> None:
    page = enter(vi).get("/").content.decode()
    assert "You may read here, and not write." in page
    assert "You are no member" not in page
    assert 'id="new"' not in page


def test_an_archived_workspace_is_named_as_what_it_is(as_ada_in: Client, as_ada: Caller) -> None:
    talk = a_talk(as_ada, 1)
    Workspace.objects.update(archived_at=timezone.now())
    for where in (talk, "/"):
        page = as_ada_in.get(where).content.decode()
        assert "a workspace that was archived" in page
        assert "You may read here, and not write." not in page, "nobody's role is the reason"
    assert "/workspaces/of/default" in as_ada_in.get(talk).content.decode()


def test_the_home_of_who_is_in_no_workspace_says_who_can_help(enter: Enter, cy: User) -> None:
    page = enter(cy).get("/").content.decode()
    assert "You are no member of a workspace yet." in page
    assert "You may read here" not in page
    assert "What would you like to do?" not in page


def test_nobody_is_offered_more_trust_than_they_may_give(enter: Enter, ada: User, ben: User) -> None:
    assert "Whole computer" in enter(ada).get("/").content.decode()
    assert "Whole computer" not in enter(ben).get("/").content.decode()


def test_a_chat_that_is_there_offers_less_trust_and_never_more(as_ada_in: Client, as_ada: Caller) -> None:
    page = as_ada_in.get(a_talk(as_ada, 1)).content.decode()
    assert '<option value="vault" selected>This folder</option>' in page
    assert "Whole computer" not in page


def test_what_does_not_work_here_is_not_offered(as_ada_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "seems_to_work", lambda level, workspace: level != "sandboxed")
    assert "Read-only box" not in as_ada_in.get("/").content.decode()
    monkeypatch.setattr(walls, "seems_to_work", lambda level, workspace: True)
    assert "Read-only box" in as_ada_in.get("/").content.decode()


def test_a_chat_puts_markup_in_at_one_place_only(as_ada_in: Client) -> None:
    assert "require-trusted-types-for 'script'" in as_ada_in.get("/")["Content-Security-Policy"]


def test_the_inbox_is_a_page_of_its_own(as_ada_in: Client, browser: Client) -> None:
    page = as_ada_in.get("/inbox").content.decode()
    assert "Nobody waits for you." in page
    assert 'id="asked"' in page
    assert browser.get("/inbox").status_code == 302


def test_each_module_of_the_page_is_fetched_at_once(as_ada_in: Client) -> None:
    """Not one after another, as each names the next."""
    folder = Path(settings.BASE_DIR) / "static/chat"
    waiting, found = ["page.js"], set[str]()
    while waiting:
        found.add(module := waiting.pop())
        imported = re.findall(r'from "\./(\w+\.js)"', (folder / module).read_text())
        waiting += [name for name in imported if name not in found]
    page = as_ada_in.get("/").content.decode()
    assert set(re.findall(r'modulepreload" href="[^"]*chat/(\w+\.js)', page)) == found - {"page.js"}
