"""A person is asked: in the chat, in the inbox, and at the top of every page."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from agents_app.model.demo.wire import Reply, ToolUse, say
from tests.browser.house import House, Tab, answer, ready, settled
from tests.browser.test_every_page import assert_is_for_everybody
from tests.depth import few_of
from tests.processes.program import Event
from tests.scripted_model import calls

pytestmark = [pytest.mark.processes, pytest.mark.browser]
SCREENS = [(390, "light"), (1280, "dark")]
LATE = [("Allow once", "Allowed by admin."), ("Deny", "Denied by admin.")]
PERMISSION_TIMEOUT = 120  # s, as it is unless somebody sets it

QUESTION = {
    "question": "Which pears?",
    "header": "Pears",
    "multiSelect": False,
    "options": [
        {"label": "Williams", "description": "early"},
        {"label": "Conference", "description": "late"},
    ],
}


def wants_to_steer(house: House, word: str) -> None:
    """The agent will want to write what steers agents, which asks in every mode."""
    note = str(house.up.vault / "CLAUDE.md")
    house.model.script(word, [calls("Write", file_path=note, content=f"{word}\n"), say("So be it.")])


# A second hit on the same spot, in the moment in which another card has moved there.
DOUBLE_CLICK = """() => new Promise((told) => {
  const place = document.querySelector("#asked"), before = place.children.length;
  const { left, top } = place.querySelector("button").getBoundingClientRect();
  const hit = () => document.elementFromPoint(left + 5, top + 5).closest("button").click();
  new MutationObserver((_, watch) => {
    if (place.children.length === before) return;
    watch.disconnect();
    told(hit());
  }).observe(place, { childList: true });
  hit();
})"""


@pytest.fixture(scope="module")
def askers(house: House) -> list[str]:
    """Three chats that have begun, so that what they say next needs no new agent."""
    begun = [house.program.post(f"{each} of three") for each in ("one", "two", "three")]
    for each in begun:
        house.program.finished(each)
    return [each["sessionId"] for each in begun]


def _is_request_of(turn: str, event: Event) -> bool:
    return bool(event["turnId"] == turn and event["type"] == "permission_request")


@pytest.fixture
def three(house: House, tab: Tab, askers: list[str]) -> Iterator[Locator]:
    """Cards in the inbox, of three chats."""
    wants_to_steer(house, "one of the cards")
    asked = [house.program.post("one of the cards", sessionId=session) for session in askers]
    for each in asked:  # an agent takes the time that it takes; the page has to be quick from there on
        house.program.until(each["sessionId"], partial(_is_request_of, each["turnId"]))
    cards = tab.open("/inbox").page.locator(".asked .ask")
    expect(cards).to_have_count(3)
    settled(cards.first)
    yield cards
    for each in house.program.http.get("/api/permissions").json()["pending"]:
        house.program.http.post(f"/api/permissions/{each['id']}/deny", json={}).raise_for_status()
    for each in asked:
        house.program.finished(each)


def assert_one_was_decided(cards: Locator) -> None:
    expect(cards).to_have_count(2)
    settled(cards.first)
    expect(cards).to_have_count(2)


def test_a_double_click_decides_one(tab: Tab, three: Locator) -> None:
    tab.page.evaluate(DOUBLE_CLICK)
    assert_one_was_decided(three)


@pytest.mark.depth
def test_a_key_that_is_held_decides_one(tab: Tab, three: Locator) -> None:
    for _ in range(5):
        tab.page.keyboard.down("y")
    assert_one_was_decided(three)
    for _ in range(3):
        tab.page.keyboard.down("y")
    expect(three).to_have_count(2)
    tab.page.keyboard.up("y")


def test_a_key_that_is_hit_fast_decides_one(tab: Tab, three: Locator) -> None:
    for _ in range(3):
        tab.page.keyboard.press("y")
    assert_one_was_decided(three)


def test_a_key_decides_nothing_that_is_out_of_sight(tab: Tab, three: Locator) -> None:
    tab.page.set_viewport_size({"width": 1280, "height": 120})
    tab.page.keyboard.press("y")
    tab.page.set_viewport_size({"width": 1280, "height": 800})
    settled(three.first)
    expect(three).to_have_count(3)


def test_who_answers_by_keyboard_goes_on_with_the_next_card(tab: Tab, three: Locator) -> None:
    for left in (2, 1, 0):
        settled(three.first).locator("[data-answer=deny]").press("Enter")
        expect(three).to_have_count(left)
        whole = tab.page.get_by_role("region", name="What waits for you")
        expect(three.first if left else whole).to_be_focused()


@pytest.mark.depth
def test_who_answers_by_keyboard_goes_on_in_the_message(house: House, tab: Tab) -> None:
    wants_to_steer(house, "where was I")
    tab.open().say("where was I")
    deny = settled(tab.log.locator(".ask")).locator("[data-answer=deny]")
    tab.page.route("**/deny", lambda route: route.abort(), times=1)
    deny.press("Enter")
    expect(tab.page.get_by_role("alert")).to_be_visible()
    expect(deny).to_be_focused()
    settled(tab.log.locator(".ask"))
    deny.press("Enter")
    expect(tab.message).to_be_focused()
    tab.rests()
    tab.complaints.clear()  # a browser says on its console that the request failed


SUBMITS_AT_ONCE = """(forms) => {
  forms[1].querySelector("input").value = "hastily";
  document.querySelector(".asked .ask button[data-answer=deny]").click();
  forms[1].requestSubmit();
}"""


def test_a_reason_that_is_sent_in_the_moment_after_an_answer_decides_nothing(
    tab: Tab, three: Locator
) -> None:
    tab.page.locator("[data-reason]").evaluate_all(SUBMITS_AT_ONCE)
    assert_one_was_decided(three)


@pytest.mark.depth
def test_a_card_that_is_taller_than_the_screen_is_answered(house: House, tab: Tab, other_tab: Tab) -> None:
    note = str(house.up.vault / "CLAUDE.md")
    house.model.script("a tall card", [calls("Write", file_path=note, content="x\n" * 200), say("So be it.")])
    tab.open().say("a tall card")
    other_tab.page.set_viewport_size({"width": 390, "height": 300})
    card = other_tab.open("/inbox").page.locator(".asked .ask")
    expect(card).to_be_visible()
    answer(card, "Deny")
    expect(card).to_have_count(0)
    tab.rests()


def test_it_is_asked_here_and_there_and_answered_once(house: House, tab: Tab, other_tab: Tab) -> None:
    wants_to_steer(house, "steer please")
    other_tab.open("/inbox")
    expect(other_tab.page.get_by_text("Nobody waits for you.")).to_be_visible()
    tab.open().say("steer please")
    card = tab.log.locator(".ask")
    expect(card).to_contain_text("May it write to CLAUDE.md?")
    expect(card).to_contain_text("+ steer please")
    expect(card).to_contain_text("waits for you while this is open, then answers itself with no")
    expect(tab.page).to_have_title("(1) steer please · Parachute")
    expect(tab.state).to_have_text("needs you")
    there = other_tab.page.locator(".asked")
    expect(there).to_contain_text("steer please")
    expect(other_tab.page).to_have_title("(1) Inbox · Parachute")
    assert_is_for_everybody(other_tab.page)
    answer(there, "Deny")
    expect(there).to_have_count(0)
    expect(card).to_contain_text("Denied by admin.")
    expect(tab.log).to_contain_text("So be it.")
    tab.rests()
    expect(tab.page).to_have_title("steer please · Parachute")
    tab.page.reload()
    expect(tab.log.locator(".ask")).to_contain_text("Denied by")


def test_a_card_that_is_open_waits_in_every_tab_and_counts_only_where_its_clock_runs(
    house: House, tab: Tab, other_tab: Tab
) -> None:
    wants_to_steer(house, "while it is open")
    tab.open().say("while it is open")
    clocks = [tab.log.locator("[data-until]"), other_tab.open("/inbox").page.locator("[data-until]")]
    for clock in clocks:
        expect(clock).to_have_text("waits for you while this is open, then answers itself with no")
    asked = house.program.session(tab.session)["pendingPermissions"][0]
    began, ends = (datetime.fromisoformat(asked[name]) for name in ("createdAt", "expiresAt"))
    assert ends - began > timedelta(seconds=PERMISSION_TIMEOUT)  # both have said that they have it open
    same = {"id": asked["id"], "status": "pending", "expiresAt": asked["expiresAt"]}
    other_tab.page.route("**/open", lambda route: route.fulfill(json=same))  # as after half an hour
    other_tab.page.reload()
    expect(clocks[1]).to_have_text(re.compile(r"^answers itself with no in \d:\d\d$"))
    answer(other_tab.page.locator(".ask"), "Deny")
    tab.rests()


@pytest.mark.depth
def test_a_card_that_is_answered_in_the_moment_in_which_another_page_opens_it(
    house: House, tab: Tab, other_tab: Tab
) -> None:
    """Nothing went wrong there, and nothing is complained of."""
    wants_to_steer(house, "in that very moment")
    tab.open().say("in that very moment")
    card = tab.log.locator(".ask")
    expect(card).to_contain_text("May it write")
    held: list[Route] = []
    other_tab.page.route("**/open", lambda route: held.append(route))
    with other_tab.page.expect_request("**/open"):
        there = other_tab.open("/inbox").page.locator(".asked .ask")
    answer(card, "Deny")
    tab.rests()
    with other_tab.page.expect_response("**/open") as told:
        held[0].continue_()
    assert told.value.json()["status"] == "denied"
    expect(there).to_have_count(0)


def test_what_a_child_asks_is_answered_in_the_chat_that_started_it(
    house: House, tab: Tab, other_tab: Tab
) -> None:
    wants_to_steer(house, "for my parent")
    other_tab.open(f"/chat/{house.past()}")
    tab.open(f"/chat/{house.past()}")
    house.becomes_child(tab.session, other_tab.session)
    tab.say("for my parent")
    card = other_tab.page.get_by_role("region", name="What its helpers ask").locator(".ask")
    expect(card).to_contain_text("May it write to CLAUDE.md?")
    expect(other_tab.state).to_have_text("needs you")
    assert_is_for_everybody(other_tab.page)
    other_tab.page.reload()
    answer(card, "Deny")
    expect(card).to_have_count(0)
    expect(tab.log).to_contain_text("So be it.")
    expect(other_tab.state).to_have_text("idle")


def test_a_chat_that_is_gone_asks_for_nobody(house: House, tab: Tab, other_tab: Tab) -> None:
    """What its helper asks goes on in the helper's own chat."""
    wants_to_steer(house, "orphaned")
    other_tab.open(f"/chat/{house.past()}")
    tab.open(f"/chat/{house.past()}")
    house.becomes_child(tab.session, other_tab.session)
    tab.say("orphaned")
    card = other_tab.page.locator("#children .ask")
    expect(card).to_be_visible()
    expect(other_tab.state).to_have_text("needs you")
    house.program.http.delete(f"/api/chat/{other_tab.session}").raise_for_status()
    expect(other_tab.page.get_by_role("alert")).to_contain_text("not there any more")
    expect(card).to_have_count(0)
    expect(other_tab.state).to_have_text("idle")
    answer(tab.log.locator(".ask"), "Deny")
    tab.rests()


