"""Agents over the API: what their files say, how they are written, and who accepts what they ask for."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agents_app.definitions import editing
from permissions_app import audit
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope, Membership, Role, Workspace
from sessions_app.access.services import make_key
from sessions_app.errors import Conflict
from sessions_app.models import SessionContext
from sessions_app.threads import in_thread
from tests.api.web import Answer, Web

pytestmark = pytest.mark.django_db(transaction=True)

GARDENER = "---\nname: Gardener\ntools: [Read]\nspawn: [reader]\n---\n\nYou keep the garden.\n"


async def with_every_scope(user: User) -> Web:
    _, token = await in_thread(make_key)(user, "all", scopes=list(KeyScope))
    return Web({"authorization": f"Bearer {token}"})


@pytest.fixture
async def adas(ada: User, workspace: Workspace) -> Web:
    return await with_every_scope(ada)


@pytest.fixture
async def bens(ben: User, workspace: Workspace) -> Web:
    return await with_every_scope(ben)


@pytest.fixture
def file(vault: Path) -> Path:
    (vault / "Agents").mkdir()
    found = vault / "Agents" / "gardener.md"
    found.write_text(GARDENER)
    return found


async def send(web: Web, method: str, where: str, **body: Any) -> Answer:
    return await web.ask(method, where, json.dumps(body).encode())


async def test_a_vault_without_agents_has_the_default(adas: Web) -> None:
    (agent,) = (await adas.get("/api/agents")).json["agents"]
    assert (agent["id"], agent["path"], agent["error"]) == ("default", "", None)


async def test_the_list_says_what_counts_and_what_is_wrong(adas: Web, file: Path) -> None:
    (file.parent / "broken.md").write_text("---\nname: B\nmodel: [sonnet]\n---\n")
    default, gardener, broken = (await adas.get("/api/agents")).json["agents"]
    assert default["slug"] == "default"
    assert (gardener["tools"], gardener["pendingRights"]["rights"]) == (["Read"], ["spawn"])
    assert broken["error"] == {
        "line": 3,
        "field": "model",
        "message": "text was expected, and this is a list",
    }


async def test_an_owner_accepts_what_they_have_read_and_an_audit_row_says_so(
    adas: Web, bens: Web, file: Path, audited: list[audit.Entry]
) -> None:
    seen = (await adas.get("/api/agents/gardener")).json
    refused = await send(bens, "POST", "/api/agents/gardener/accept-rights")
    assert refused.refused == (403, "forbidden")
    other = await send(adas, "POST", "/api/agents/gardener/accept-rights", hash="0" * 64)
    assert other.refused == (409, "conflict")
    answer = await send(
        adas, "POST", "/api/agents/gardener/accept-rights", hash=seen["pendingRights"]["hash"]
    )
    assert (answer.json["rights"]["spawn"], answer.json["pendingRights"]) == (["reader"], None)
    (row,) = [each for each in audited if each.tool == "agent-rights"]
    assert row.arguments["accepted"] == {"spawn": ["reader"]}


async def test_times_that_an_owner_accepts_are_there_at_once(adas: Web, file: Path) -> None:
    file.write_text(GARDENER.replace("spawn: [reader]", 'schedule: "0 7 * * 1-5"'))
    await send(adas, "POST", "/api/agents/gardener/accept-rights")
    answer = await send(adas, "POST", "/api/agents/gardener/schedule/switch", isOn=True)
    assert (answer.status, answer.json["cron"], answer.json["isOn"]) == (200, "0 7 * * 1-5", True)


async def test_a_file_is_written_in_place_and_never_over_a_newer_one(adas: Web, file: Path) -> None:
    seen, inode = (await adas.get("/api/agents/gardener")).json, file.stat().st_ino
    fresh = GARDENER.replace("keep", "love")
    saved = await send(adas, "PUT", "/api/agents/gardener", content=fresh, digest=seen["digest"])
    assert (saved.status, saved.json["prompt"]) == (200, "You love the garden.")
    assert (file.read_text(), file.stat().st_ino) == (fresh, inode)
    late = await send(adas, "PUT", "/api/agents/gardener", content=GARDENER, digest=seen["digest"])
    assert late.refused == (409, "conflict")
    assert file.read_text() == fresh


def test_of_two_who_write_at_once_one_is_told_of_the_other(as_ada: Caller, file: Path) -> None:
    """Both have read the same file."""
    workspace = Workspace.objects.get(slug="default")

    def write(text: str) -> str:
        start.wait(10)
        try:
            editing.save(as_ada, workspace, "gardener", text, read=digest)
        except Conflict:
            return ""
        else:
            return text
        finally:
            connection.close()

    for number in range(20):
        digest = editing.known(workspace, "gardener").definition.digest
        texts = [GARDENER.replace("keep", f"{word} {number}") for word in ("love", "hate")]
        start = Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            taken = list(filter(None, pool.map(write, texts)))
        assert taken == [file.read_text()]


async def test_what_runs_without_asking_on_the_whole_computer_an_operator_accepts(
    adas: Web, bens: Web, ben: User, file: Path
) -> None:
    """No wall stands there, and its approvals are operators' everywhere else."""
    await in_thread(Membership.objects.filter(user=ben).update)(role=Role.OWNER)
    file.write_text("---\npermissions:\n  bash: ['git status']\n---\n")
    refused = await send(bens, "POST", "/api/agents/gardener/accept-rights")
    assert refused.refused == (403, "forbidden")
    assert (await adas.get("/api/agents/gardener")).json["rights"]["bash"] == []
    answer = await send(adas, "POST", "/api/agents/gardener/accept-rights")
    assert answer.json["rights"]["bash"] == ["git status"]
    file.write_text("---\nspawn: [reader]\npermissions:\n  bash: ['git status']\n---\n")
    assert (await send(bens, "POST", "/api/agents/gardener/accept-rights")).status == 200, "it has that"


