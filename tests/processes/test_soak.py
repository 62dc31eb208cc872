"""The soak, in the short form: half a minute of kills."""

import random
from pathlib import Path

import pytest

from tests.soak.run import soak

pytestmark = pytest.mark.processes


def test_whatever_is_killed_every_message_is_answered_once(tmp_path: Path, variables: dict[str, str]) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    report = soak(tmp_path, variables, seconds=30, sessions=4, seed=seed)
    assert not report.problems, str(report)