ASKED_OF_THE_SERVER = """() => {
  const { fetch } = window, asked = [];
  window.fetch = (path, ...more) => asked.push(path) && fetch(path, ...more);
  document.dispatchEvent(new Event("visibilitychange")); // whoever comes back to a card has it open
  window.fetch = fetch;
  return asked;
}"""


@pytest.mark.depth
def test_a_card_of_a_chat_that_is_gone_takes_no_answer_and_is_not_held_open(house: House, tab: Tab) -> None:
    wants_to_steer(house, "deleted while it asks")
    opened = {"status": "granted"}  # after which the page says no more of it
    tab.page.route("**/open", lambda route: route.fulfill(json=opened))
    tab.open().say("deleted while it asks")
    card = tab.log.locator(".ask")
    expect(card.get_by_role("button", name="Allow once")).to_be_visible()
    assert len(tab.page.evaluate(ASKED_OF_THE_SERVER)) == 1
    house.program.http.delete(f"/api/chat/{tab.session}").raise_for_status()
    expect(tab.page.get_by_role("alert")).to_contain_text("not there any more")
    expect(card.locator("button, input")).to_have_count(0)
    assert tab.page.evaluate(ASKED_OF_THE_SERVER) == []


def assert_nothing_goes_on(tab: Tab) -> None:
    ready(tab.page)
    tab.rests()
    tab.message.fill("and now?")
    expect(tab.page.get_by_role("button", name="Send")).to_be_visible()
    for name in ("Stop", "Say it now"):
        expect(tab.page.get_by_role("button", name=name)).to_be_hidden()


