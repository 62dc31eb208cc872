"""A conversation in a real Chromium, against the real processes and the real CLI."""

import threading

import pytest
from playwright.sync_api import expect

from agents_app.model.demo.wire import Failure, Reply, Text, Thinking, say
from tests.browser.house import House, Tab, ready
from tests.pages.test_markup import HOSTILE
from tests.scripted_model import calls

pytestmark = [pytest.mark.processes, pytest.mark.browser]


def test_markdown_is_rendered_while_it_is_written(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    text = Text("## Quinces\n\nThey are **ri", gate, "pe** now.\n\n```python\nx = 1\n```")
    house.model.script("quinces", [Reply((Thinking("Hm."), text))])
    tab.open().say("quinces?")
    expect(tab.log.locator("h4")).to_have_text("Quinces")
    gate.release()
    expect(tab.log.locator("strong")).to_have_text("ripe")
    expect(tab.log.locator(".code .mi")).to_have_text("1")
    expect(tab.log.get_by_text("Thought")).to_be_visible()
    tab.rests()


def test_a_reload_in_the_middle_shows_what_was_said_and_then_the_rest(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("pears", [Reply((Thinking("Hm."), Text("They are ripe ", gate, "in August.")))])
    tab.open().say("When are the pears ripe?")
    expect(tab.log).to_contain_text("They are ripe")
    tab.page.reload()
    expect(tab.log).to_contain_text("They are ripe")
    gate.release()
    expect(tab.log).to_contain_text("They are ripe in August.")
    tab.rests()
    tab.page.reload()
    expect(tab.log.get_by_text("They are ripe in August.", exact=True)).to_have_count(1)
    expect(tab.log.get_by_text("When are the pears ripe?", exact=True)).to_have_count(1)


def test_nothing_that_is_hostile_runs_or_loads(house: House, tab: Tab) -> None:
    house.model.script("hostile", [say("\n\n".join(HOSTILE))])
    tab.open().ask("hostile")
    tab.page.reload()
    expect(tab.log.get_by_text("evil.example").first).to_be_visible()
    assert tab.log.locator("img, script, iframe, svg[onload], style, form, base").count() == 0


def test_a_megabyte_in_one_line_is_only_long(house: House, tab: Tab) -> None:
    house.model.script("endless", [Reply((Text("a" * 1_000_000),), piece=20_000)])
    tab.open().ask("endless")
    tab.ask("still there?")
    expect(tab.log.get_by_text("ok", exact=True)).to_be_visible()


def test_a_tool_unfolds_and_an_edit_shows_what_it_changes(house: House, tab: Tab) -> None:
    note = house.up.vault / "Plan.md"
    note.write_text("one\ntwo\n")
    edit = calls("Edit", file_path=str(note), old_string="two", new_string="2")
    house.model.script("change the plan", [calls("Read", file_path=str(note)), edit, say("Changed.")])
    tab.open().ask("change the plan")
    expect(tab.log.locator(".diff .a")).to_have_text("+ 2")
    reading = tab.log.locator(".tool").first
    expect(reading.locator(".result")).to_be_hidden()
    reading.locator("summary").click()
    expect(reading.locator(".result")).to_contain_text("one")


def test_what_is_queued_waits_in_sight_and_can_be_taken_back(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("begin", [say("Begun ", gate, "and ended.")])
    tab.open().say("begin")
    expect(tab.log).to_contain_text("Begun")
    tab.say("second")
    tab.say("never mind")
    waits = tab.page.locator("#queue li")
    expect(waits).to_have_count(2)
    waits.nth(1).get_by_role("button").click()
    expect(waits).to_have_count(1)
    gate.release()
    expect(waits).to_have_count(0)
    tab.rests()
    expect(tab.page.locator(".said")).to_have_text(["begin", "second", "never mind"])
    expect(tab.log).to_contain_text("Not sent")


def test_what_is_said_now_goes_into_the_running_turn(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("steer me", [say("Going ", gate, "left.")])
    tab.open().say("steer me")
    expect(tab.log).to_contain_text("Going")
    tab.message.fill("go right")
    tab.message.press("Control+Enter")
    expect(tab.page.locator(".turn .said")).to_have_text(["steer me", "go right"])
    gate.release()
    tab.rests()
    expect(tab.page.locator(".turn")).to_have_count(1)


def test_escape_stops_and_what_was_said_stays(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("a story", [say("Once upon ", gate, "a time.")])
    tab.open().say("a story")
    expect(tab.log).to_contain_text("Once upon")
    tab.message.press("Escape")
    expect(tab.log).to_contain_text("Stopped.")
    gate.release()
    tab.page.reload()
    expect(tab.log).to_contain_text("Once upon")
    expect(tab.log).to_contain_text("Stopped.")


def test_an_error_says_what_to_do_and_its_button_does_it(house: House, tab: Tab) -> None:
    refused = Failure(400, "invalid_request_error", "It was scripted to fail.")
    is_mended = threading.Event()
    house.model.script("try this", [lambda asked: say("Now it works.") if is_mended.is_set() else refused])
    tab.open().say("try this")
    again = tab.log.get_by_role("button", name="Send again")
    expect(again).to_be_visible()
    is_mended.set()
    again.click()
    expect(tab.log).to_contain_text("Now it works.")
    tab.page.reload()
    expect(tab.log.get_by_role("button", name="Send again")).to_be_visible()


def test_a_draft_is_kept_until_it_is_sent(tab: Tab) -> None:
    tab.open().message.fill("half a thou")
    tab.page.reload()
    expect(tab.message).to_have_value("half a thou")
    tab.ask("a thought")
    tab.page.reload()
    expect(tab.message).to_have_value("")
    tab.open()
    expect(tab.message).to_have_value("")


def test_the_server_may_go_away_and_come_back(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("long way", [say("Half of ", gate, "the way.")])
    tab.open().say("long way")
    expect(tab.log).to_contain_text("Half of")
    house.up.kill("web")
    expect(tab.state).to_have_text("reconnecting")
    tab.message.fill("and back")
    gate.release()
    expect(tab.log).to_contain_text("Half of the way.")
    tab.rests()
    tab.complaints.clear()  # a browser says on its console that a socket was refused
    expect(tab.message).to_have_value("and back")
    expect(tab.log.get_by_text("Half of the way.", exact=True)).to_have_count(1)


def test_who_scrolled_up_is_left_alone(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    lines = "".join(f"Line {number}.\n\n" for number in range(80))
    house.model.script("many lines", [say(lines, gate, lines)])
    tab.open().say("many lines")
    expect(tab.log).to_contain_text("Line 79.")
    talk = tab.page.locator("#talk")
    talk.hover()
    tab.page.mouse.wheel(0, -600)
    expect(tab.page.get_by_role("button", name="Newest")).to_be_visible()
    before = talk.evaluate("(talk) => talk.scrollTop")
    gate.release()
    tab.rests()
    assert talk.evaluate("(talk) => talk.scrollTop") == before
    tab.page.get_by_role("button", name="Newest").click()
    expect(tab.page.get_by_role("button", name="Newest")).to_be_hidden()


def test_two_devices_show_the_same(house: House, tab: Tab, other_tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("for both", [say("Shown ", gate, "twice.")])
    tab.open().say("for both")
    expect(tab.log).to_contain_text("Shown")
    other_tab.open(f"/chat/{tab.session}")
    expect(other_tab.log).to_contain_text("Shown")
    gate.release()
    expect(other_tab.log).to_contain_text("Shown twice.")
    other_tab.rests()
    other_tab.ask("heard on the other")
    expect(tab.log).to_contain_text("heard on the other")


def test_older_turns_come_by_scrolling_and_nothing_jumps(house: House, tab: Tab) -> None:
    tab.open(f"/chat/{house.past(turns=40)}")
    ready(tab.page)
    oldest = tab.page.locator(".said").first
    expect(oldest).to_have_text("question 20")
    oldest = tab.page.locator(".said", has_text="question 20")
    oldest.first.scroll_into_view_if_needed()
    expect(tab.page.locator(".said")).to_have_count(40)
    expect(oldest.first).to_be_in_viewport()


def test_keys_are_enough(house: House, tab: Tab) -> None:
    tab.open_past("by keys")
    tab.page.keyboard.press("Control+k")
    expect(tab.page.get_by_label("Find a chat")).to_be_focused()
    tab.page.keyboard.type("by keys")
    expect(tab.page.locator("#chats a:not(.everywhere)")).to_have_count(1)
    tab.page.keyboard.press("Control+j")
    expect(tab.page.get_by_text("What would you like to do?")).to_be_visible()
    tab.page.keyboard.press("Alt+ArrowDown")
    tab.page.wait_for_url("**/chat/*")
