"""Agents that run agents, in the browser: a child is seen at work and at its end, and its question is
answered."""

import re

import pytest
from playwright.sync_api import expect

from agents_app.model.demo.wire import Reply, ToolUse, say
from tests.browser.house import ON_A_PHONE, House, Tab
from tests.browser.test_every_page import assert_is_for_everybody
from tests.scripted_model import calls

pytestmark = [pytest.mark.processes, pytest.mark.browser]

OURS = "mcp__orchestration__"


@ON_A_PHONE
def test_a_child_is_seen_at_work_asks_is_answered_and_ends(any_tab: Tab, house: House) -> None:
    agents = house.up.vault / "Agents"
    agents.mkdir(exist_ok=True)
    (agents / "chief.md").write_text("---\nname: Chief\n---\nYou let others work.\n")
    (agents / "helper.md").write_text("---\nname: Helper\n---\nYou help.\n")
    page = any_tab.open("/agents/of/chief").page
    switch = page.locator("#starts-helper")
    if switch.get_attribute("aria-checked") == "false":
        switch.click()
        expect(switch).to_have_attribute("aria-checked", "true")
    gate = house.model.hold()
    spawn = ToolUse(f"{OURS}spawn_session", {"child_agent_id": "helper", "prompt": "You help."})
    ask = calls(f"{OURS}message_caller", summary="All of them?", needs_response=True, options=["Yes, all"])
    house.model.script("let it be done", [Reply((spawn,)), say("It is at work.")])
    house.model.script("You help.", [ask, say("I wait.")])
    house.model.script("Yes, all", [say("Begun ", gate, "and through.")])
    house.model.script("Parachute wakes you", [say("I leave that to you.")])
    any_tab.open("/?agent=chief").say("let it be done")
    family = page.locator("#family")
    expect(family).to_contain_text("helper")
    page.get_by_role("button", name="Yes, all").click()
    expect(family).to_contain_text("working")
    page.get_by_label("End helper").click()
    expect(page.get_by_role("button", name="End it")).to_be_visible()
    assert_is_for_everybody(page)
    gate.release()
    expect(family).to_contain_text("complete")
    expect(page.get_by_role("button", name="End it")).to_have_count(0)
    expect(page.locator("#log")).to_contain_text("is through with its work")
    page.goto(page.url.replace("/chat/", "/orchestrators/"))
    expect(page.locator("main[data-ready]")).to_be_attached()
    expect(page.get_by_role("heading", name="What woke it")).to_be_visible()
    assert_is_for_everybody(page)
    page.get_by_role("link", name=re.compile("helper .*You help")).first.click()
    expect(page.locator(".crumb")).to_be_visible()
    assert_is_for_everybody(page)