def test_what_is_allowed_is_done_once(house: House, tab: Tab) -> None:
    wants_to_steer(house, "allow this")
    tab.open().say("allow this")
    answer(tab.log.locator(".ask"), "Allow once")
    expect(tab.log).to_contain_text("So be it.")
    assert (house.up.vault / "CLAUDE.md").read_text() == "allow this\n"
    tab.rests()
    tab.page.reload()
    assert_nothing_goes_on(tab)
    expect(tab.log.locator(".ask")).to_contain_text("Allowed by admin")
    expect(tab.log.locator(".tool")).not_to_contain_text("refused")
    expect(tab.log.locator(".tool")).not_to_contain_text("failed")


def test_after_a_reload_in_the_middle_of_a_turn_everything_stands_where_it_stood(
    house: House, tab: Tab
) -> None:
    note = str(house.up.vault / "CLAUDE.md")
    writes = calls("Write", file_path=note, content="in order\n")
    asks = calls("AskUserQuestion", questions=[QUESTION])
    house.model.script("keep the order", [writes, asks, say("So be it.")])
    tab.open().say("keep the order")
    answer(tab.log.locator(".ask"), "Allow once")
    question = tab.log.locator("[data-questions]")
    expect(question).to_be_visible()
    shown = tab.log.locator(".turn > *")
    before = shown.evaluate_all(IN_ORDER)
    tab.page.reload()
    expect(question).to_be_visible()
    assert shown.evaluate_all(IN_ORDER) == before
    assert [each.split("-")[0] for each in before] == ["row", "tool", "row", "tool", "row"]
    tab.log.get_by_label("Conference").check()
    answer(tab.log.locator(".ask").last, "Answer")
    tab.rests()