async def test_a_new_one_is_made_and_one_is_deleted(adas: Web, vault: Path) -> None:
    made = await send(adas, "PUT", "/api/agents/reader", content="---\nname: R\n---\n", digest="")
    assert (made.status, made.json["path"]) == (201, "Agents/reader.md")
    again = await send(adas, "PUT", "/api/agents/reader", content="---\nname: R\n---\n", digest="")
    assert again.refused == (409, "conflict")
    assert (await adas.ask("DELETE", "/api/agents/reader")).status == 204
    assert not (vault / "Agents" / "reader.md").exists()
    assert (await adas.ask("DELETE", "/api/agents/reader")).refused == (404, "not_found")
    assert (await adas.ask("DELETE", "/api/agents/default")).refused == (409, "conflict")


@pytest.mark.parametrize(
    ("slug", "content", "field"),
    [
        ("Gardener", "---\nname: G\n---\n", "slug"),
        ("..", "---\nname: G\n---\n", "slug"),
        ("a%00b", "---\nname: G\n---\n", "slug"),
        ("g" * 300, "---\nname: G\n---\n", "slug"),
        ("ga%CC%88rtner", "---\nname: G\n---\n", "slug"),  # an a and two dots
        ("readme", "---\nname: G\n---\n", "slug"),
        ("claude", "---\nname: G\n---\n", "slug"),
        ("gardener", "# no front matter", "content"),
        ("gardener", "---\nname: G\nmodel: 7\n---\n", "model"),
    ],
)
async def test_what_no_agent_can_be_is_refused_by_its_field(
    slug: str, content: str, field: str, adas: Web, vault: Path
) -> None:
    answer = await send(adas, "PUT", f"/api/agents/{slug}", content=content)
    assert answer.refused == (422, "invalid")
    assert answer.json["error"]["details"]["fields"][0]["field"] == field
    assert not (vault / "Agents").exists()


async def test_who_only_looks_reads_and_writes_nothing(vi: User, workspace: Workspace, file: Path) -> None:
    looking = await with_every_scope(vi)
    assert (await looking.get("/api/agents/gardener")).status == 200
    answer = await send(looking, "PUT", "/api/agents/gardener", content=GARDENER)
    assert answer.refused == (403, "forbidden")
    assert (await looking.ask("DELETE", "/api/agents/gardener")).refused == (403, "forbidden")


async def test_a_key_without_the_scope_admin_only_reads(ada_calls: Web, file: Path) -> None:
    assert (await ada_calls.get("/api/agents/gardener")).status == 200
    answer = await send(ada_calls, "PUT", "/api/agents/gardener", content=GARDENER)
    assert answer.refused == (403, "forbidden")


