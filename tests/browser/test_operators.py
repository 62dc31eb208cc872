"""What runs without a wall only an operator answers. To others its cards say so, and offer nothing."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from agents_app.model.demo.wire import say
from tests.browser.house import House, Tab, answer, ready
from tests.browser.test_asking import QUESTION, wants_to_steer
from tests.browser.test_every_page import assert_is_for_everybody
from tests.depth import few_of
from tests.scripted_model import calls

pytestmark = [pytest.mark.processes, pytest.mark.browser]
WHO = "No wall stands around this chat, so only an operator answers."


@pytest.fixture(params=few_of([(390, "light"), (1280, "dark")], (390, "light")), ids=str)
def member(request: pytest.FixtureRequest, house: House, browser: Browser) -> Iterator[Tab]:
    width, scheme = request.param
    with house.person("ben", "member") as cookies:
        opened = house.tab(browser, width=width, scheme=scheme, storage_state=cookies)
        yield opened
        opened.close()  # and nothing stood on its console


def asked_on_host(tab: Tab, words: str) -> None:
    ready(tab.open().page)
    tab.page.get_by_label("What the agent may reach").select_option("Whole computer")
    tab.say(words)
    expect(tab.state).to_have_text("needs you")


def assert_offers_nothing(card: Locator) -> None:
    expect(card).to_contain_text(WHO)
    expect(card.locator("button, select, input")).to_have_count(0)


def test_a_permission(house: House, tab: Tab, member: Tab) -> None:
    wants_to_steer(house, "steer the host")
    asked_on_host(tab, "steer the host")
    house.share(tab.session)
    card = member.open(f"/chat/{tab.session}").log.locator(".ask")
    expect(card).to_contain_text("May it write to CLAUDE.md?")
    assert_offers_nothing(card)
    expect(member.state).to_have_text("waits for an answer")
    member.page.locator("#talk").focus()
    member.page.keyboard.press("y")
    assert_is_for_everybody(member.page)
    answer(tab.log.locator(".ask"), "Deny")
    expect(card).to_contain_text("Denied by admin.")
    expect(member.state).to_have_text("idle")
    member.open("/inbox")
    expect(member.page.get_by_text("Nobody waits for you.")).to_be_visible()


def test_a_question(house: House, tab: Tab, member: Tab) -> None:
    house.model.script("ask an operator", [calls("AskUserQuestion", questions=[QUESTION]), say("So be it.")])
    asked_on_host(tab, "ask an operator")
    house.share(tab.session)
    card = member.open(f"/chat/{tab.session}").log.locator(".ask")
    expect(card).to_contain_text("Which pears?")
    expect(card).to_contain_text("Conference")
    assert_offers_nothing(card)
    assert_is_for_everybody(member.page)
    tab.log.get_by_label("Conference").check()
    answer(tab.log.locator(".ask"), "Answer")
    expect(card).to_contain_text("Answered")
    expect(member.state).to_have_text("idle")


def test_what_a_child_asks(house: House, tab: Tab, other_tab: Tab, member: Tab) -> None:
    wants_to_steer(house, "for a parent on the host")
    other_tab.open(f"/chat/{house.past()}")
    asked_on_host(tab, "for a parent on the host")
    house.becomes_child(tab.session, other_tab.session)
    house.share(other_tab.session)
    member.open(f"/chat/{other_tab.session}")
    card = member.page.get_by_role("region", name="What its helpers ask").locator(".ask")
    assert_offers_nothing(card)
    expect(member.state).to_have_text("waits for an answer")
    answer(tab.log.locator(".ask"), "Deny")
    tab.rests()