IN_ORDER = "(parts) => parts.map(({ id }) => id)"


def test_a_key_answers_and_nobody_who_writes_answers_by_it(house: House, tab: Tab) -> None:
    wants_to_steer(house, "by a key")
    tab.open().say("by a key")
    card = tab.log.locator(".ask")
    expect(card).to_contain_text("May it write")
    tab.message.press_sequentially("no, yes")
    settled(card)
    tab.page.locator("#talk").focus()
    tab.page.keyboard.press("n")
    expect(card).to_contain_text("Denied by")
    tab.rests()


def why_not(card: Locator, reason: str) -> Locator:
    """Written, and not sent."""
    settled(card).get_by_text("Deny with a reason…").click()
    field = card.get_by_label("Why not?")
    expect(field).to_be_focused()
    field.press_sequentially(reason)
    return field


def test_who_denies_may_say_why_and_the_agent_hears_it(house: House, tab: Tab) -> None:
    wants_to_steer(house, "say why")
    tab.open().say("say why")
    card = tab.log.locator(".ask")
    field = why_not(card, "No, not yet")  # of its letters Y and N are keys elsewhere
    expect(card).to_have_attribute("data-status", "pending")
    settled(card)
    field.press("Enter")
    expect(card).to_contain_text("Denied by admin. No, not yet")
    expect(tab.log).to_contain_text("So be it.")
    assert "They said: No, not yet" in str(house.model.asked("say why")[-1].body)
    tab.rests()
    tab.page.reload()
    expect(tab.log.locator(".ask")).to_contain_text("No, not yet")