async def test_what_it_is_told_is_shown_part_by_part(ada_calls: Web, file: Path, vault: Path) -> None:
    (vault / "CLAUDE.md").write_text("Be brief.")
    (vault / "Garden").mkdir()
    (vault / "Garden" / "AGENTS.md").write_text("Quinces are ripe in October.")
    own = (await ada_calls.get("/api/agents/gardener/prompt")).json
    assert (own["promptSource"], own["contextFiles"]) == ("agent", [])
    assert [each["text"] for each in own["parts"]] == ["You keep the garden."]
    preset = (await ada_calls.get("/api/agents/default/prompt")).json
    assert [each["name"] for each in preset["parts"]] == ["Claude Code", "CLAUDE.md"]

    said = await ada_calls.say("hi", agent="gardener", contexts=["Garden"])
    of_session = (await ada_calls.get(f"/api/agents/gardener/prompt?session={said['sessionId']}")).json
    assert of_session["contextFiles"] == ["Garden/AGENTS.md"]
    assert of_session["totalPromptTokens"] == sum(each["tokens"] for each in of_session["parts"])
    other = await ada_calls.get(f"/api/agents/default/prompt?session={said['sessionId']}")
    assert other.refused == (404, "not_found")


class TestContexts:
    async def test_they_are_chosen_for_a_session_and_found_by_them(self, ada_calls: Web, vault: Path) -> None:
        (vault / "Garden" / "Beds").mkdir(parents=True)
        (vault / "Garden" / "Quinces.md").write_text("ripe")
        said = await ada_calls.say("hi")
        where = f"/api/chat/{said['sessionId']}/contexts"
        assert (await ada_calls.get(where)).json == {"contexts": []}
        added = await send(ada_calls, "POST", where, path="Garden/Quinces.md")
        assert added.status == 201
        assert [each["path"] for each in added.json["contexts"]] == ["Garden"]
        put = await send(ada_calls, "PUT", where, paths=["Garden/Beds/", str(vault)])
        assert [each["path"] for each in put.json["contexts"]] == [".", "Garden/Beds"]
        found = (await ada_calls.get("/api/chat?context=Garden/Beds")).json
        assert [each["id"] for each in found["sessions"]] == [said["sessionId"]]
        assert (await ada_calls.get("/api/chat?context=Garden")).json["total"] == 0
        assert (await ada_calls.ask("DELETE", f"{where}?path=Garden/Beds")).status == 204
        assert (await ada_calls.ask("DELETE", f"{where}?path=Garden/Beds")).refused == (404, "not_found")

    @pytest.mark.parametrize(
        ("path", "code"),
        [
            ("../elsewhere", "outside_vault"),
            ("/etc", "outside_vault"),
            ("Nowhere", "invalid"),
            ("linked", "invalid"),
            ("g" * 1_001, "invalid"),
        ],
    )
    async def test_a_folder_that_is_none_of_the_vault_is_refused(
        self, path: str, code: str, ada_calls: Web, vault: Path, tmp_path: Path
    ) -> None:
        (vault / "linked").symlink_to(tmp_path)
        answer = await send(ada_calls, "POST", "/api/chat", message="hi", contexts=[path])
        assert answer.refused == (422, code)
        assert answer.json["error"]["details"]["fields"][0]["field"] == "contexts"
        assert not await SessionContext.objects.aexists()


async def test_two_workspaces_have_agents_of_their_own(
    adas: Web, cy: User, workspace: Workspace, file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cys"
    folder.mkdir()
    own = await Workspace.objects.acreate(slug="cys", name="Cy's", vault_path=str(folder))
    await Membership.objects.acreate(workspace=own, user=cy, role=Role.OWNER)
    cys = await with_every_scope(cy)
    assert [each["slug"] for each in (await cys.get("/api/agents")).json["agents"]] == ["default"]
    assert (await cys.get("/api/agents?workspace=default")).refused == (404, "not_found")
    assert (await cys.get("/api/agents/gardener?workspace=default")).refused == (404, "not_found")
    assert (await adas.get("/api/agents?workspace=cys")).refused == (404, "not_found")
