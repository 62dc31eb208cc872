"""Several devices of one person, and one that slept."""

import pytest
from playwright.sync_api import Browser, expect

from agents_app.model.demo.wire import say
from tests.browser.house import House, Tab, ready

pytestmark = [pytest.mark.processes, pytest.mark.browser]


def test_three_devices_say_things_and_all_see_the_same(house: House, browser: Browser) -> None:
    devices = [house.tab(browser, width=width) for width in (390, 768, 1280)]
    devices[0].open().ask("from the first")
    session = devices[0].session
    for device in devices[1:]:
        ready(device.open(f"/chat/{session}").page)
    for number, device in enumerate(devices):
        device.say(f"word of {number}")
    said = [sorted(texts_of(device, 4)) for device in devices]
    assert said == [["from the first", "word of 0", "word of 1", "word of 2"]] * 3
    orders = [texts_of(device, 4) for device in devices]
    assert orders[0] == orders[1] == orders[2]
    for device in devices:
        device.rests()
        device.close()


def test_a_laptop_that_slept_shows_what_was_said_meanwhile(house: House, tab: Tab) -> None:
    gate = house.model.hold()
    house.model.script("good night", [say("Before ", gate, "and after.")])
    tab.open().say("good night")
    expect(tab.log).to_contain_text("Before")
    asleep = tab.context.new_cdp_session(tab.page)
    asleep.send("Page.setWebLifecycleState", {"state": "frozen"})
    gate.release()
    accepted = house.program.post("while it slept", sessionId=tab.session)
    house.program.finished(accepted)
    asleep.send("Page.setWebLifecycleState", {"state": "active"})
    expect(tab.log).to_contain_text("Before and after.")
    expect(tab.log).to_contain_text("while it slept")
    tab.rests()
    expect(tab.page.locator(".turn[data-over]")).to_have_count(2)


def test_a_network_that_was_away_is_no_loss(house: House, tab: Tab) -> None:
    tab.open().ask("before the tunnel")
    tab.page.evaluate("() => dispatchEvent(new Event('offline'))")
    tab.context.set_offline(True)
    accepted = house.program.post("in the tunnel", sessionId=tab.session)
    house.program.finished(accepted)
    tab.context.set_offline(False)
    expect(tab.log).to_contain_text("in the tunnel")
    tab.rests()
    tab.complaints.clear()  # a browser says on its console that it had no network


def texts_of(device: Tab, count: int) -> list[str]:
    words = device.page.locator(".said .words")
    expect(words).to_have_count(count)
    device.rests()
    return words.all_inner_texts()
