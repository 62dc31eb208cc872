"""Workspaces and who is in them: operators make them, owners rule over them, and two are apart."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from sessions_app.access.models import KeyScope, Membership, Workspace
from sessions_app.access.services import make_key
from sessions_app.threads import in_thread
from tests.api.web import Answer, Web

pytestmark = pytest.mark.django_db(transaction=True)


async def of(user: User) -> Web:
    _, token = await in_thread(make_key)(user, "all", scopes=list(KeyScope))
    return Web({"authorization": f"Bearer {token}"})


@pytest.fixture
async def adas(ada: User, workspace: Workspace) -> Web:
    return await of(ada)


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    folder = tmp_path / "garden"
    folder.mkdir()
    return folder


async def send(web: Web, method: str, where: str, **body: Any) -> Answer:
    return await web.ask(method, where, json.dumps(body).encode())


async def make(web: Web, folder: Path | str, slug: str = "garden") -> Answer:
    return await send(web, "POST", "/api/workspaces", slug=slug, name="Garden", vaultPath=str(folder))


async def test_an_operator_makes_one_and_owns_it(adas: Web, garden: Path) -> None:
    made = await make(adas, garden)
    assert (made.status, made.json["role"], made.json["vaultPath"]) == (201, "owner", str(garden))
    assert [each["slug"] for each in (await adas.get("/api/workspaces")).json["workspaces"]] == [
        "default",
        "garden",
    ]
    assert (await make(adas, garden)).refused == (422, "invalid"), "the folder is taken"


async def test_others_make_none(ben: User, workspace: Workspace, garden: Path) -> None:
    assert (await make(await of(ben), garden)).refused == (403, "forbidden")


async def test_no_vault_lies_in_another_or_in_our_home(adas: Web, vault: Path, tmp_path: Path) -> None:
    inside, home, linked = vault / "inside", tmp_path / "home", tmp_path / "linked"
    inside.mkdir()
    home.mkdir()
    linked.symlink_to(inside)
    with override_settings(PARACHUTE_HOME=str(home)):
        for folder in (inside, tmp_path, home, linked, tmp_path / "nowhere", "relative", "/etc"):
            answer = await make(adas, folder)
            assert answer.refused == (422, "invalid"), folder
            assert answer.json["error"]["details"]["fields"][0]["field"] == "vaultPath"
    assert await Workspace.objects.acount() == 1


async def test_no_way_to_a_vault_leads_through_another(adas: Web, vault: Path, garden: Path) -> None:
    """Whoever writes there could let the link lead elsewhere, later."""
    (vault / "to-garden").symlink_to(garden)
    (garden / "beds").mkdir()
    for folder in (vault / "to-garden", vault / "to-garden" / "beds"):
        assert (await make(adas, folder)).refused == (422, "invalid")


async def test_a_key_for_some_workspaces_opens_no_folder(
    adas: Web, ada: User, workspace: Workspace, garden: Path
) -> None:
    _, token = await in_thread(make_key)(ada, "one", scopes=list(KeyScope), workspaces=[workspace])
    limited = Web({"authorization": f"Bearer {token}"})
    assert (await make(limited, garden)).refused == (403, "forbidden")
    moved = await send(limited, "PATCH", "/api/workspaces/default", vaultPath=str(garden))
    assert moved.refused == (403, "forbidden")
    assert (await send(limited, "PATCH", "/api/workspaces/default", name="Ours")).status == 200


@pytest.mark.parametrize("slug", ["", "Garden", "a b", "-", "g" * 51, "gärten"])
async def test_a_slug_that_is_none_is_refused(slug: str, adas: Web, garden: Path) -> None:
    assert (await make(adas, garden, slug)).refused == (422, "invalid")


async def test_an_owner_says_what_holds_and_only_that_changes(adas: Web, vault: Path) -> None:
    changed = await send(
        adas, "PATCH", "/api/workspaces/default", timeZone="Europe/Berlin", agents=["gardener"], curates=False
    )
    assert (changed.json["timeZone"], changed.json["agents"]) == ("Europe/Berlin", ["gardener"])
    assert (changed.json["name"], changed.json["vaultPath"]) == ("Default", str(vault))
    again = await send(adas, "PATCH", "/api/workspaces/default", agents=None)
    assert (again.json["agents"], again.json["timeZone"]) == (None, "Europe/Berlin")
    wrong = await send(adas, "PATCH", "/api/workspaces/default", timeZone="Nowhere/Else")
    assert wrong.refused == (422, "invalid")


async def test_an_owner_who_is_no_operator_does_not_choose_the_folder(
    ben: User, workspace: Workspace, garden: Path
) -> None:
    await Membership.objects.filter(user=ben).aupdate(role="owner")
    bens = await of(ben)
    assert (await send(bens, "PATCH", "/api/workspaces/default", name="Ours")).status == 200
    answer = await send(bens, "PATCH", "/api/workspaces/default", vaultPath=str(garden))
    assert answer.refused == (403, "forbidden")


async def test_members_read_it_and_change_nothing(ben: User, workspace: Workspace) -> None:
    bens = await of(ben)
    assert (await bens.get("/api/workspaces/default")).json["role"] == "member"
    assert len((await bens.get("/api/workspaces/default/members")).json["members"]) == 3
    for method, where, body in (
        ("PATCH", "", {"name": "x"}),
        ("DELETE", "", {}),
        ("POST", "/members", {"user": "ben", "role": "owner"}),
        ("PATCH", "/members/ben", {"role": "owner"}),
        ("DELETE", "/members/ada", {}),
    ):
        answer = await send(bens, method, f"/api/workspaces/default{where}", **body)
        assert answer.refused == (403, "forbidden"), (method, where)


async def test_members_come_and_go(adas: Web, cy: User) -> None:
    where = "/api/workspaces/default/members"
    assert (await send(adas, "POST", where, user="cy", role="viewer")).status == 201
    assert (await send(adas, "POST", where, user="cy", role="viewer")).refused == (409, "conflict")
    assert (await send(adas, "POST", where, user="nobody", role="viewer")).refused == (422, "invalid")
    changed = await send(adas, "PATCH", f"{where}/cy", role="member")
    assert {"user": "cy", "role": "member", "isActive": True} in changed.json["members"]
    assert (await adas.ask("DELETE", f"{where}/cy")).status == 204
    assert (await adas.ask("DELETE", f"{where}/cy")).refused == (404, "not_found")
    assert (await adas.ask("DELETE", f"{where}/ada")).refused == (409, "conflict"), "the last owner"


async def test_one_is_archived_first_and_removed_second(adas: Web, garden: Path) -> None:
    await make(adas, garden)
    said = await adas.say("hi", workspace="garden")
    assert (await adas.ask("DELETE", "/api/workspaces/garden?remove=true")).refused == (409, "conflict")
    assert (await adas.ask("DELETE", "/api/workspaces/garden")).status == 204
    assert [each["slug"] for each in (await adas.get("/api/workspaces")).json["workspaces"]] == ["default"]
    listed = (await adas.get("/api/workspaces?archived=true")).json["workspaces"]
    assert [each["slug"] for each in listed] == ["garden"]
    for body in ({"workspace": "garden"}, {"sessionId": said["sessionId"]}):
        answer = await send(adas, "POST", "/api/chat", message="more", **body)
        assert answer.refused == (409, "conflict")
    assert (await adas.get(f"/api/chat/{said['sessionId']}")).status == 200, "it can be read"
    assert (await adas.ask("DELETE", "/api/workspaces/garden?remove=true")).refused == (409, "conflict")
    back = await send(adas, "PATCH", "/api/workspaces/garden", archived=False)
    assert back.json["archivedAt"] is None
    await adas.ask("DELETE", f"/api/chat/{said['sessionId']}")
    await adas.ask("DELETE", "/api/workspaces/garden")
    assert (await adas.ask("DELETE", "/api/workspaces/garden?remove=true")).status == 204
    assert garden.is_dir()
    assert not await Workspace.objects.filter(slug="garden").aexists()


async def test_the_first_one_stays(adas: Web) -> None:
    assert (await adas.ask("DELETE", "/api/workspaces/default")).refused == (409, "conflict")


async def test_a_file_of_the_vault_comes_as_it_is(adas: Web, workspace: Workspace, vault: Path) -> None:
    picture, page = b"\x89PNG\r\n\x1a\n\0" * 100_000, b"<script>alert(1)</script>"
    (vault / "pear.png").write_bytes(picture)
    (vault / "page.png").write_bytes(page)
    where = f"/api/workspaces/{workspace.slug}/vault/file?path="
    found = await adas.get(where + "pear.png")
    assert (found.body, found.headers["content-type"]) == (picture, "image/png")
    found = await adas.get(where + "page.png")
    assert (found.body, found.headers["content-type"]) == (page, "application/octet-stream")
    assert (await adas.get(where + "none.png")).refused == (404, "not_found")
    assert (await adas.get(where)).refused == (404, "not_found")
