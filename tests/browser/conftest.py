from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.house import PATIENCE, QUIET, SCREENS, House, Shell, Tab, signed_in, watched
from tests.depth import few_of
from tests.processes.conftest import start_up, variables  # noqa: F401
from tests.processes.program import Program
from tests.processes.running import REAL, RunningUp, free_port, of_whoever_runs_it
from tests.scripted_model import ScriptedModel


@pytest.fixture(
    scope="module"
)  # no longer: its loop would stand in the way of tests that have one of their own
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)  # as long as a click waits; of itself it would be a sixth of that
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path="/usr/bin/chromium", args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    (folder / "vault").mkdir()
    with ScriptedModel() as model:
        variables = of_whoever_runs_it() | {
            "PARACHUTE_HOME": str(folder / "home"),
            "VAULT_PATH": str(folder / "vault"),
            "PORT": str(free_port()),
            "ANTHROPIC_BASE_URL": model.url,
            "PARACHUTE_CURATOR": "0",  # but in its own test
        }
        up = RunningUp(REAL, folder, variables)
        try:
            up.wait_ready()
            with closing(Shell(variables)) as shell:
                yield House(up, model, Program(up), signed_in(up), shell)
            up.stop()
            assert up.left() == {}
        finally:
            up.end_at_any_price()


@pytest.fixture
def tab(house: House, browser: Browser) -> Iterator[Tab]:
    opened = house.tab(browser)
    yield opened
    opened.close()


@pytest.fixture
def other_tab(house: House, browser: Browser) -> Iterator[Tab]:
    """Another device of the same person."""
    opened = house.tab(browser)
    yield opened
    opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page for a Parachute of the test's own."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    fresh = watched(context, complaints, "http://127.0.0.1")
    yield fresh
    context.close()
    assert not complaints, complaints


@pytest.fixture(params=few_of(SCREENS, (390, "dark"), (1280, "light")), ids=str)
def any_tab(request: pytest.FixtureRequest, house: House, browser: Browser) -> Iterator[Tab]:
    """On each screen; two of them stand for the others."""
    width, scheme = request.param
    opened = house.tab(browser, width=width, scheme=scheme)
    yield opened
    opened.close()