def test_an_answer_that_could_not_be_sent_is_told_as_one(house: House, tab: Tab) -> None:
    wants_to_steer(house, "nobody is there")
    tab.open().say("nobody is there")
    card = tab.log.locator(".ask")
    tab.page.route("**/deny", lambda route: route.abort(), times=1)
    answer(card, "Deny")
    trouble = tab.page.get_by_role("alert")
    expect(trouble).to_have_text("Your answer was not sent. Answer again when the server is back.")
    answer(card, "Deny")
    expect(card).to_contain_text("Denied by admin.")
    expect(trouble).to_be_hidden()
    tab.rests()
    tab.complaints.clear()  # a browser says on its console that the request failed


def lose(route: Route) -> None:
    error = {"code": "already_decided", "message": "Decided already.", "details": {"status": "denied"}}
    route.fulfill(status=409, json={"error": error})


def test_who_answers_second_reads_what_was_decided_and_of_no_mistake(house: House, tab: Tab) -> None:
    wants_to_steer(house, "the slower one")
    tab.open().say("the slower one")
    card, trouble = tab.log.locator(".ask"), tab.page.get_by_role("alert")
    tab.page.route("**/deny", lambda route: route.abort(), times=1)
    answer(card, "Deny")
    expect(trouble).to_be_visible()
    tab.page.route("**/grant", lose)
    answer(card, "Allow once")
    expect(trouble).to_be_hidden()
    expect(card.get_by_role("button", name="Allow once")).to_be_disabled()
    [asked] = house.program.session(tab.session)["pendingPermissions"]
    house.program.http.post(f"/api/permissions/{asked['id']}/deny", json={}).raise_for_status()
    expect(card).to_contain_text("Denied by")
    tab.rests()
    tab.complaints.clear()  # a browser says on its console that a request failed


@pytest.mark.depth
def test_in_the_inbox_too(house: House, tab: Tab, other_tab: Tab) -> None:
    wants_to_steer(house, "say why there")
    tab.open().say("say why there")
    card = other_tab.open("/inbox").page.locator(".asked .ask")
    why_not(card, "Ask Ada")
    answer(card, "Deny and say why")
    expect(card).to_have_count(0)
    expect(tab.log.locator(".ask")).to_contain_text("Ask Ada")
    tab.rests()


# The page's sockets can be closed, and it says when it was told of a card.
OPEN_SOCKETS = """
window.sockets = [];
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    sockets.push(this);
    this.addEventListener("message", ({ data }) => {
      if (data.includes("data-request")) document.documentElement.dataset.told = "";
    });
  }
};"""
BREAKS_OFF = """() => {
  delete document.documentElement.dataset.told;
  sockets.at(-1).close();
}"""


def test_no_reason_is_lost_that_was_begun(house: House, tab: Tab) -> None:
    """Neither when the connection breaks off, nor when the plain button is hit then."""
    tab.page.add_init_script(OPEN_SOCKETS)
    wants_to_steer(house, "half a reason")
    tab.open().say("half a reason")
    card = tab.log.locator(".ask")
    field = why_not(card, "Because")
    tab.page.evaluate(BREAKS_OFF)
    expect(tab.page.locator("html[data-told]")).to_be_attached()
    expect(field).to_have_value("Because")
    settled(card).locator("[data-answer=deny]").click()
    expect(card).to_contain_text("Denied by admin. Because")
    tab.rests()


@pytest.mark.parametrize("screen", few_of(SCREENS, SCREENS[0]), ids=str)
def test_a_card_is_for_everybody(house: House, browser: Browser, screen: tuple[int, str]) -> None:
    width, scheme = screen
    wants_to_steer(house, f"card {width}")
    tab = house.tab(browser, width=width, scheme=scheme)
    tab.open().say(f"card {width}")
    expect(tab.log.locator(".ask")).to_contain_text("May it write")
    assert_is_for_everybody(tab.page)
    tab.log.locator(".ask").get_by_text("Deny with a reason…").click()
    assert_is_for_everybody(tab.page)
    tab.log.locator(".ask").get_by_text("Deny with a reason…").click()
    answer(tab.log.locator(".ask"), "Deny")
    tab.rests()
    tab.close()


