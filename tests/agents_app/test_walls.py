"""Which wall a trust level gets, and that it fails closed."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from agents_app.errors import AgentError
from agents_app.sandboxes import walls
from agents_app.sandboxes.bubblewrap import Bubblewrap
from agents_app.sandboxes.none import NoWall
from agents_app.sandboxes.walls import WhatIsHere, wall_for
from sessions_app.access.models import Membership, TrustLevel, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "named", lambda name: Missing() if name == "bubblewrap" else NoWall())


class Missing(Bubblewrap):
    def unavailable(self) -> str:
        return "No bubblewrap here."


class Present(Bubblewrap):
    def unavailable(self) -> None:
        return None


def test_the_whole_computer_has_no_wall(workspace: Workspace) -> None:
    wall = wall_for(TrustLevel.FULL, workspace)
    assert (wall.sandbox.is_wall, wall.warning) == (False, "")


def test_a_vault_is_walled_where_a_wall_can_be_built(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walls, "named", lambda name: Present())
    assert wall_for(TrustLevel.VAULT, workspace).sandbox.is_wall


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_one_operators_among_themselves_are_warned(workspace: Workspace, ada: User) -> None:
    Membership.objects.exclude(user=ada).delete()
    wall = wall_for(TrustLevel.VAULT, workspace)
    assert not wall.sandbox.is_wall
    assert "No bubblewrap here." in wall.warning


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_one_a_workspace_with_others_runs_nothing(workspace: Workspace) -> None:
    with pytest.raises(AgentError) as error:
        wall_for(TrustLevel.VAULT, workspace)
    assert error.value.code == "sandbox_unavailable"
    assert "No bubblewrap here." in error.value.message


class TestBox:
    """A read-only box is a container, or what the operator named, and never anything less."""

    @pytest.fixture(autouse=True)
    def machine(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
        """Which wall says what of itself."""
        said: dict[str, str | None] = {"docker": None, "podman": None, "bubblewrap": None}
        monkeypatch.setattr(walls, "named", lambda name: Said(name, said.get(name)))
        return said

    def test_the_first_engine_that_runs_is_taken(
        self, workspace: Workspace, machine: dict[str, str | None]
    ) -> None:
        assert wall_for(TrustLevel.SANDBOXED, workspace).sandbox.name == "docker"
        machine["docker"] = "No docker."
        assert wall_for(TrustLevel.SANDBOXED, workspace).sandbox.name == "podman"

    def test_without_an_engine_nothing_runs(
        self, workspace: Workspace, machine: dict[str, str | None]
    ) -> None:
        machine |= {"docker": "No docker.", "podman": "No podman."}
        with pytest.raises(AgentError) as error:
            wall_for(TrustLevel.SANDBOXED, workspace)
        assert (error.value.code, error.value.message) == ("sandbox_unavailable", "No docker. No podman.")

    def test_bubblewrap_is_one_where_it_was_named(self, workspace: Workspace, settings: Any) -> None:
        settings.PARACHUTE_SANDBOX = "bubblewrap"
        assert wall_for(TrustLevel.SANDBOXED, workspace).sandbox.name == "bubblewrap"

    def test_one_engine_alone_is_asked_where_it_was_named(
        self, workspace: Workspace, settings: Any, machine: dict[str, str | None]
    ) -> None:
        settings.PARACHUTE_SANDBOX = "podman"
        machine["podman"] = "No podman."
        with pytest.raises(AgentError):
            wall_for(TrustLevel.SANDBOXED, workspace)

    def test_what_is_here_is_told_with_what_to_install(self, machine: dict[str, str | None]) -> None:
        machine["docker"] = "No docker."
        told = {each.wall: each for each in walls.what_is_here()}
        assert told["docker"] == WhatIsHere("sandboxed", "docker", False, "No docker.", "apt install docker")
        assert (told["bubblewrap"].level, told["bubblewrap"].works) == ("vault", True)
        assert [each.what_to_install for each in told.values() if each.works] == ["", "", ""]

    def test_a_page_offers_what_worked_when_somebody_last_looked(
        self,
        workspace: Workspace,
        machine: dict[str, str | None],
        settings: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        settings.PARACHUTE_REDIS = "unix:///run/valkey.sock"
        monkeypatch.setattr(walls, "_found", {})
        monkeypatch.setattr(walls, "_looking", _Locked())
        monkeypatch.setattr(walls, "never_available", lambda trust: None)
        assert walls.seems_to_work("sandboxed", workspace)
        machine |= {"docker": "No docker.", "podman": "No podman.", "bubblewrap": "No bubblewrap."}
        walls.look()
        offered = [level for level in TrustLevel if walls.seems_to_work(level, workspace)]
        assert offered == ["full"]  # the workspace has members who are no operators
        Membership.objects.exclude(user__is_staff=True).delete()
        assert walls.seems_to_work("vault", workspace)
        settings.PARACHUTE_REDIS = "redis://elsewhere"
        assert walls.seems_to_work("sandboxed", workspace)


class _Locked:
    """Somebody else is looking."""

    def acquire(self, *, blocking: bool) -> bool:
        return False


class Said(NoWall):
    def __init__(self, name: str, problem: str | None) -> None:
        self.name, self.install, self._problem = name, f"apt install {name}", problem
        self.is_wall = name != "none"

    def unavailable(self) -> str | None:
        return self._problem
