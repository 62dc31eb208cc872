"""The soak, in the short form: half a minute of kills."""

from pathlib import Path

import pytest

from tests.soak.run import soak

pytestmark = [pytest.mark.processes, pytest.mark.depth]

SEED = 17  # the same each time; `make soak` takes another each time


def test_whatever_is_killed_every_message_is_answered_once(tmp_path: Path, variables: dict[str, str]) -> None:
    report = soak(tmp_path, variables, seconds=30, sessions=4, seed=SEED)
    assert not report.problems, str(report)
