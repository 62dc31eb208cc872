"""Cy must have no access, Ben, a member of the same workspace, none to a private chat, and nobody at all gets
in: for every endpoint that there is.

The list comes from the OpenAPI document and from the routes of the streams. A new endpoint that writes fails
here until it is named below with a body that would be good.
"""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents_app.orchestration import shares, waking
from agents_app.orchestration.models import WakeKind
from agents_app.orchestration.wakes.news import News
from curator_app.models import CuratorRun
from parachute_site.api import api
from parachute_site.asgi import application
from permissions_app.grants import request_grant
from permissions_app.models import PermissionGrant
from sessions_app.access.models import ApiKey, KeyScope
from sessions_app.access.services import make_key
from sessions_app.models import Attachment, Session
from sessions_app.search import indexing
from sessions_app.threads import in_thread
from tests.api.conftest import _browser_of
from tests.api.web import Answer, Web
from tests.asked import asks

pytestmark = pytest.mark.django_db(transaction=True)

OPEN = {("GET", "/api/health"), ("GET", "/api/health/ready")}  # "open and says nothing private"
# What is foreign is left out here.
LISTS = {
    ("GET", "/api/chat/tags"),
    ("GET", "/api/chat/tags/{tag}"),
    ("GET", "/api/search"),
    ("GET", "/api/stats"),
    ("GET", "/api/chat"),
    ("GET", "/api/chat/sessions"),
    ("GET", "/api/chat/active-streams"),
    ("GET", "/api/auth/keys"),
    ("GET", "/api/permissions"),
    ("GET", "/api/agents"),
    ("GET", "/api/mcp"),
    ("GET", "/api/secrets"),
    ("GET", "/api/skills"),
    ("GET", "/api/workspaces"),
    ("GET", "/api/captures"),
}
OF_ONE_WORKSPACE = {f"/api/{name}" for name in ("agents", "captures", "mcp", "secrets", "skills")}
STEADY = sorted(LISTS - {("GET", "/api/stats")})  # which tells, too, what the process holds in memory
ENDLESS_LISTS = {("GET", "/api/permissions/stream")}  # tried by an outsider in test_api_permissions.py
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/chat"): {"message": "x", "sessionId": "{session_id}"},
    ("POST", "/api/chat/stream"): {"message": "x", "sessionId": "{session_id}"},
    ("POST", "/api/chat/{session_id}/abort"): {"turnId": "{turn_id}"},
    ("POST", "/api/chat/{session_id}/inject"): {"message": "x"},
    ("PATCH", "/api/chat/{session_id}"): {"title": "x", "trustLevel": "vault"},
    ("POST", "/api/chat/{session_id}/archive"): {},
    ("POST", "/api/chat/{session_id}/unarchive"): {},
    ("POST", "/api/chat/session/{session_id}/archive"): {},
    ("POST", "/api/chat/session/{session_id}/unarchive"): {},
    ("POST", "/api/permissions/{request_id}/grant"): {},
    ("POST", "/api/permissions/{request_id}/deny"): {"reason": "x"},
    ("POST", "/api/permissions/{request_id}/open"): {},
    ("POST", "/api/permissions/{request_id}/close"): {},
    ("POST", "/api/chat/{session_id}/permissions/grant"): {"requestId": "{request_id}"},
    ("POST", "/api/chat/{session_id}/permissions/deny"): {"requestId": "{request_id}"},
    ("POST", "/api/chat/{session_id}/permissions/trust-mode"): {"trustMode": True},
    ("POST", "/api/chat/{session_id}/answer"): {"requestId": "{request_id}", "answers": {"x": "y"}},
    ("POST", "/api/chat/{session_id}/tags"): {"tag": "x"},
    ("POST", "/api/captures"): {"filename": "x.md", "content": "x", "workspace": "{workspace}"},
    ("POST", "/api/auth/keys"): {"name": "x", "workspaces": ["{workspace}"]},
    ("POST", "/api/chat/{session_id}/curator/trigger"): {},
    ("POST", "/api/chat/{session_id}/curator/runs/{run_id}/undo"): {},
    ("PUT", "/api/chat/{session_id}/contexts"): {"paths": ["."]},
    ("POST", "/api/chat/{session_id}/contexts"): {"path": "."},
    ("PUT", "/api/agents/{agent}"): {"content": "---\nname: x\n---\n"},
    ("POST", "/api/agents/{agent}/accept-rights"): {},
    ("POST", "/api/agents/{agent}/schedule/switch"): {"isOn": False},
    ("POST", "/api/agents/{agent}/schedule/run"): {},
    ("POST", "/api/mcp/{name}"): {"command": "true"},
    ("POST", "/api/mcp/{name}/accept"): {},
    ("POST", "/api/mcp/{name}/switch"): {"on": True},
    ("POST", "/api/mcp/{name}/test"): {},
    ("PUT", "/api/secrets/{name}"): {"value": "x"},
    ("PUT", "/api/chat/{session_id}/mcp/{name}"): {"on": False},
    ("POST", "/api/skills"): {},
    ("PUT", "/api/skills/{name}"): {"on": True},
    ("PATCH", "/api/workspaces/{slug}"): {"name": "x"},
    ("POST", "/api/workspaces/{slug}/members"): {"user": "cy", "role": "owner"},
    ("PATCH", "/api/workspaces/{slug}/members/{user}"): {"role": "owner"},
    ("POST", "/api/workspaces"): {"slug": "cys", "name": "x", "vaultPath": "/nowhere"},
    ("POST", "/api/workspaces/{slug}/grants"): {
        "agent": "default",
        "details": {"childAgentId": "writer"},
        "scope": "session",
        "sessionId": "{session_id}",
    },
    ("POST", "/api/workspaces/{slug}/grant-requests/{grant_request_id}/approve"): {"scope": "session"},
    ("POST", "/api/workspaces/{slug}/grant-requests/{grant_request_id}/deny"): {},
    ("POST", "/api/workspaces/{slug}/agents/{agent}/sessions"): {"prompt": "x"},
    ("POST", "/api/workspaces/{slug}/agents/{agent}/sessions/{session_id}/cancel"): {"reason": "x"},
    ("POST", "/api/workspaces/{slug}/agents/{agent}/sessions/{session_id}/pause"): {},
    ("POST", "/api/workspaces/{slug}/agents/{agent}/sessions/{session_id}/resume"): {},
    ("POST", "/api/workspaces/{slug}/shares/{share_id}/resolve"): {},
    ("PUT", "/api/bots/config"): {"telegram": {"token": ""}},
    ("POST", "/api/bots/{platform}/start"): {},
    ("POST", "/api/bots/{platform}/stop"): {},
    ("POST", "/api/bots/{platform}/test"): {},
    ("POST", "/api/bots/pairing/{request_id}/approve"): {},
    ("POST", "/api/bots/pairing/{request_id}/deny"): {},
    ("PATCH", "/api/bots/pairing/{platform}/{user_id}"): {"agent": None},
    ("POST", "/api/bots/link"): {},
}
STREAMS = {("GET", "/api/chat/{session_id}/events"), ("GET", "/api/permissions/stream")}
PRIVATE = "a word that nobody else may read"


