"""What people have allowed a session, as the rules are told it."""

from dataclasses import replace
from typing import Any

import pytest

from agents_app.turns.running.prepare import as_permitted
from permissions_app.rules.setting import Setting, Trust
from sessions_app.models import Session, SessionKind

KEPT = {"read": [], "write": ["Chat/artifacts/*"], "bash": False, "trustMode": True}


@pytest.fixture
def setting(tmp_path: Any) -> Setting:
    return Setting(
        trust=Trust.VAULT,
        behind_wall=True,
        operator=False,
        vault=tmp_path,
        working_directory=tmp_path,
        home=tmp_path,
        scratch=None,
        own_config=None,
        own_servers=frozenset(),
    )


def permitted(setting: Setting, session: Session | None = None, **kept: Any) -> Setting:
    return as_permitted(setting, session or Session(), {"permissions": {**KEPT, **kept}})


def test_patterns_are_those_of_its_metadata(setting: Setting) -> None:
    held = permitted(setting, bash=["git status"]).patterns
    assert (held.read, held.write, held.bash) == ((), ("Chat/artifacts/*",), ("git status",))


@pytest.mark.parametrize("bash", [True, False])
def test_all_or_nothing_names_no_command(setting: Setting, bash: bool) -> None:
    assert permitted(setting, bash=bash).patterns.bash == ()


class TestItActsWithoutAsking:
    def test_behind_a_wall_in_a_persons_own_session(self, setting: Setting) -> None:
        assert permitted(setting).trust_mode

    def test_not_where_a_person_took_it_away(self, setting: Setting) -> None:
        assert not permitted(setting, trustMode=False).trust_mode

    def test_not_without_a_wall(self, setting: Setting) -> None:
        assert not permitted(replace(setting, behind_wall=False)).trust_mode

    @pytest.mark.parametrize(
        "session",
        [
            Session(kind=SessionKind.SCHEDULED),
            Session(kind=SessionKind.ORCHESTRATOR),
            Session(parent=Session()),
        ],
    )
    def test_not_where_nobody_sits_beside_it(self, setting: Setting, session: Session) -> None:
        assert not permitted(setting, session).trust_mode

    def test_without_a_wall_only_where_an_operator_said_so_and_speaks(self, setting: Setting) -> None:
        unwalled = replace(setting, behind_wall=False)
        given = {"permissions": KEPT, "acts_without_a_wall": True}
        assert as_permitted(replace(unwalled, operator=True), Session(), given).trust_mode
        assert not as_permitted(unwalled, Session(), given).trust_mode
        assert not permitted(replace(unwalled, operator=True)).trust_mode
