"""Who may call: keys, browsers, and what is neither."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as Login
from django.utils import timezone

from sessions_app.access.models import ApiKey, KeyScope, Workspace
from tests.api.conftest import Key
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)

ASYNC = {"prefer": "respond-async"}


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_read_in_any_case(scheme: str, ada_calls: Web) -> None:
    token = ada_calls.headers["Authorization"].partition(" ")[2]
    assert (await Web({"authorization": f"{scheme} {token}"}).get("/api/chat")).status == 200


async def test_x_api_key_is_as_good(ada_calls: Web) -> None:
    token = ada_calls.headers["Authorization"].partition(" ")[2]
    assert (await Web({"x-api-key": token}).get("/api/chat")).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer para_wrong"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer"},
        {"authorization": "Basic YWRhOng="},
        {"x-api-key": "para_wrong"},
        {"x-api-key": "\x00\xff"},
        {"cookie": "sessionid=nobodys"},
        {"cookie": "sessionid="},
    ],
)
async def test_whoever_brings_nothing_good_is_401(headers: dict[str, str], workspace: Workspace) -> None:
    for path in ("/api/chat", "/api/chat/00000000-0000-0000-0000-000000000000/events"):
        assert (await Web(headers).get(path)).refused == (401, "unauthenticated")


async def test_a_malformed_body_of_nobody_is_401_and_not_422(nobody: Web) -> None:
    assert (await nobody.post("/api/chat", body=b"{")).refused == (401, "unauthenticated")


@pytest.mark.parametrize("change", [{"revoked_at": timezone.now()}, {"expires_at": timezone.now()}])
async def test_a_key_that_is_over_is_401(change: dict[str, object], ada_calls: Web) -> None:
    await ApiKey.objects.aupdate(**change)
    assert (await ada_calls.get("/api/chat")).refused == (401, "unauthenticated")


async def test_a_key_ends_with_its_owner(ada_calls: Web, ada: User) -> None:
    await User.objects.filter(pk=ada.pk).aupdate(is_active=False)
    assert (await ada_calls.get("/api/chat")).refused == (401, "unauthenticated")


async def test_a_key_that_expires_tomorrow_is_good_today(ada_calls: Web) -> None:
    await ApiKey.objects.aupdate(expires_at=timezone.now() + timedelta(days=1))
    assert (await ada_calls.get("/api/chat")).status == 200


@pytest.fixture
def reads(ada: User, key: Key) -> Web:
    return Web(key(ada, scopes=[KeyScope.READ]))


@pytest.fixture
def chats(ada: User, key: Key) -> Web:
    return Web(key(ada, scopes=[KeyScope.CHAT]))


async def test_a_key_to_read_may_not_speak(reads: Web) -> None:
    assert (await reads.get("/api/chat")).status == 200
    for path in ("/api/chat", "/api/chat/stream"):
        assert (await reads.post(path, {"message": "x"})).refused == (403, "forbidden")


async def test_a_key_to_speak_may_not_read(chats: Web) -> None:
    said = await chats.say("x")
    for path in ("/api/chat", f"/api/chat/{said['sessionId']}", f"/api/chat/{said['sessionId']}/events"):
        assert (await chats.get(path)).refused == (403, "forbidden")


@pytest.fixture
def elsewhere(ada: User, vault: object) -> Workspace:
    made: Workspace = Workspace.objects.create(slug="other", name="Other", vault_path=str(vault))
    made.memberships.create(user=ada, role="owner")
    return made


@pytest.fixture
def bound(ada: User, key: Key, elsewhere: Workspace) -> Web:
    return Web(key(ada, workspaces=[elsewhere]))


async def test_a_key_for_one_workspace_sees_no_other(bound: Web, ada_calls: Web) -> None:
    said = await ada_calls.say("x", workspace="default")
    assert (await bound.get("/api/chat")).json["sessions"] == []
    assert (await bound.get(f"/api/chat/{said['sessionId']}")).refused == (404, "not_found")
    assert (await bound.get(f"/api/chat/{said['sessionId']}/events")).refused == (404, "not_found")
    answer = await bound.post("/api/chat", {"message": "x", "workspace": "default"})
    assert answer.refused == (404, "not_found")


async def test_a_browser_reads_and_writes(ada_browser: Web) -> None:
    assert (await ada_browser.get("/api/chat")).status == 200
    assert await ada_browser.say("x")


async def test_a_browser_must_prove_that_its_page_asks(ada_browser: Web) -> None:
    for missing in (
        {"x-csrftoken": ""},
        {"x-csrftoken": "u" * 32},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ):
        answer = await ada_browser.post("/api/chat", {"message": "x"}, missing)
        assert answer.refused == (403, "forbidden")


async def test_a_plain_form_of_another_page_is_refused(ada_browser: Web) -> None:
    foreign = {"x-csrftoken": "", "content-type": "text/plain", "origin": "http://evil.example"}
    answer = await ada_browser.post("/api/chat", {"message": "x"}, foreign)
    assert answer.refused == (403, "forbidden")


async def test_the_api_parses_no_form_not_even_for_its_token(ada_browser: Web) -> None:
    token = ada_browser.headers["x-csrftoken"]
    form = {"x-csrftoken": "", "content-type": "application/x-www-form-urlencoded"}
    answer = await ada_browser.post("/api/chat", headers=form, body=f"csrfmiddlewaretoken={token}".encode())
    assert answer.refused == (403, "forbidden")


async def test_a_key_needs_no_csrf(ada_calls: Web) -> None:
    assert (await ada_calls.post("/api/chat", {"message": "x"}, {"origin": "null", **ASYNC})).status == 202


async def test_a_bad_key_is_refused_whatever_cookie_is_there(ada_browser: Web) -> None:
    for bad in ({"authorization": "Bearer para_wrong"}, {"x-api-key": "para_wrong"}):
        for path in ("/api/chat", "/api/chat/00000000-0000-0000-0000-000000000000/events"):
            assert (await ada_browser.get(path, bad)).refused == (401, "unauthenticated")


async def test_a_proxys_password_does_not_hide_the_cookie(ada_browser: Web) -> None:
    assert (await ada_browser.get("/api/chat", {"authorization": "Basic eDp5"})).status == 200


async def test_with_a_key_and_a_cookie_the_key_speaks(ada_browser: Web, ben_calls: Web) -> None:
    said = await ada_browser.post("/api/chat", {"message": "x"}, {**ben_calls.headers, **ASYNC})
    assert said.status == 202
    answer = await ben_calls.get(f"/api/chat/{said.json['sessionId']}")
    async with ben_calls.streaming("GET", f"/api/chat/{answer.json['id']}/events") as stream:
        assert (await stream.until("user_message"))[-1].data["source"] == "api"


async def test_a_cookie_beside_strange_ones_is_found(ada_browser: Web) -> None:
    strange = {"cookie": f'a=[1]; b="x; {ada_browser.headers["cookie"]}; c'}
    for path in ("/api/chat", "/api/chat/00000000-0000-0000-0000-000000000000/events"):
        assert (await ada_browser.get(path, strange)).status != 401


async def test_a_login_that_ended_is_401(ada_browser: Web) -> None:
    await Login.objects.all().adelete()
    assert (await ada_browser.get("/api/chat")).refused == (401, "unauthenticated")


async def test_a_new_password_ends_every_login(ada_browser: Web, ada: User) -> None:
    ada.set_password("another one")
    await ada.asave()
    assert (await ada_browser.get("/api/chat")).refused == (401, "unauthenticated")


async def test_two_keys_in_one_request_are_none(ada_calls: Web) -> None:
    """Django joins what is sent twice, so the streams do, too."""
    token = ada_calls.headers["Authorization"]
    twice = {"authorization": f"Bearer para_x,{token}"}
    for path in ("/api/chat", "/api/chat/00000000-0000-0000-0000-000000000000/events"):
        assert (await Web(twice).get(path)).refused == (401, "unauthenticated")
        assert (await Web(pairs(token)).get(path)).refused == (401, "unauthenticated")


def pairs(token: str) -> dict[str, str]:
    """The same header twice: a dict of this client holds two that differ in case."""
    return {"Authorization": "Bearer para_x", "authorization": token}