OF_THE_WORKSPACE = {  # Ben's business as well, but for what is of the private chat
    ("GET", "/api/workspaces/{slug}/grants"),
    ("GET", "/api/workspaces/{slug}/grant-requests"),
    ("GET", "/api/workspaces/{slug}/shares"),
    ("GET", "/api/workspaces/{slug}/wakes"),
    ("POST", "/api/workspaces/{slug}/agents/{agent}/sessions"),
    ("GET", "/api/workspaces/{slug}"),
    ("GET", "/api/workspaces/{slug}/members"),
    ("GET", "/api/agents/{agent}"),
    ("PUT", "/api/agents/{agent}"),
    ("DELETE", "/api/agents/{agent}"),
    ("GET", "/api/agents/{agent}/prompt"),
    ("POST", "/api/captures"),
    ("GET", "/api/captures/{filename}"),
    ("GET", "/api/workspaces/{slug}/vault"),
    ("GET", "/api/workspaces/{slug}/vault/file"),
}
QUERIES = {
    "/api/agents/{agent}": "?workspace={workspace}",
    "/api/agents/{agent}/accept-rights": "?workspace={workspace}",
    "/api/agents/{agent}/schedule/switch": "?workspace={workspace}",
    "/api/agents/{agent}/schedule/run": "?workspace={workspace}",
    "/api/agents/{agent}/prompt": "?workspace={workspace}",
    "/api/chat/{session_id}/contexts": "?path=.",
    **dict.fromkeys(
        (
            *(f"/api/mcp/{{name}}{rest}" for rest in ("", "/accept", "/switch", "/test", "/tools")),
            *("/api/secrets/{name}", "/api/skills", "/api/skills/{name}"),
        ),
        "?workspace={workspace}",
    ),
    "/api/captures/{filename}": "?workspace={workspace}",
    "/api/workspaces/{slug}/vault/file": "?path=captures/call.md",
}
NEEDED = {
    "/api/search": "?q=word",
    "/api/workspaces/{slug}/vault/file": "?path=captures/call.md",
}
FOR_OWNERS = {
    ("DELETE", "/api/workspaces/{slug}/grants/{grant_id}"),
    ("POST", "/api/agents/{agent}/accept-rights"),
    ("POST", "/api/agents/{agent}/schedule/switch"),
    ("POST", "/api/agents/{agent}/schedule/run"),
    ("POST", "/api/mcp/{name}"),
    ("DELETE", "/api/mcp/{name}"),
    ("POST", "/api/mcp/{name}/accept"),
    ("POST", "/api/mcp/{name}/switch"),
    ("POST", "/api/mcp/{name}/test"),
    ("GET", "/api/mcp/{name}/tools"),
    ("PUT", "/api/secrets/{name}"),
    ("DELETE", "/api/secrets/{name}"),
    ("POST", "/api/skills"),
    ("PUT", "/api/skills/{name}"),
    ("DELETE", "/api/skills/{name}"),
    ("PATCH", "/api/workspaces/{slug}"),
    ("DELETE", "/api/workspaces/{slug}"),
    ("POST", "/api/workspaces/{slug}/members"),
    ("PATCH", "/api/workspaces/{slug}/members/{user}"),
    ("DELETE", "/api/workspaces/{slug}/members/{user}"),
}
FOR_OPERATORS = {("POST", "/api/workspaces")}  # tried by others in test_api_workspaces.py
OF_ITS_OWNER = {("DELETE", "/api/auth/keys/{key_id}"), ("POST", "/api/auth/keys")}  # tried by Cy


