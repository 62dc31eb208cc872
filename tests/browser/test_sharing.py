"""Two people and one chat: whose it is, who is told of it, and who wrote what. And where a chat lives."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.house import House, Tab, ready
from tests.browser.test_every_page import assert_is_for_everybody
from tests.depth import few_of

pytestmark = [pytest.mark.processes, pytest.mark.browser]


@pytest.fixture(params=few_of([(390, "dark"), (1280, "light")], (1280, "light")), ids=str)
def ben(request: pytest.FixtureRequest, house: House, browser: Browser) -> Iterator[Tab]:
    width, scheme = request.param
    with house.person("ben", "member") as cookies:
        opened = house.tab(browser, width=width, scheme=scheme, storage_state=cookies)
        yield opened
        opened.complaints.clear()  # a browser says on its console that a chat was 404
        opened.close()


def switch(tab: Tab) -> None:
    tab.page.locator("#more > summary").click()
    tab.page.get_by_role("switch", name="Share with this workspace").click()


def test_a_chat_is_shared_written_in_by_two_and_taken_back(house: House, tab: Tab, ben: Tab) -> None:
    ready(ben.open().page)
    tab.open_past("the medlars of this year")
    expect(ben.page.locator("#chats")).not_to_contain_text("the medlars of this year")
    switch(tab)
    expect(tab.page.locator("#shares-means")).to_contain_text("ben")
    expect(tab.page.locator("#shared")).to_be_visible()
    expect(ben.page.locator("#chats")).to_contain_text("the medlars of this year")
    ben.open(f"/chat/{tab.session}").ask("and the quinces?")
    expect(tab.log.locator(".said .from")).to_have_text(["ben"])
    expect(ben.log.locator(".said").first.locator(".from")).to_have_text("admin")
    ben.page.locator("#more > summary").click()
    for what in ("Delete…", "Archive"):
        expect(ben.page.get_by_role("button", name=what, exact=True)).to_have_count(0)
    assert_is_for_everybody(ben.page)
    tab.page.get_by_role("switch", name="Share with this workspace").click()
    expect(ben.page.get_by_role("alert")).to_contain_text("not there any more, or not for you")
    expect(tab.page.locator("#shared")).to_be_hidden()
    assert ben.page.goto(f"/chat/{tab.session}").status == 404  # type: ignore[union-attr]


def test_a_chat_stays_in_the_workspace_in_which_it_began(house: House, tab: Tab) -> None:
    with house.workspace("garden") as folder:
        where = tab.open().page.get_by_label("Workspace")
        where.select_option("in Garden")
        house.model.script("write it down", [])
        tab.ask("where do we stand?")
        for _ in range(2):
            expect(where).to_be_disabled()
            expect(where).to_have_value("garden")
            tab.page.reload()
        told = house.program.http.get(f"/api/chat/{tab.session}").json()
        assert (told["workspace"], told["vaultRoot"]) == ("garden", str(folder))
