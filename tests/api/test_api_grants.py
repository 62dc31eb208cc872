"""Grants made, listed and taken back; requests decided on, once, by people alone."""

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from agents_app.model.door import Door
from agents_app.model.endpoint import ModelEndpoint
from permissions_app import inbox
from permissions_app.audit import Entry
from permissions_app.grants import (
    NewGrant,
    decide_request,
    holds_spawn_grant,
    make_grant,
    request_grant,
    spawnable,
)
from permissions_app.grants.requests import MOST_PENDING
from permissions_app.models import GrantRequest, GrantScope, PermissionGrant
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope, Workspace
from sessions_app.errors import AlreadyDecided, Invalid, RateLimited
from sessions_app.models import Session, SessionEvent
from sessions_app.streaming.log import as_payload
from sessions_app.threads import in_thread
from tests.agents_app.at_once import at_once
from tests.api.conftest import Key, _browser_of
from tests.api.web import Web

pytestmark = pytest.mark.django_db(transaction=True)

GRANTS = "/api/workspaces/default/grants"
REQUESTS = "/api/workspaces/default/grant-requests"
ORDER = {
    "agent": "planner",
    "grantType": "spawn",
    "details": {"childAgentId": "writer"},
    "scope": "persistent",
}


@pytest.fixture
def session(workspace: Workspace) -> Session:
    made: Session = Session.objects.create(
        workspace=workspace,
        visibility="workspace",
        agent_slug="planner",
        model="m",
        vault_root=workspace.vault_path,
    )
    return made


@pytest.fixture
def asked(session: Session) -> GrantRequest:
    return request_grant(session, "writer", "It writes better.")


@pytest.fixture
def vi_browser(vi: User, workspace: Workspace) -> Web:
    return _browser_of(vi)


async def holds(session: Session, child: str = "writer", within: UUID | None = None) -> bool:
    return await in_thread(holds_spawn_grant)(session.workspace, "planner", child, within or session.pk)


def for_session(session: Session) -> dict[str, Any]:
    return ORDER | {"scope": "session", "sessionId": str(session.pk)}


async def test_an_owner_grants_for_always(ada_browser: Web, session: Session) -> None:
    answer = await ada_browser.post(GRANTS, ORDER)
    assert answer.status == 201
    [grant] = (await ada_browser.get(GRANTS)).json["grants"]
    assert grant == answer.json
    assert grant["details"] == {"childAgentId": "writer"}
    assert (grant["agent"], grant["scope"], grant["sessionId"]) == ("planner", "persistent", None)
    assert (grant["grantType"], grant["grantedBy"]) == ("spawn", "ada")
    assert await holds(session)
    assert not await holds(session, "reader")


async def test_a_box_that_is_ticked_twice_is_one_grant(ada_browser: Web) -> None:
    first, second = [await ada_browser.post(GRANTS, ORDER) for _ in range(2)]
    assert (first.status, second.status) == (201, 200)
    assert first.json == second.json


async def test_a_grant_for_a_session_is_for_no_other(ben_browser: Web, session: Session) -> None:
    assert (await ben_browser.post(GRANTS, for_session(session))).status == 201
    assert await holds(session)
    assert not await holds(session, within=uuid4())
    assert await in_thread(spawnable)(session.workspace, "planner") == []
    assert await in_thread(spawnable)(session.workspace, "planner", session.pk) == ["writer"]