def is_of_bots(operation: tuple[str, str]) -> bool:
    """Of the server and not of a workspace: tried by others in tests/bots/test_pairing.py."""
    return operation[1].startswith("/api/bots/")


def place(path: str) -> str:
    """Where a list is asked for, which may need words."""
    return path.replace("{tag}", quote(PRIVATE)) + NEEDED.get(path, "")


def operations() -> set[tuple[str, str]]:
    paths = api.get_openapi_schema()["paths"]
    return {(method.upper(), path) for path, found in paths.items() for method in found} | STREAMS


CLOSED = sorted(operations() - OPEN)
FOR_ONE = sorted(
    {*operations()} - OPEN - LISTS - ENDLESS_LISTS - FOR_OPERATORS - {*filter(is_of_bots, operations())}
)


def filled(wanted: Any, known: dict[str, Any]) -> Any:
    if isinstance(wanted, dict):
        return {name: filled(value, known) for name, value in wanted.items()}
    if isinstance(wanted, list):
        return [filled(value, known) for value in wanted]
    return wanted if isinstance(wanted, bool) else str(wanted).format_map(known)


async def ask(web: Web, method: str, path: str, known: dict[str, Any]) -> Answer:
    where = filled(path + QUERIES.get(path, ""), known)
    if method in ("POST", "PATCH", "PUT"):
        body = json.dumps(filled(BODIES[method, path], known)).encode()
        return await web.ask(method, where, body)
    return await web.ask(method, where)