def test_a_question_is_answered_and_the_agent_hears_it(house: House, tab: Tab) -> None:
    house.model.script("ask me", [calls("AskUserQuestion", questions=[QUESTION]), say("Conference it is.")])
    tab.open().say("ask me")
    card = tab.log.locator(".ask")
    expect(card).to_contain_text("Which pears?")
    expect(card.get_by_role("button", name="Answer")).to_be_disabled()
    card.get_by_label("Conference").check()
    assert_is_for_everybody(tab.page)
    answer(card, "Answer")
    expect(tab.log).to_contain_text("Conference it is.")
    expect(card).to_contain_text("Answered")
    expect(card).to_contain_text("Conference")
    assert "Conference" in str(house.model.asked("ask me")[-1].body)
    tab.rests()
    tab.page.reload()
    expect(card).to_contain_text("Answered")
    assert_nothing_goes_on(tab)


def test_it_is_stopped_while_it_asks(house: House, tab: Tab) -> None:
    wants_to_steer(house, "stop asking")
    tab.open().say("stop asking")
    expect(tab.log.locator(".ask")).to_contain_text("May it write")
    tab.message.press("Escape")
    expect(tab.log).to_contain_text("Stopped.")
    expect(tab.page).to_have_title("stop asking · Parachute")
    tab.rests()
    assert_was_given_up(tab.log.locator(".ask"))
    expect(tab.log.locator(".tool .took")).to_have_text("stopped")
    assert_is_for_everybody(tab.page)
    tab.page.reload()
    assert_was_given_up(tab.log.locator(".ask"))


@pytest.mark.parametrize("late", few_of(LATE, LATE[0]), ids=str)
def test_who_answers_late_reads_what_came_of_it(house: House, tab: Tab, late: tuple[str, str]) -> None:
    button, says = late
    wants_to_steer(house, f"late {button}")
    nobody = {"status": "expired"}
    tab.page.route("**/open", lambda route: route.fulfill(json=nobody))
    tab.open().say(f"late {button}")
    card = tab.log.locator(".ask").first
    expect(card).to_contain_text("May it write")
    house.time_is_over(tab.session)
    expect(card).to_contain_text("Nobody answered in time.")
    tab.rests()
    tab.page.reload()
    ready(tab.page)
    answer(card, button)
    expect(card).to_contain_text(says)
    expect(card.get_by_role("button")).to_have_count(0)
    tab.rests()


ENDS_INSIDE = """(title) => {
  const words = document.createRange();
  words.selectNodeContents(title);
  return words.getBoundingClientRect().right <= title.closest(".ask").getBoundingClientRect().right;
}"""


def test_what_is_asked_about_is_seen_whole_on_a_phone(house: House, browser: Browser) -> None:
    note = str(house.up.vault / ("a_long_name_of_a_folder" * 4) / "CLAUDE.md")
    house.model.script("a long name", [calls("Write", file_path=note, content="x\n"), say("So be it.")])
    here, parent, inbox = (house.tab(browser, width=390) for _ in range(3))
    for each in (parent, here):
        each.open(f"/chat/{house.past()}")
    house.becomes_child(here.session, parent.session)
    here.say("a long name")
    inbox.open("/inbox")
    for tab in (here, parent, inbox):
        title = tab.page.locator(".ask h3 span")
        expect(title).to_contain_text("a_long_name")
        assert title.evaluate(ENDS_INSIDE)
    answer(here.log.locator(".ask"), "Deny")
    here.rests()
    for tab in (here, parent, inbox):
        tab.close()


