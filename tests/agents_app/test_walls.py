"""Which wall a trust level gets, and that it fails closed."""

import pytest
from django.contrib.auth.models import User

from agents_app import walls
from agents_app.errors import AgentError
from agents_app.sandboxes.bubblewrap import Bubblewrap
from agents_app.sandboxes.none import NoWall
from agents_app.walls import wall_for
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


def test_a_read_only_box_never_runs_on_the_host(workspace: Workspace) -> None:
    with pytest.raises(AgentError) as error:
        wall_for(TrustLevel.SANDBOXED, workspace)
    assert error.value.code == "sandbox_unavailable"