@pytest.fixture
async def foreign(ada_calls: Web, vault: Path) -> dict[str, Any]:
    """What is Ada's, by the names that paths have for it."""
    (vault / "Agents").mkdir()
    (vault / "Agents" / "gardener.md").write_text("---\nname: Gardener\nspawn: [reader]\n---\n")
    (vault / "captures").mkdir()
    (vault / "captures" / "call.md").write_text("Ben called.")
    file = {"fileName": f"{PRIVATE}.md", "base64Data": b64encode(PRIVATE.encode()).decode()}
    said = await ada_calls.say(PRIVATE, attachments=[file])
    key = await ApiKey.objects.aget(user__username="ada")
    await ApiKey.objects.filter(pk=key.pk).aupdate(name=PRIVATE)
    request = await in_thread(asks)(said["sessionId"], input={"place": PRIVATE})
    await ada_calls.post(f"/api/chat/{said['sessionId']}/tags", {"tag": PRIVATE})
    assert await in_thread(indexing.index_session)(UUID(said["sessionId"]))
    return {
        "request_id": request.pk,
        "run_id": (await in_thread(_curated)(said["sessionId"], said["turnId"])).pk,
        "session_id": said["sessionId"],
        "turn_id": said["turnId"],
        "attachment_id": (await Attachment.objects.aget()).pk,
        "key_id": key.pk,
        "workspace": "default",
        "slug": "default",
        "agent": "gardener",
        "name": "garden",
        "user": "ben",
        "platform": "telegram",
        "user_id": "4242",
        "tag": quote(PRIVATE),
        "filename": "call.md",
        **await in_thread(_foreign_grants)(said["sessionId"]),
    }


def _curated(session_id: str, turn_id: str) -> CuratorRun:
    return CuratorRun.objects.create(
        session_id=session_id,
        turn_id=turn_id,
        exchange_number=1,
        status="done",
        ended_at=timezone.now(),
        actions=["update_title"],
        title_after=PRIVATE,
    )


def _foreign_grants(session_id: str) -> dict[str, Any]:
    session = Session.objects.select_related("workspace").get(pk=session_id)
    asked = request_grant(session, "reader", PRIVATE)
    held = PermissionGrant.objects.create(
        workspace=session.workspace, agent="default", child_agent="scribe", scope="persistent"
    )
    told = News(WakeKind.MESSAGE, "once", "a test", {"body": PRIVATE})
    waking.note(session.pk, told, skipped="it is Ada's")
    share = shares.share(session.pk, "toolu_1", PRIVATE, PRIVATE)
    return {"grant_request_id": asked.pk, "grant_id": held.pk, "share_id": share.pk}


def test_every_route_of_the_streams_is_known_here() -> None:
    routes = [str(route.pattern) for route in application.application_mapping["http"].routes]
    known = {path for _, path in STREAMS} | {"/mcp"}  # which is tried in processes/test_outside.py
    assert {f"/{route}".replace("<uuid:session_id>", "{session_id}") for route in routes if route} == known
    assert {str(r.pattern) for r in application.application_mapping["websocket"].routes} == {
        "ws",
        "ws/chat/<uuid:session_id>",
        "ws/page",
        "",
    }  # each is tried by an outsider in test_api_socket.py, the last in test_page_socket.py


@pytest.mark.parametrize(("method", "path"), FOR_ONE)
async def test_cy_gets_404_and_changes_nothing(
    method: str, path: str, foreign: dict[str, Any], cy_calls: Web, cy_browser: Web, ada_calls: Web
) -> None:
    before = [(await ada_calls.get(place(path))).json for _, path in STEADY]
    for cy in (cy_calls, cy_browser):
        answer = await ask(cy, method, path, foreign)
        assert answer.refused == (404, "not_found")
        assert PRIVATE.encode() not in answer.body
    assert [(await ada_calls.get(place(path))).json for _, path in STEADY] == before


async def in_the_same_workspace(ben: User) -> tuple[Web, Web]:
    """Ben by a key with every scope, and in a browser."""
    _, token = await in_thread(make_key)(ben, "every scope", scopes=list(KeyScope))
    return Web({"authorization": f"Bearer {token}"}), await in_thread(_browser_of)(ben)