async def test_what_is_taken_back_counts_at_once_and_can_be_given_again(
    ada_browser: Web, session: Session
) -> None:
    made = (await ada_browser.post(GRANTS, ORDER)).json
    gone = await ada_browser.ask("DELETE", f"{GRANTS}/{made['id']}")
    assert (gone.status, gone.body) == (204, b"")
    assert not await holds(session)
    assert (await ada_browser.get(GRANTS)).json["grants"] == []
    assert (await ada_browser.ask("DELETE", f"{GRANTS}/{made['id']}")).refused == (404, "not_found")
    assert (await ada_browser.post(GRANTS, ORDER)).status == 201


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"details": {"childAgentId": "planner"}}, "details.childAgentId"),
        ({"details": {}}, "details.childAgentId"),
        ({"details": {"childAgentId": "../x"}}, "details.childAgentId"),
        ({"details": {"childAgentId": "writer", "more": 1}}, "details.more"),
        ({"agent": ""}, "agent"),
        ({"grantType": "root"}, "grantType"),
        ({"scope": "always"}, "scope"),
        ({"scope": "session"}, "sessionId"),
        ({"scope": "session", "sessionId": "x"}, "sessionId"),
        ({"scope": "session", "sessionId": str(uuid4())}, "sessionId"),
        ({"sessionId": str(uuid4())}, "sessionId"),
    ],
)
async def test_what_cannot_be_granted_is_named(change: dict[str, Any], field: str, ada_browser: Web) -> None:
    answer = await ada_browser.post(GRANTS, ORDER | change)
    assert (answer.refused, answer.fields) == ((422, "invalid"), [field])
    assert await PermissionGrant.objects.acount() == 0


async def test_a_session_of_another_agent_is_not_taken(ada_browser: Web, session: Session) -> None:
    answer = await ada_browser.post(GRANTS, for_session(session) | {"agent": "other"})
    assert (answer.refused, answer.fields) == ((422, "invalid"), ["sessionId"])


class TestNobodyGivesMoreThanTheyHave:
    async def test_a_member_grants_for_a_session_and_not_for_always(
        self, ben_browser: Web, ada_browser: Web, asked: GrantRequest
    ) -> None:
        assert (await ben_browser.post(GRANTS, ORDER)).refused == (403, "forbidden")
        always = await ben_browser.post(f"{REQUESTS}/{asked.pk}/approve", {"scope": "persistent"})
        assert always.refused == (403, "forbidden")
        made = (await ada_browser.post(GRANTS, ORDER)).json
        assert (await ben_browser.ask("DELETE", f"{GRANTS}/{made['id']}")).refused == (403, "forbidden")
        here = await ben_browser.post(f"{REQUESTS}/{asked.pk}/approve", {"scope": "session"})
        assert here.status == 200

    async def test_a_viewer_looks_and_decides_nothing(
        self, vi_browser: Web, session: Session, asked: GrantRequest
    ) -> None:
        assert (await vi_browser.get(GRANTS)).status == 200
        assert len((await vi_browser.get(REQUESTS)).json["requests"]) == 1
        for path, body in (
            (GRANTS, for_session(session)),
            (f"{REQUESTS}/{asked.pk}/approve", {"scope": "session"}),
            (f"{REQUESTS}/{asked.pk}/deny", {}),
        ):
            assert (await vi_browser.post(path, body)).refused == (403, "forbidden")

    async def test_a_key_needs_the_scope_admin(self, ada: User, key: Key, workspace: Workspace) -> None:
        chat = Web(await in_thread(key)(ada, scopes=[KeyScope.READ, KeyScope.CHAT]))
        assert (await chat.post(GRANTS, ORDER)).refused == (403, "forbidden")
        admin = Web(await in_thread(key)(ada, scopes=[KeyScope.ADMIN]))
        assert (await admin.post(GRANTS, ORDER)).status == 201

    async def test_a_key_for_another_workspace_finds_none(
        self, ada: User, key: Key, workspace: Workspace
    ) -> None:
        other = await Workspace.objects.acreate(slug="other", name="Other", vault_path="/v")
        await other.memberships.acreate(user=ada, role="owner")
        limited = Web(await in_thread(key)(ada, scopes=list(KeyScope), workspaces=[other]))
        assert (await limited.post(GRANTS, ORDER)).refused == (404, "not_found")
        assert (await limited.get(REQUESTS)).refused == (404, "not_found")

    async def test_another_workspaces_slug_does_not_reach_a_grant(
        self, ada_browser: Web, cy_browser: Web, asked: GrantRequest
    ) -> None:
        made = (await ada_browser.post(GRANTS, ORDER)).json
        own = "/api/workspaces/elsewhere"
        assert (await cy_browser.ask("DELETE", f"{own}/grants/{made['id']}")).refused[0] == 404
        approve = f"{own}/grant-requests/{asked.pk}/approve"
        assert (await cy_browser.post(approve, {"scope": "session"})).refused[0] == 404


