"""Engines for the tests that ask for one: brought up by the first of them, ended with the run. Where there is
none these tests are skipped, and the run says at its end what was not tested, and why. Where it is the recipe
of the image that is broken they fail."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from tests.engines import EngineHere, engine_here
from tests.engines.missing import BrokenRecipe, NotTested

Engines = Callable[[str], EngineHere]


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    with ExitStack() as ends:

        @cache
        def bring(program: str) -> EngineHere | NotTested | BrokenRecipe:
            try:
                return ends.enter_context(engine_here(program))
            except (NotTested, BrokenRecipe) as why:
                return why

        def of(program: str) -> EngineHere:
            here = bring(program)
            if isinstance(here, NotTested):
                pytest.skip(f"NOT TESTED: {program}. {here}")
            if isinstance(here, BrokenRecipe):
                pytest.fail(str(here), pytrace=False)
            return here

        yield of


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    said = Counter(reason.removeprefix("Skipped: ") for reason in reasons if "NOT TESTED" in reason)
    for reason, times in said.items():
        terminalreporter.write_line(f"{reason} ({times} tests)", yellow=True)
