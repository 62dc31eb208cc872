"""A page of 200 messages as Chromium paints it, beside an empty chat."""

import shutil
from statistics import median

from playwright.sync_api import sync_playwright

from tests.bench.measures import Row
from tests.browser.house import LOADED, QUIET, House, painted

CHROMIUM = "/usr/bin/chromium"
TIMES = 5
PAINT_AIM, SIZE_AIM = 300.0, 150.0  # ms, KB


def of_200_messages(house: House) -> list[Row]:
    if shutil.which(CHROMIUM) is None:
        return [Row("a page of 200 messages, painted", why_not="no Chromium here")]
    session = house.past(turns=100)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        tab = house.tab(browser)
        painted(tab, "/")  # the first of all pays for what is cached
        empty = median(painted(tab, "/") for _ in range(TIMES))
        weight = tab.page.evaluate(LOADED) / 1e3
        full = median(painted(tab, f"/chat/{session}") for _ in range(TIMES))
        loaded = tab.page.evaluate(LOADED) / 1e3
        tab.close()
        browser.close()
    return [
        Row("a page of 200 messages, painted", full, empty, PAINT_AIM),
        Row("a page of 200 messages, loaded", loaded, weight, SIZE_AIM, unit="KB"),
    ]