class TestRequests:
    async def test_a_request_is_listed_and_told_in_its_session(
        self, ada_browser: Web, asked: GrantRequest
    ) -> None:
        [listed] = (await ada_browser.get(REQUESTS)).json["requests"]
        assert (listed["id"], listed["reason"]) == (str(asked.pk), "It writes better.")
        assert listed["details"] == {"childAgentId": "writer"}
        event = as_payload(await SessionEvent.objects.aget())
        assert (event["type"], event["requestId"]) == ("grant_request", str(asked.pk))
        assert (event["agent"], event["childAgentId"]) == ("planner", "writer")

    async def test_it_is_told_in_the_inbox_and_so_is_its_end(
        self, ada_browser: Web, cy_browser: Web, asked: GrantRequest, session: Session
    ) -> None:
        async with ada_browser.streaming("GET", "/api/permissions/stream") as stream:
            first = (await stream.next()).data
            assert (first["type"], first["requestId"]) == ("grant_request", str(asked.pk))
            assert (first["sessionId"], first["workspace"]) == (str(session.pk), "default")
            other = await in_thread(request_grant)(session, "scribe")
            assert (await stream.next()).data["requestId"] == str(other.pk)
            await ada_browser.post(f"{REQUESTS}/{asked.pk}/approve", {"scope": "session"})
            last = (await stream.next()).data
            assert [last[name] for name in ("type", "requestId", "decision", "decidedBy")] == [
                "grant_resolved",
                str(asked.pk),
                "granted",
                "ada",
            ]

    async def test_an_outsider_hears_of_none(
        self, cy_browser: Web, asked: GrantRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inbox, "KEEP_ALIVE", 0.01)
        async with cy_browser.streaming("GET", "/api/permissions/stream") as stream:
            assert [(await stream.next()).type for _ in range(3)] == [""] * 3

    async def test_asked_again_it_is_the_same_one(self, asked: GrantRequest, session: Session) -> None:
        again = await in_thread(request_grant)(session, "writer")
        assert again.pk == asked.pk
        assert await SessionEvent.objects.acount() == 1

    @pytest.mark.parametrize("child", ["planner", "", "Upper", "../x", "x" * 101, "a\nb", "a\n"])
    async def test_what_is_no_agent_is_not_asked_for(self, child: str, session: Session) -> None:
        with pytest.raises(Invalid):
            await in_thread(request_grant)(session, child)

    async def test_an_agent_asks_for_so_many_and_no_more(self, session: Session) -> None:
        for number in range(MOST_PENDING):
            await in_thread(request_grant)(session, f"child-{number}", "because\0")
        with pytest.raises(RateLimited):
            await in_thread(request_grant)(session, "one-more")
        assert await in_thread(request_grant)(session, "child-1")

    @pytest.mark.parametrize("scope", ["session", "persistent"])
    async def test_an_approval_grants(
        self, scope: str, ada_browser: Web, asked: GrantRequest, session: Session
    ) -> None:
        answer = await ada_browser.post(f"{REQUESTS}/{asked.pk}/approve", {"scope": scope})
        assert (answer.status, answer.json["status"], answer.json["decidedBy"]) == (200, "approved", "ada")
        assert await holds(session)
        assert await holds(session, within=uuid4()) is (scope == "persistent")
        event = as_payload(await SessionEvent.objects.aget(type="grant_resolved"))
        assert event["decision"] == "granted"
        told = await SessionEvent.objects.filter(type="user_message").alatest("seq")
        assert told.payload["ticket"]["decision"] == "approved", "its agent ended its turn when it asked"
        assert (await ada_browser.get(REQUESTS)).json["requests"] == []
        assert len((await ada_browser.get(f"{REQUESTS}?status=approved")).json["requests"]) == 1

    async def test_a_denial_grants_nothing_and_it_may_be_asked_again(
        self, ada_browser: Web, asked: GrantRequest, session: Session
    ) -> None:
        answer = await ada_browser.post(f"{REQUESTS}/{asked.pk}/deny", {})
        assert (answer.status, answer.json["status"]) == (200, "denied")
        assert not await holds(session)
        event = as_payload(await SessionEvent.objects.aget(type="grant_resolved"))
        assert event["decision"] == "denied"
        assert (await in_thread(request_grant)(session, "writer")).pk != asked.pk

    async def test_what_is_decided_stays_so(self, ada_browser: Web, asked: GrantRequest) -> None:
        await ada_browser.post(f"{REQUESTS}/{asked.pk}/deny", {})
        again = await ada_browser.post(f"{REQUESTS}/{asked.pk}/approve", {"scope": "session"})
        assert again.refused == (409, "already_decided")
        assert await PermissionGrant.objects.acount() == 0

    async def test_what_was_granted_meanwhile_is_one_grant(
        self, ada_browser: Web, asked: GrantRequest
    ) -> None:
        await ada_browser.post(GRANTS, ORDER)
        await ada_browser.post(f"{REQUESTS}/{asked.pk}/approve", {"scope": "persistent"})
        assert await PermissionGrant.objects.acount() == 1

    async def test_an_approval_needs_a_scope(self, ada_browser: Web, asked: GrantRequest) -> None:
        answer = await ada_browser.post(f"{REQUESTS}/{asked.pk}/approve", {})
        assert (answer.refused, answer.fields) == ((422, "invalid"), ["scope"])