def wants_a_folder(house: House, tab: Tab, words: str) -> Locator:
    """Asked about because the chat asks before it writes: a person may allow more than the one file."""
    note = str(house.up.vault / "Plans" / f"{words}.md")
    house.model.script(words, [calls("Write", file_path=note, content="x\n"), say("So be it.")])
    tab.open(f"/chat/{house.past()}")
    asks = {"permissions": {"trustMode": False}}
    house.program.http.patch(f"/api/chat/{tab.session}", json={"metadata": asks}).raise_for_status()
    tab.say(words)
    card = tab.log.locator(".ask")
    expect(card).to_contain_text("May it write")
    return card


@pytest.mark.parametrize("screen", few_of(SCREENS, SCREENS[0]), ids=str)
def test_to_look_at_what_more_could_be_allowed_allows_nothing(
    house: House, browser: Browser, screen: tuple[int, str]
) -> None:
    width, scheme = screen
    tab = house.tab(browser, width=width, scheme=scheme)
    card = settled(wants_a_folder(house, tab, f"more than {width}"))
    tab.page.get_by_text("Allow more…").focus()
    for key in ("Enter", "End", "ArrowDown", "PageDown", "t"):
        tab.page.keyboard.press(key)
    more = card.get_by_role("group", name="In this chat, from now on:").get_by_role("button")
    expect(more).to_have_text(
        [
            f"Allow this file: Plans/more than {width}.md",
            "Allow the folder Plans/",
            "Allow the folder Plans/ and all folders in it",
            "Allow the whole vault",
        ]
    )
    assert_is_for_everybody(tab.page)
    settled(card)
    expect(card).to_have_attribute("data-status", "pending")
    for _ in range(2):
        tab.page.keyboard.press("Tab")
    expect(more.nth(1)).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(card).to_contain_text("Allowed by admin: Plans/*.")
    tab.rests()
    kept = house.program.session(tab.session)["metadata"]["permissions"]
    assert kept["write"] == ["Chat/artifacts/*", "Plans/*"]
    tab.close()


@pytest.mark.depth
def test_what_is_taken_back_takes_nothing_with_it_that_was_allowed_since(house: House, tab: Tab) -> None:
    card = wants_a_folder(house, tab, "since the menu was opened")
    tab.page.locator("#more > summary").press("Enter")
    allowed = tab.page.get_by_role("list", name="Allowed in this chat without asking").get_by_role("listitem")
    expect(allowed).to_have_text(["writeChat/artifacts/*"])
    [asked] = house.program.session(tab.session)["pendingPermissions"]
    plans = {"scope": "folder", "pattern": "Plans/*"}
    house.program.http.post(f"/api/permissions/{asked['id']}/grant", json=plans).raise_for_status()
    expect(card).to_contain_text("Plans/*")
    allowed.get_by_role("button", name="Take back Chat/artifacts/*").press("Enter")
    expect(allowed).to_have_text(["writePlans/*"])
    tab.rests()


def assert_was_given_up(card: Locator) -> None:
    expect(card).to_contain_text("Its turn was stopped or lost, so it was not done.")
    expect(card).not_to_contain_text("Nobody answered")
    expect(card.locator("button, select, input")).to_have_count(0)


def wants_two_pages(house: House, tab: Tab, words: str) -> Locator:
    """Asked about at once, because the chat has read a page of a host that nobody named."""
    pages = [ToolUse("WebFetch", {"url": f"https://plums.invalid/{name}", "prompt": "?"}) for name in "ab"]
    house.model.script(words, [Reply(tuple(pages)), say("So be it.")])
    tab.open(f"/chat/{house.past()}")
    house.has_read_strangers(tab.session)
    tab.say(words)
    cards = tab.log.locator(".ask")
    expect(cards).to_have_count(2)
    return cards


def test_calls_of_a_kind_that_are_asked_about_at_once_are_one_card(house: House, tab: Tab) -> None:
    cards = wants_two_pages(house, tab, "both pages please")
    expect(cards.get_by_role("button", name="Allow")).to_have_text(["Allow all 2 once Y"])
    assert_is_for_everybody(tab.page)
    answer(cards.last, "Deny all 2")
    expect(tab.log).to_contain_text("So be it.")
    expect(cards.filter(has_text="Denied by admin")).to_have_count(2)
    tab.rests()


