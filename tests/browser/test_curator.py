"""The curator as a person sees it: with the demo model, so that titles come without a key."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.house import PATIENCE, ready, signed_in, watched
from tests.browser.test_every_page import assert_is_for_everybody
from tests.processes.running import RunningUp, StartUp

pytestmark = [pytest.mark.processes, pytest.mark.browser]

SIZES = ((390, "dark"), (1280, "light"))


@pytest.fixture
def up(start_up: StartUp) -> RunningUp:
    return start_up({"PARACHUTE_CURATOR": "1"})


@pytest.fixture
def pages(browser: Browser, up: RunningUp) -> Iterator[list[Page]]:
    """A narrow one in the dark, and a wide one in the light."""
    complaints: list[str] = []
    state: StorageState = signed_in(up)
    contexts = [
        browser.new_context(
            base_url=up.address,
            viewport={"width": width, "height": 800},
            color_scheme=scheme,  # type: ignore[arg-type]
            storage_state=state,
        )
        for width, scheme in SIZES
    ]
    yield [watched(context, complaints, up.address) for context in contexts]
    for context in contexts:
        context.close()
    assert not complaints, complaints


def test_a_title_comes_by_itself_is_undone_and_the_day_names_the_chat(pages: list[Page]) -> None:
    narrow, wide = pages
    wide.goto("/")
    ready(wide)
    wide.get_by_label("Message", exact=True).fill("Write a note about pears.")
    wide.get_by_label("Message", exact=True).press("Enter")
    chip = wide.get_by_role("button", name="Updated title")
    expect(chip).to_be_visible(timeout=2 * PATIENCE)
    expect(wide.locator("#title")).to_have_text("Note about pears")
    expect(wide.locator("#chats a")).to_have_text(["Note about pears"])
    narrow.goto(wide.url)
    for page in pages:
        ready(page)
        page.locator("#curator").click()
        dialog = page.get_by_role("dialog", name="Curator")
        expect(dialog).to_contain_text("Title → “Note about pears”")
        assert_is_for_everybody(page)
    dialog.get_by_role("button", name="Undo title and summary").click()
    expect(dialog).to_contain_text("Undone.")
    for page in pages:
        expect(page.locator("#title")).to_have_text("Write a note about pears.")
    dialog.get_by_role("button", name="Look now").click()
    expect(dialog.locator("li")).to_have_count(2)
    expect(dialog.locator("li").first).to_contain_text("Log →", timeout=2 * PATIENCE)  # by itself
    for name in ("Title", "Summary"):  # which are a person's by now
        expect(dialog.locator("li").first).not_to_contain_text(f"{name} →")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    for page in pages:
        page.goto("/days")
        ready(page)
        assert_is_for_everybody(page)
        page.locator(".days a").first.click()
        ready(page)
        expect(page.get_by_role("link", name="Write a note about pears.").last).to_be_visible()
        assert_is_for_everybody(page)