OF_ONE_CHAT = sorted({*FOR_ONE} - OF_THE_WORKSPACE - FOR_OWNERS - OF_ITS_OWNER)


@pytest.mark.parametrize(("method", "path"), OF_ONE_CHAT)
async def test_a_private_chat_is_not_there_for_a_member_of_its_workspace(
    method: str, path: str, foreign: dict[str, Any], ben: User, ada_calls: Web
) -> None:
    before = [(await ada_calls.get(place(path))).json for _, path in STEADY]
    named_in_body = ("POST", "/api/workspaces/{slug}/grants")
    for bens in await in_the_same_workspace(ben):
        answer = await ask(bens, method, path, foreign)
        assert answer.refused == ((422, "invalid") if (method, path) == named_in_body else (404, "not_found"))
        assert PRIVATE.encode() not in answer.body
    assert [(await ada_calls.get(place(path))).json for _, path in STEADY] == before


@pytest.mark.parametrize(
    ("method", "path"), sorted(LISTS | {each for each in OF_THE_WORKSPACE if each[0] == "GET"})
)
async def test_no_list_of_its_workspace_mentions_a_private_chat(
    method: str, path: str, foreign: dict[str, Any], ben: User
) -> None:
    for query in ("", f"?parent={foreign['session_id']}", "?search=word&archived=any", "?workspace=default"):
        for bens in await in_the_same_workspace(ben):
            where = filled(place(path), foreign)
            answer = await bens.get(where + (query.replace("?", "&") if "?" in where else query))
            assert answer.status == 200
            assert foreign["session_id"].encode() not in answer.body
            assert PRIVATE.encode() not in answer.body


@pytest.mark.parametrize(("method", "path"), FOR_ONE)
async def test_a_foreign_id_is_answered_as_an_unknown_one(
    method: str, path: str, foreign: dict[str, Any], cy_calls: Web
) -> None:
    ids = ("session_id", "turn_id", "attachment_id", "request_id", "run_id")
    unknown: dict[str, Any] = {name: uuid4() for name in ids}
    unknown |= {
        "tag": "unknown",
        "grant_id": uuid4(),
        "grant_request_id": uuid4(),
        "share_id": uuid4(),
        "slug": "nowhere",
    }
    unknown |= {"key_id": 10**9, "workspace": "nowhere", "agent": "nobody", "user": "nobody"}
    unknown |= {"filename": "nothing.md", "name": "none"}
    of_foreign, of_unknown = [await ask(cy_calls, method, path, each) for each in (foreign, unknown)]
    assert (of_foreign.status, of_foreign.body) == (of_unknown.status, of_unknown.body)


@pytest.mark.parametrize(("method", "path"), sorted(LISTS))
async def test_no_list_mentions_it(method: str, path: str, foreign: dict[str, Any], cy_calls: Web) -> None:
    for query in ("", f"?parent={foreign['session_id']}", "?search=word&archived=any", "?workspace=default"):
        answer = await cy_calls.get(
            place(path) + (query.replace("?", "&") if path == "/api/search" else query)
        )
        if path in OF_ONE_WORKSPACE and "workspace" in query:
            assert answer.refused == (404, "not_found")  # they are of one workspace, which is not his
            continue
        assert answer.status == 200
        assert foreign["session_id"].encode() not in answer.body
        assert PRIVATE.encode() not in answer.body
        assert answer.json.get("total", answer.json.get("count", 0)) == 0


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_nobody_at_all_gets_401(method: str, path: str, foreign: dict[str, Any], nobody: Web) -> None:
    answer = await ask(nobody, method, path, foreign)
    assert answer.refused == (401, "unauthenticated")


@pytest.mark.parametrize(("method", "path"), sorted(OPEN))
async def test_what_is_open_says_nothing_private(
    method: str, path: str, foreign: dict[str, Any], nobody: Web, vault: object
) -> None:
    answer = await nobody.get(path)
    assert answer.status in (200, 503)
    assert not any(word.encode() in answer.body for word in (PRIVATE, str(vault), "ada", "default"))
