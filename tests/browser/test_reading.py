"""Who may read in a workspace and not write: all is there, as it happens, and nothing to write with."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from agents_app.model.demo.wire import say
from tests.browser.house import House, Tab, ready
from tests.browser.test_asking import QUESTION
from tests.browser.test_every_page import assert_is_for_everybody
from tests.depth import few_of
from tests.scripted_model import calls

pytestmark = [pytest.mark.processes, pytest.mark.browser]


@pytest.fixture(params=few_of([(390, "dark"), (1280, "light")], (390, "dark")), ids=str)
def reader(request: pytest.FixtureRequest, house: House, browser: Browser) -> Iterator[Tab]:
    width, scheme = request.param
    with house.person("vi", "viewer") as cookies:
        opened = house.tab(browser, width=width, scheme=scheme, storage_state=cookies)
        yield opened
        opened.close()  # and nothing stood on its console


def test_what_others_say_appears_and_there_is_nothing_to_write_with(
    house: House, tab: Tab, reader: Tab
) -> None:
    tab.open().ask("before")
    house.share(tab.session)
    ready(reader.open(f"/chat/{tab.session}").page)
    tab.ask("news for the reader")
    expect(reader.log).to_contain_text("news for the reader")
    expect(reader.page.locator(".turn[data-over]")).to_have_count(2)
    expect(reader.state).to_have_text("idle")
    expect(reader.page.get_by_text("You may read here, and not write.")).to_be_visible()
    expect(reader.message).to_have_count(0)
    reader.page.keyboard.press("/")
    reader.page.keyboard.press("Escape")
    assert_is_for_everybody(reader.page)


def test_what_the_chat_may_do_changes_while_they_look(house: House, tab: Tab, reader: Tab) -> None:
    tab.open_past("a thing that changes")
    house.share(tab.session)
    ready(reader.open(f"/chat/{tab.session}").page)
    path = f"/api/chat/{tab.session}"
    for change in ({"metadata": {"permissions": {"trustMode": False}}}, {"title": "It changed"}):
        house.program.http.patch(path, json=change).raise_for_status()
    expect(reader.page.get_by_role("heading", level=1)).to_have_text("It changed")


def test_their_home_says_so_and_the_list_lives(house: House, tab: Tab, reader: Tab) -> None:
    ready(reader.open("/").page)
    expect(reader.page.get_by_text("You may read here, and not write.")).to_be_visible()
    expect(reader.page.get_by_text("Choose a chat")).to_be_visible()
    assert_is_for_everybody(reader.page)
    tab.open_past("begun meanwhile")
    house.share(tab.session)
    expect(reader.page.locator("#chats")).to_contain_text("begun meanwhile")


def test_what_is_asked_they_see_and_cannot_answer(house: House, tab: Tab, reader: Tab) -> None:
    house.model.script("ask somebody", [calls("AskUserQuestion", questions=[QUESTION]), say("So be it.")])
    tab.open().say("ask somebody")
    expect(tab.log.locator(".ask")).to_contain_text("Which pears?")
    house.share(tab.session)
    card = reader.open(f"/chat/{tab.session}").log.locator(".ask")
    expect(card).to_contain_text("Which pears?")
    expect(card).to_contain_text("Williams")
    expect(reader.state).to_have_text("waits for an answer")
    for role in ("button", "radio", "textbox"):
        expect(card.get_by_role(role)).to_have_count(0)
    assert_is_for_everybody(reader.page)
    tab.page.get_by_role("button", name="Stop").click()
    tab.rests()
    expect(reader.state).to_have_text("idle")