@pytest.mark.database
def test_of_several_who_decide_at_once_one_does(as_ada: Caller, as_ben: Caller, asked: GrantRequest) -> None:

    def act(number: int) -> str:
        scope = GrantScope.SESSION if number % 2 else None
        try:
            return str(decide_request((as_ada, as_ben)[number % 2], "default", asked.pk, scope).status)
        except AlreadyDecided as error:
            return error.code

    outcomes = sorted(at_once(act))
    assert outcomes[:3] == ["already_decided"] * 3
    assert PermissionGrant.objects.count() == (outcomes[3] == "approved")
    assert SessionEvent.objects.filter(type="grant_resolved").count() == 1


@pytest.mark.database
def test_of_several_who_grant_the_same_at_once_all_have_one(as_ada: Caller) -> None:

    wanted = NewGrant("planner", "writer", GrantScope.PERSISTENT)
    made = at_once(lambda _: make_grant(as_ada, "default", wanted))
    assert sum(is_new for _, is_new in made) == 1
    assert len({grant.pk for grant, _ in made}) == 1


async def test_who_granted_what_is_audited(
    ada: User, ada_browser: Web, asked: GrantRequest, audited: list[Entry]
) -> None:
    made = (await ada_browser.post(GRANTS, ORDER)).json
    await ada_browser.ask("DELETE", f"{GRANTS}/{made['id']}")
    await ada_browser.post(f"{REQUESTS}/{asked.pk}/approve", {"scope": "session"})
    assert [(each.kind, each.outcome, each.who) for each in audited] == [
        ("request", "asked", "platform"),
        ("grant", "granted", f"user:{ada.pk}"),
        ("grant", "revoked", f"user:{ada.pk}"),
        ("grant", "granted", f"user:{ada.pk}"),
        ("answer", "granted", f"user:{ada.pk}"),
    ]


async def test_a_list_costs_as_much_as_one(ada_browser: Web, queries: Any, session: Session) -> None:
    await ada_browser.post(GRANTS, ORDER)
    await ada_browser.get(GRANTS)
    with queries() as one:
        await ada_browser.get(GRANTS)
        for_one = len(one)
    for child in ("a", "b", "c"):
        await ada_browser.post(GRANTS, ORDER | {"details": {"childAgentId": child}})
        await in_thread(request_grant)(session, child)
    with queries() as many:
        await ada_browser.get(GRANTS)
        assert len(many) == for_one
        await ada_browser.get(REQUESTS)
        assert len(many) == 2 * for_one


async def test_a_token_of_an_agents_process_is_good_for_none_of_it(workspace: Workspace) -> None:
    door = Door(Path("door.sock"), ModelEndpoint("http://door.invalid", None))
    agent = Web({"Authorization": f"Bearer {door.issue().token}"})
    assert (await agent.post(GRANTS, ORDER)).refused == (401, "unauthenticated")
