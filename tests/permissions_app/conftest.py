from pathlib import Path

import pytest

from permissions_app.rules.setting import Setting, Trust
from tests.permissions_app.room import KEY, Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    vault, home = tmp_path / "vault", tmp_path / "home"
    scratch, config = home / "scratch" / "ada-1", home / "claude" / "ada-1"
    for folder in (vault / "notes", tmp_path / "outside", scratch, config):
        folder.mkdir(parents=True)
    (vault / "notes" / "quinces.md").write_text("They ripen in October.")
    (vault / "monkey.key").write_text("A drawing of a monkey.")
    (vault / "tls.key").write_text(KEY)
    return Room(
        Setting(
            trust=Trust.VAULT,
            behind_wall=True,
            operator=False,
            vault=vault,
            working_directory=vault,
            home=home,
            scratch=scratch,
            own_config=config,
            own_servers=frozenset({"parachute", "curator"}),
        )
    )
