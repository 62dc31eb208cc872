"""Keys made, scoped, listed and revoked over the API."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.access.models import ApiKey, KeyScope, Membership, Role, Workspace
from sessions_app.threads import in_thread
from tests.api.conftest import Key
from tests.api.web import Answer, Web

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = "/api/auth/keys"
ORDER = {"name": "laptop"}
ALL = list(KeyScope)


def with_key(answer: Answer) -> Web:
    assert answer.status == 201, answer.body
    return Web({"x-api-key": answer.json["key"]})


@pytest.fixture
def admin(ada: User, key: Key) -> Web:
    return Web(key(ada, scopes=ALL))


@pytest.fixture
def elsewhere(ada: User, vault: object) -> Workspace:
    made: Workspace = Workspace.objects.create(slug="elsewhere", name="Elsewhere", vault_path=str(vault))
    Membership.objects.create(workspace=made, user=ada, role=Role.OWNER)
    return made


@pytest.fixture
def limited(ada: User, key: Key, workspace: Workspace, elsewhere: Workspace) -> Web:
    return Web(key(ada, scopes=ALL, workspaces=[elsewhere]))


async def test_a_key_is_made_and_works(admin: Web) -> None:
    answer = await admin.post(KEYS, ORDER)
    assert answer.json.keys() == {"id", "key"}
    assert answer.json["key"].startswith("para_")
    assert (await with_key(answer).get("/api/chat")).status == 200


async def test_it_is_shown_this_once(admin: Web) -> None:
    made = (await admin.post(KEYS, ORDER)).json
    listed = await admin.get(KEYS)
    assert made["key"].encode() not in listed.body
    assert b"digest" not in listed.body
    newest = listed.json["keys"][0]
    assert newest["id"] == made["id"]
    assert (newest["name"], newest["scopes"], newest["workspaces"]) == ("laptop", ["read", "chat"], None)
    assert (newest["expiresAt"], newest["lastUsedAt"]) == (None, None)


async def test_the_list_says_what_a_key_may(admin: Web, elsewhere: Workspace) -> None:
    order = {"name": "all", "scopes": ["admin", "read"], "workspaces": ["elsewhere", "default"]}
    await admin.post(KEYS, {**order, "expires_at": "2100-01-01T02:00:00+02:00"})
    newest = (await admin.get(KEYS)).json["keys"][0]
    assert (newest["scopes"], newest["workspaces"]) == (["read", "admin"], ["default", "elsewhere"])
    assert newest["expiresAt"] == "2100-01-01T00:00:00Z"


async def test_a_browser_makes_and_revokes_keys(ben_browser: Web) -> None:
    made = await ben_browser.post(KEYS, ORDER | {"scopes": ["read"]})
    assert (await with_key(made).get("/api/chat")).status == 200
    assert (await ben_browser.ask("DELETE", f"{KEYS}/{made.json['id']}")).status == 204
    assert (await with_key(made).get("/api/chat")).refused == (401, "unauthenticated")


async def test_a_browser_must_prove_that_its_page_asks(ada_browser: Web) -> None:
    answer = await ada_browser.post(KEYS, ORDER, {"x-csrftoken": ""})
    assert answer.refused == (403, "forbidden")


async def test_a_revoked_key_is_gone(admin: Web) -> None:
    made = (await admin.post(KEYS, ORDER)).json
    gone = f"{KEYS}/{made['id']}"
    answer = await admin.ask("DELETE", gone)
    assert (answer.status, answer.body) == (204, b"")
    assert made["id"] not in [key["id"] for key in (await admin.get(KEYS)).json["keys"]]
    assert (await admin.ask("DELETE", gone)).refused == (404, "not_found")


@pytest.mark.parametrize("key_id", ["x", "-1", "0", "9" * 40, "00000000-0000-0000-0000-000000000000"])
async def test_an_id_that_is_none_is_404(key_id: str, admin: Web) -> None:
    assert (await admin.ask("DELETE", f"{KEYS}/{key_id}")).refused == (404, "not_found")


@pytest.mark.parametrize("scopes", [["read"], ["chat"], ["read", "chat"]])
async def test_without_the_scope_admin_no_key_is_made_or_revoked(
    scopes: list[str], ada: User, key: Key
) -> None:
    web = Web(await in_thread(key)(ada, scopes=[KeyScope(scope) for scope in scopes]))
    assert (await web.post(KEYS, ORDER)).refused == (403, "forbidden")
    own = await ApiKey.objects.aget()
    assert (await web.ask("DELETE", f"{KEYS}/{own.pk}")).refused == (403, "forbidden")


async def test_a_key_that_may_not_read_lists_none(ada: User, key: Key) -> None:
    assert (await Web(await in_thread(key)(ada, scopes=[KeyScope.ADMIN])).get(KEYS)).refused == (
        403,
        "forbidden",
    )


async def test_a_key_makes_none_with_more_scopes(ada: User, key: Key) -> None:
    web = Web(await in_thread(key)(ada, scopes=[KeyScope.READ, KeyScope.ADMIN]))
    assert (await web.post(KEYS, ORDER)).refused == (403, "forbidden")
    assert (await web.post(KEYS, ORDER | {"scopes": ["read", "admin"]})).status == 201


async def test_a_limited_key_makes_none_for_more_workspaces(limited: Web) -> None:
    for slugs in (["default"], ["elsewhere", "default"], ["nowhere"]):
        assert (await limited.post(KEYS, ORDER | {"workspaces": slugs})).refused == (404, "not_found")
    named: list[str] | None
    for named in (["elsewhere"], None):
        made = with_key(await limited.post(KEYS, ORDER | {"workspaces": named}))
        answer = await made.post("/api/chat", {"message": "x", "workspace": "default"})
        assert answer.refused == (404, "not_found")


async def test_a_limited_key_whose_workspace_is_gone_makes_none(limited: Web, elsewhere: Workspace) -> None:
    await elsewhere.adelete()
    assert (await limited.post(KEYS, ORDER)).refused == (404, "not_found")


async def test_a_limited_key_neither_sees_nor_revokes_what_reaches_further(
    limited: Web, admin: Web, elsewhere: Workspace
) -> None:
    wide = (await admin.post(KEYS, ORDER | {"workspaces": ["elsewhere", "default"]})).json["id"]
    narrow = (await admin.post(KEYS, ORDER | {"workspaces": ["elsewhere"]})).json["id"]
    own = await ApiKey.objects.filter(name="test", is_limited=True).aget()
    assert {key["id"] for key in (await limited.get(KEYS)).json["keys"]} == {narrow, own.pk}
    assert (await limited.ask("DELETE", f"{KEYS}/{wide}")).refused == (404, "not_found")
    assert (await limited.ask("DELETE", f"{KEYS}/{narrow}")).status == 204


async def test_a_key_that_ends_makes_none_that_ends_later(ada: User, key: Key) -> None:
    end = timezone.now().replace(microsecond=0) + timedelta(days=1)
    web = Web(await in_thread(key)(ada, scopes=ALL, expires_at=end))
    later = ORDER | {"expiresAt": (end + timedelta(seconds=1)).isoformat()}
    assert (await web.post(KEYS, later)).refused == (403, "forbidden")
    await web.post(KEYS, ORDER)
    newest = (await web.get(KEYS)).json["keys"][0]
    assert datetime.fromisoformat(newest["expiresAt"]) == end


async def test_a_key_ends_when_it_was_said(admin: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    end = timezone.now() + timedelta(hours=1)
    made = with_key(await admin.post(KEYS, ORDER | {"expiresAt": end.isoformat()}))
    assert (await made.get("/api/chat")).status == 200
    monkeypatch.setattr(timezone, "now", lambda: end)
    assert (await made.get("/api/chat")).refused == (401, "unauthenticated")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "\0"}, "name"),
        ({"name": None}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["all"]}, "scopes.0"),
        ({"scopes": "read"}, "scopes"),
        ({"workspaces": []}, "workspaces"),
        ({"workspaces": ["\0"]}, "workspaces.0"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ({"expiresAt": "2100-01-01T00:00:00"}, "expiresAt"),
        ({"expiresAt": "tomorrow"}, "expiresAt"),
        ({"user": "ben"}, "user"),
    ],
)
async def test_what_cannot_be_taken_is_named(change: dict[str, Any], field: str, admin: Web) -> None:
    answer = await admin.post(KEYS, ORDER | change)
    assert answer.refused == (422, "invalid")
    assert answer.fields == [field]
    assert await ApiKey.objects.acount() == 1


async def test_a_key_is_of_whoever_made_it(ben_browser: Web, ada_browser: Web, workspace: Workspace) -> None:
    made = (await ben_browser.post(KEYS, ORDER)).json
    assert (await ada_browser.get(KEYS)).json["keys"] == []
    assert (await ada_browser.ask("DELETE", f"{KEYS}/{made['id']}")).refused == (404, "not_found")


async def test_a_list_of_keys_costs_as_much_as_one(admin: Web, queries: Callable[[], Any]) -> None:
    await admin.get(KEYS)
    with queries() as one:
        await admin.get(KEYS)
        for_one = len(one)
    for _ in range(3):
        await admin.post(KEYS, ORDER | {"workspaces": ["default"]})
    with queries() as many:
        await admin.get(KEYS)
        assert len(many) <= for_one + 1