@pytest.mark.depth
def test_who_answers_such_a_card_second_reads_of_no_mistake(house: House, tab: Tab) -> None:
    cards = wants_two_pages(house, tab, "both pages at once")
    held: list[Route] = []
    tab.page.route("**/grant", lambda route: held.append(route))
    with tab.page.expect_request("**/grant"):
        answer(cards.last, "Allow all 2")
    for each in house.program.session(tab.session)["pendingPermissions"]:
        house.program.http.post(f"/api/permissions/{each['id']}/deny", json={}).raise_for_status()
    expect(cards.filter(has_text="Denied by")).to_have_count(2)
    for each in held:
        with tab.page.expect_response("**/grant") as told:
            each.continue_()
        assert told.value.status == 409
    tab.rests()
    expect(tab.page.get_by_role("alert")).to_be_hidden()
    expect(cards.get_by_role("button")).to_have_count(0)
    tab.complaints.clear()  # a browser says on its console that a request failed


@pytest.mark.depth
def test_what_could_not_be_sent_of_such_a_card_is_told(house: House, tab: Tab) -> None:
    cards = wants_two_pages(house, tab, "one page is lost")
    tab.page.route("**/deny", lambda route: route.abort(), times=1)
    answer(cards.last, "Deny all 2")
    expect(cards.filter(has_text="Denied by")).to_have_count(1)
    trouble = tab.page.get_by_role("alert")
    expect(trouble).to_have_text("Your answer was not sent. Answer again when the server is back.")
    answer(cards.filter(has=tab.page.get_by_role("button")), "Deny")
    expect(cards.filter(has_text="Denied by")).to_have_count(2)
    expect(trouble).to_be_hidden()
    tab.rests()
    tab.complaints.clear()  # a browser says on its console that the request failed


@pytest.mark.depth
def test_what_is_left_of_such_a_card_is_one_of_its_own(house: House, tab: Tab, other_tab: Tab) -> None:
    cards = wants_two_pages(house, tab, "one page of two")
    there = other_tab.open("/inbox").page.locator(".asked .ask")
    expect(there.get_by_role("button", name="Allow")).to_have_text(["Allow all 2 once Y"])
    (first, _) = house.program.session(tab.session)["pendingPermissions"]
    house.program.http.post(f"/api/permissions/{first['id']}/deny", json={}).raise_for_status()
    expect(there.get_by_role("button", name="Allow")).to_have_text(["Allow once Y"])
    expect(cards.get_by_role("button", name="Allow")).to_have_text(["Allow once Y"])
    settled(cards.last)
    tab.page.locator("#talk").focus()
    tab.page.keyboard.press("n")
    expect(cards.filter(has_text="Denied by")).to_have_count(2)
    tab.rests()


def test_an_agent_that_wants_to_start_another_is_answered_in_its_chat_and_in_the_inbox(
    house: House, tab: Tab, other_tab: Tab
) -> None:
    tab.open(f"/chat/{house.past()}")
    house.wants_to_start(tab.session, "writer")
    card = tab.open(f"/chat/{tab.session}").log.locator(".ask")
    there = other_tab.open("/inbox").page.locator(".asked .ask")
    for each in (card, there):
        expect(each).to_contain_text("May default start writer?")
        expect(each).to_contain_text("It writes better.")
    expect(other_tab.page).to_have_title("(1) Inbox · Parachute")
    assert_is_for_everybody(tab.page)
    settled(there)
    other_tab.page.locator("#talk").focus()
    other_tab.page.keyboard.press("y")
    expect(there).to_have_count(0)
    expect(card.get_by_role("button")).to_have_count(0)
    for _ in range(2):
        expect(card).to_contain_text("Allowed by admin.")
        tab.page.reload()
    assert_nothing_goes_on(tab)
    [grant] = house.program.http.get("/api/workspaces/default/grants").json()["grants"]
    assert (grant["details"], grant["scope"]) == ({"childAgentId": "writer"}, "session")
