"""The pages of workspaces: made, changed, and people invited by a link that is good once."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.access.caller import Caller
from sessions_app.access.models import Membership, Role, Workspace
from sessions_app.access.services import make_key
from tests.pages.browsing import Enter, send

ONE = "/workspaces/of/default"
HOLDS = {"name": "Ours", "default_agent": "default", "default_trust": "vault", "trust_floor": "vault"}


def text_of(page: Any) -> str:
    return " ".join(page.content.decode().split())


def link_in(page: Any) -> str:
    return str(page.context["link"]).removeprefix("http://testserver")


def test_an_operator_makes_one_in_the_page(as_ada_in: Client, ada: User, tmp_path: Path) -> None:
    folder = tmp_path / "garden"
    form = {"name": "Garden", "slug": "garden", "vault_path": str(folder)}
    refused = as_ada_in.post("/workspaces/new", form)
    assert (refused.status_code, "There is no such folder." in text_of(refused)) == (422, True)
    folder.mkdir()
    assert as_ada_in.post("/workspaces/new", form)["Location"] == "/workspaces/of/garden"
    assert Membership.objects.get(workspace__slug="garden").user == ada
    assert as_ada_in.post("/workspaces/new", form).status_code == 422


def test_an_owner_changes_what_holds(as_ada_in: Client, enter: Enter, ben: User, vault: Path) -> None:
    form = {**HOLDS, "vault_path": str(vault)}
    assert as_ada_in.post(ONE, form).status_code == 302
    workspace = Workspace.objects.get()
    assert (workspace.name, workspace.trust_floor, workspace.agents) == ("Ours", "vault", None)
    wrong = as_ada_in.post(ONE, {**form, "time_zone": "Nowhere/Else"})
    assert (wrong.status_code, "is not a time zone" in text_of(wrong)) == (422, True)
    assert enter(ben).post(ONE, {**form, "name": "Mine"}).status_code == 422
    assert "What holds here" not in text_of(enter(ben).get(ONE))
    workspace.refresh_from_db()
    assert workspace.name == "Ours"


class TestInviting:
    def test_somebody_new_comes_in_by_a_link_that_is_good_once(self, as_ada_in: Client) -> None:
        page = as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "member"})
        assert page.status_code == 201
        dora = User.objects.get(username="dora")
        assert (dora.is_staff, dora.has_usable_password()) == (False, False)
        browser = Client(enforce_csrf_checks=True)
        assert send(browser, link_in(page)).status_code == 302
        assert "Set a password under Settings" in text_of(browser.get("/"))
        assert ONE in text_of(browser.get("/workspaces"))
        assert send(Client(enforce_csrf_checks=True), link_in(page)).status_code == 403
        assert link_in(page) not in text_of(as_ada_in.get(ONE)), "it is shown this once"

    def test_who_has_not_come_gets_another_link_and_the_first_is_none_any_more(
        self, as_ada_in: Client
    ) -> None:
        first = as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "member"})
        assert "invite them again for another link" in text_of(as_ada_in.get(ONE))
        second = as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "viewer"})
        assert send(Client(enforce_csrf_checks=True), link_in(first)).status_code == 403
        assert send(Client(enforce_csrf_checks=True), link_in(second)).status_code == 302
        assert Membership.objects.get(user__username="dora").role == Role.VIEWER

    def test_who_was_put_out_before_they_came_does_not_come_in(self, as_ada_in: Client) -> None:
        page = as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "member"})
        dora = User.objects.get(username="dora")
        assert as_ada_in.post(f"{ONE}/members/{dora.pk}/remove").status_code == 302
        assert send(Client(enforce_csrf_checks=True), link_in(page)).status_code == 403
        again = as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "member"})
        assert send(Client(enforce_csrf_checks=True), link_in(again)).status_code == 302

    @pytest.mark.parametrize("name", ["ben", "ada", "cy"])
    def test_nobody_gets_a_link_into_what_is_anothers(
        self, name: str, as_ada_in: Client, ben: User, cy: User, as_cy: Caller
    ) -> None:
        User.objects.filter(username="cy").update(password="!unusable")
        page = as_ada_in.post(f"{ONE}/invite", {"user": name, "role": "member"})
        assert page.status_code == 409
        assert "link" not in page.context or not page.context["link"]

    def test_nor_to_somebody_with_a_key(self, as_ada_in: Client) -> None:
        as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "member"})
        make_key(User.objects.get(username="dora"), "hers")
        assert as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "member"}).status_code == 409

    @pytest.mark.parametrize("name", ["", "a b", "x" * 151, "a/b"])
    def test_a_name_that_is_none_is_refused(self, name: str, as_ada_in: Client) -> None:
        page = as_ada_in.post(f"{ONE}/invite", {"user": name, "role": "member"})
        assert page.status_code == 422
        assert "Give a name" in text_of(page) or "no blanks, such as" in text_of(page)

    @pytest.mark.parametrize(("host", "is_said"), [("localhost:3333", True), ("testserver", False)])
    def test_a_link_that_leads_nowhere_else_says_so(
        self, host: str, is_said: bool, as_ada_in: Client
    ) -> None:
        page = as_ada_in.post(f"{ONE}/invite", {"user": "dora", "role": "member"}, headers={"host": host})
        assert ("works on this one only" in text_of(page)) is is_said

    def test_only_owners_invite(self, enter: Enter, ben: User, cy: User, as_cy: Caller) -> None:
        form = {"user": "dora", "role": "owner"}
        assert enter(ben).post(f"{ONE}/invite", form).status_code == 403
        assert enter(cy).post(f"{ONE}/invite", form).status_code == 404
        assert not User.objects.filter(username="dora").exists()


def test_cy_sees_none_of_it(enter: Enter, cy: User, as_cy: Caller) -> None:
    page = enter(cy)
    assert "/workspaces/of/default" not in text_of(page.get("/workspaces"))
    assert page.get(ONE).status_code == 404
    assert page.get("/workspaces/new").status_code == 404
    for where in ("archive", "remove", "members", "invite", "members/1", "members/1/remove"):
        assert page.post(f"{ONE}/{where}", {"user": "cy", "role": "owner"}).status_code == 404


def test_an_archived_one_is_not_offered(as_ada_in: Client, ada: User, tmp_path: Path) -> None:
    folder = tmp_path / "garden"
    folder.mkdir()
    as_ada_in.post("/workspaces/new", {"name": "Garden", "slug": "garden", "vault_path": str(folder)})
    assert "Garden" in text_of(as_ada_in.get("/"))
    starts = "/?workspace=garden"
    assert starts in text_of(as_ada_in.get("/workspaces/of/garden"))
    as_ada_in.post("/workspaces/of/garden/archive")
    assert starts not in text_of(as_ada_in.get("/workspaces/of/garden"))
    assert "Garden" not in text_of(as_ada_in.get("/"))
    assert "In the archive" in text_of(as_ada_in.get("/workspaces"))
    as_ada_in.post("/workspaces/of/garden/archive", {"back": "1"})
    assert "Garden" in text_of(as_ada_in.get("/"))
    as_ada_in.post("/workspaces/of/garden/archive")
    assert as_ada_in.post("/workspaces/of/garden/remove")["Location"] == "/workspaces"
    assert folder.is_dir()


class TestTheAdmin:
    FORM = {
        **{"name": "Garden", "slug": "garden", "default_trust": "vault", "trust_floor": "full"},
        **{"default_agent": "default", "agents": "null", "writes_copies": "on", "curates": "on"},
        **{f"memberships-{name}": "0" for name in ("TOTAL_FORMS", "INITIAL_FORMS")},
    }

    def test_who_makes_a_workspace_there_owns_it(self, as_ada_in: Client, ada: User, tmp_path: Path) -> None:
        folder = tmp_path / "garden"
        folder.mkdir()
        add = "/admin/sessions_app/workspace/add/"
        answer = as_ada_in.post(add, {**self.FORM, "vault_path": str(folder)})
        assert answer.status_code == 302, answer.context["adminform"].form.errors
        assert Membership.objects.get(workspace__slug="garden", user=ada).role == Role.OWNER

    def test_a_folder_that_is_not_there_is_refused_there(self, as_ada_in: Client, tmp_path: Path) -> None:
        answer = as_ada_in.post(
            "/admin/sessions_app/workspace/add/", {**self.FORM, "vault_path": str(tmp_path / "nowhere")}
        )
        assert "There is no such folder." in text_of(answer)
        assert not Workspace.objects.filter(slug="garden").exists()
