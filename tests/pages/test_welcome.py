"""The first steps: whoever comes first is led there once, and each of them can be left as it is."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.model.endpoint import ModelEndpoint
from sessions_app.access.models import Workspace
from sessions_app.access.services import first_workspace, make_sign_in_link
from tests.pages.browsing import Enter

pytestmark = pytest.mark.django_db


@pytest.fixture
def free(settings: Any, workspace: Workspace) -> Any:
    """A home where the environment names no folder."""
    settings.PARACHUTE_VAULT_IS_CHOSEN = False
    return settings


def signed_in_by_link(user: User) -> str:
    return str(Client().post(f"/signin/{make_sign_in_link(user)}")["Location"])


def folder_of(workspace: Workspace) -> str:
    workspace.refresh_from_db()
    return workspace.vault_path


def test_the_first_operator_is_led_there_once(ada: User, workspace: Workspace) -> None:
    assert [signed_in_by_link(ada) for _ in range(2)] == ["/welcome", "/"]


def test_members_are_not_and_do_not_use_it_up(
    ada: User, ben: User, workspace: Workspace, enter: Enter
) -> None:
    assert [signed_in_by_link(ben), signed_in_by_link(ada)] == ["/", "/welcome"]
    assert enter(ben).get("/welcome")["Location"] == "/"
    assert Client().get("/welcome")["Location"].startswith("/signin?next=")


def test_where_the_environment_has_decided_everything_nobody_is(
    ada: User, workspace: Workspace, settings: Any
) -> None:
    settings.PARACHUTE_MODEL_IS_SET_BY = ("ANTHROPIC_API_KEY",)
    settings.PARACHUTE_MODEL = ModelEndpoint("https://api.anthropic.com")
    assert signed_in_by_link(ada) == "/"


def test_it_shows_the_folder_with_its_notes_and_the_way_on(as_ada_in: Client, free: Any, vault: Path) -> None:
    (vault / "sub").mkdir()
    (vault / "sub/Pears.md").touch()
    (vault / ".hidden").mkdir()
    (vault / ".hidden/No.md").touch()
    page = as_ada_in.get("/welcome").content.decode()
    assert str(vault) in page
    assert "2 notes" in page
    assert "Start chatting with the demo" in page


def test_a_folder_of_ones_own_is_kept_over_a_restart(
    as_ada_in: Client, free: Any, workspace: Workspace, tmp_path: Path
) -> None:
    own = tmp_path / "Notes with ü"
    own.mkdir()
    answer = as_ada_in.post("/welcome/vault", {"path": f" {own}/x/.. "}, follow=True)
    assert "This is your folder now." in answer.content.decode()
    assert folder_of(workspace) == str(own)
    assert first_workspace(tmp_path, vault_is_chosen=False).vault_path == str(own)
    assert first_workspace(tmp_path, vault_is_chosen=True).vault_path == str(tmp_path)


def test_a_tilde_is_the_home_of_the_server(
    as_ada_in: Client, free: Any, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Notes").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert as_ada_in.post("/welcome/vault", {"path": "~/Notes"}).status_code == 302
    assert folder_of(workspace) == str(tmp_path / "Notes")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("Notes", "whole path"),
        ("~nobody-of-that-name/x", "whole path"),
        ("/nowhere/at/all", "no such folder"),
        ("{tmp}/file.md", "not a folder"),
        ("/", "parts of the system"),
        ("//", "parts of the system"),
        ("{tmp}/to-root", "parts of the system"),
        ("{tmp}/circle", "cannot be used"),
        ("{home}", "its own secrets"),
        ("{home}/inside", "its own secrets"),
        ("{tmp}/to-home", "its own secrets"),
        ("/proc", "parts of the system"),
        ("nul\0", "Null characters"),
        ("", "required"),
        ("/" + "x" * 5000, "at most 4000"),
        ("/" + "x" * 500, "cannot be used"),
    ],
)
def test_a_folder_that_cannot_be_one_is_refused(
    path: str, said: str, as_ada_in: Client, free: Any, workspace: Workspace, tmp_path: Path
) -> None:
    before, home = folder_of(workspace), tmp_path / "home"
    (home / "inside").mkdir(parents=True)
    (tmp_path / "file.md").touch()
    for name, to in (("to-root", "/"), ("to-home", str(home)), ("circle", str(tmp_path / "circle"))):
        (tmp_path / name).symlink_to(to)
    free.PARACHUTE_HOME = home
    answer = as_ada_in.post("/welcome/vault", {"path": path.format(tmp=tmp_path, home=home)})
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert folder_of(workspace) == before


def test_a_folder_in_that_of_another_workspace_is_refused(
    as_ada_in: Client, free: Any, workspace: Workspace, tmp_path: Path
) -> None:
    before, theirs = folder_of(workspace), tmp_path / "theirs"
    (theirs / "inside").mkdir(parents=True)
    Workspace.objects.create(slug="theirs", name="Theirs", vault_path=str(theirs))
    for path in (theirs, theirs / "inside"):
        answer = as_ada_in.post("/welcome/vault", {"path": str(path)})
        assert (answer.status_code, "lie in each other" in answer.content.decode()) == (422, True)
    assert folder_of(workspace) == before


def test_the_environments_folder_wins_and_is_said(
    as_ada_in: Client, workspace: Workspace, tmp_path: Path
) -> None:
    assert "VAULT_PATH" in as_ada_in.get("/welcome").content.decode()
    before = folder_of(workspace)
    assert as_ada_in.post("/welcome/vault", {"path": str(tmp_path)}).status_code == 409
    assert folder_of(workspace) == before
