"""MCP servers, secrets and skills over the API: who may, what is shown, and what is started to be tried."""

import asyncio
import io
import json
import os
import shutil
import threading
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from django.contrib.auth.models import User

from agents_app.tools.mcp import api, remote, trying
from agents_app.tools.mcp.speaking import Refused
from sessions_app.access.caller import Caller
from sessions_app.access.models import KeyScope, Workspace
from sessions_app.access.services import make_key
from sessions_app.threads import in_thread
from tests.api.web import Answer, Web
from tests.contracts.stage import sandbox_that_runs

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLE = Path(__file__).resolve().parents[2] / "sample-vault"
SERVER = {"command": "python3", "args": ["${VAULT}/.claude/mcp/garden.py"], "env": {"TOKEN": "${TOKEN}"}}


async def with_every_scope(user: User) -> Web:
    _, token = await in_thread(make_key)(user, "all", scopes=list(KeyScope))
    return Web({"authorization": f"Bearer {token}"})


@pytest.fixture
async def adas(ada: User, workspace: Workspace) -> Web:
    return await with_every_scope(ada)


@pytest.fixture
async def bens(ben: User, workspace: Workspace) -> Web:
    return await with_every_scope(ben)


async def send(web: Web, method: str, where: str, **body: Any) -> Answer:
    return await web.ask(method, where, json.dumps(body).encode())


async def test_a_server_is_added_shown_changed_and_removed(adas: Web, bens: Web, vault: Path) -> None:
    refused = await send(bens, "POST", "/api/mcp/garden", **SERVER)
    assert refused.refused == (403, "forbidden")
    wrong = await send(adas, "POST", "/api/mcp/garden", command="a", args=["${TOKEN}"])
    assert (wrong.refused, wrong.fields) == ((422, "invalid"), ["config"])
    made = (await send(adas, "POST", "/api/mcp/garden", **{**SERVER, "env": {"TOKEN": "written-out"}})).json
    assert (made["accepted"], made["state"], made["env"]) == (True, "accepted", {"TOKEN": "•••"})
    listed = await bens.get("/api/mcp")
    assert listed.json["servers"] == {"garden": made}
    assert b"written-out" not in listed.body
    again = (await send(adas, "POST", "/api/mcp/garden", **made)).json
    assert again["hash"] == made["hash"], "what was read may be sent back"
    wrapped = await send(adas, "POST", "/api/mcp/garden", mcpServers={"garden": made})
    assert (wrapped.status, wrapped.json["hash"]) == (200, made["hash"]), "as documentation shows it"
    held = json.loads((vault / ".mcp.json").read_text())["mcpServers"]["garden"]
    assert held["env"] == {"TOKEN": "written-out"}
    assert not {*held} & {"accepted", "hash", "tools"}
    assert (await adas.ask("DELETE", "/api/mcp/garden")).status == 204
    assert (await adas.get("/api/mcp")).json["servers"] == {}


async def test_what_appears_in_the_file_waits_for_an_owner(adas: Web, vault: Path) -> None:
    (vault / ".mcp.json").write_text(json.dumps({"garden": SERVER, "parachute": SERVER}))
    listed = (await adas.get("/api/mcp")).json["servers"]
    assert (listed["garden"]["state"], listed["parachute"]["state"]) == ("new", "wrong")
    assert (await send(adas, "POST", "/api/mcp/garden/switch", on=True)).refused == (409, "conflict")
    assert (await send(adas, "POST", "/api/mcp/garden/test")).refused == (409, "conflict")
    other = await send(adas, "POST", "/api/mcp/garden/accept", hash="0" * 64)
    assert other.refused == (409, "conflict")
    accepted = await send(adas, "POST", "/api/mcp/garden/accept", hash=listed["garden"]["hash"])
    assert accepted.json["accepted"]
    assert (await send(adas, "POST", "/api/mcp/garden/switch", on=True)).json["on"]


async def test_a_chat_switches_what_was_accepted(adas: Web, ada_calls: Web, vault: Path) -> None:
    session = (await ada_calls.say("hi"))["sessionId"]
    where = f"/api/chat/{session}/mcp"
    assert (await send(ada_calls, "PUT", f"{where}/garden", on=True)).refused == (404, "not_found")
    nobodys = await send(ada_calls, "PUT", f"{where}/{'X' * 99}", on=False)
    assert nobodys.refused == (404, "not_found"), "no server is called so, and no row would hold it"
    await send(adas, "POST", "/api/mcp/garden", **SERVER)
    assert (await ada_calls.get(where)).json == {"servers": [{"name": "garden", "on": None, "given": False}]}
    switched = await send(ada_calls, "PUT", f"{where}/garden", on=True)
    assert switched.json == {"servers": [{"name": "garden", "on": True, "given": True}]}
    assert (await send(ada_calls, "PUT", f"{where}/garden", on=None)).json["servers"][0]["on"] is None


async def test_secrets_are_named_and_never_shown(adas: Web, bens: Web) -> None:
    assert (await send(bens, "PUT", "/api/secrets/TOKEN", value="quinces")).refused == (403, "forbidden")
    assert (await send(adas, "PUT", "/api/secrets/TOKEN", value="quinces")).status == 204
    listed = await adas.get("/api/secrets")
    assert (listed.json, b"quinces" in listed.body) == ({"names": ["TOKEN"]}, False)
    assert (await adas.ask("DELETE", "/api/secrets/TOKEN")).status == 204
    assert (await adas.ask("DELETE", "/api/secrets/TOKEN")).refused == (404, "not_found")


async def test_skills_are_uploaded_switched_and_removed(adas: Web, vault: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("SKILL.md", "---\nname: pruning\ndescription: When to prune.\n---\nIn March.\n")
        archive.writestr("far.bin", bytes(range(256)) * 400)
    made = await adas.ask("POST", "/api/skills", packed.getvalue())
    assert (made.status, made.json["name"], made.json["on"]) == (201, "pruning", False)
    assert (await adas.ask("POST", "/api/skills", b"no zip")).refused == (422, "invalid")
    assert (await send(adas, "PUT", "/api/skills/pruning", on=True)).json["skills"][0]["on"]
    assert (await adas.ask("DELETE", "/api/skills/pruning")).status == 204
    assert (await adas.get("/api/skills")).json == {"skills": []}


async def test_a_process_is_started_behind_a_wall_and_says_its_tools_or_why_not(
    adas: Web, vault: Path, monkeypatch: pytest.MonkeyPatch, subtests: Any
) -> None:
    sandbox_that_runs("bubblewrap")
    monkeypatch.setattr(trying, "PATIENCE", 3.0)
    shutil.copytree(SAMPLE / ".claude", vault / ".claude")
    (vault / ".env").write_text("KEY=never-seen\n")
    await send(adas, "PUT", "/api/secrets/TOKEN", value="quinces-and-pears")
    await send(adas, "POST", "/api/mcp/garden", **SERVER)
    with subtests.test("its tools"):
        tried = (await send(adas, "POST", "/api/mcp/garden/test")).json
        assert (tried["ok"], [each["name"] for each in tried["tools"]]) == (True, ["harvest", "count_notes"])
        assert (await adas.get("/api/mcp")).json["servers"]["garden"]["tools"] == tried["tools"]
        assert (await adas.get("/api/mcp/garden/tools")).json["tools"] == tried["tools"]
    env = {"TOKEN": "${TOKEN}"}
    for name, script, said in (
        ("sees", "cat .env /etc/shadow >&2; ls /root >&2; exit 1", "No such file"),
        ("tells", 'echo "my token is $TOKEN" >&2; exit 1', "my token is •••"),
        ("silent", "echo I wait >&2; sleep 60", "10 seconds"),
        ("floods", "yes", "ended"),
    ):
        with subtests.test(name):
            await send(adas, "POST", f"/api/mcp/{name}", command="/bin/sh", args=["-c", script], env=env)
            tried = (await send(adas, "POST", f"/api/mcp/{name}/test")).json
            assert not tried["ok"]
            assert said in tried["error"], tried
            assert "never-seen" not in tried["error"]
            assert "quinces-and-pears" not in tried["error"]
    for name, command, said in (
        ("line", "/bin/sh -c true", "goes into args"),
        ("far", "/root/nowhere/server", "a wall shows no home"),
    ):
        with subtests.test(name):
            await send(adas, "POST", f"/api/mcp/{name}", command=command)
            assert said in (await send(adas, "POST", f"/api/mcp/{name}/test")).json["error"]
    with subtests.test("a secret that is not there"):
        await send(adas, "POST", "/api/mcp/wants", command="true", env={"A": "${NOT_THERE}"})
        refused = await send(adas, "POST", "/api/mcp/wants/test")
        assert "NOT_THERE" in refused.json["error"]["message"]


def of_shell(script: str, **env: str) -> dict[str, Any]:
    return {"command": "/bin/sh", "args": ["-c", script], "env": env}


async def test_what_a_server_is_given_reaches_its_program_and_not_what_builds_the_wall(
    adas: Web, tmp_path: Path
) -> None:
    sandbox_that_runs("bubblewrap")
    loads = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(tmp_path / "outside"), "KEY": "plum"}
    await send(adas, "POST", "/api/mcp/loads", **of_shell('echo "KEY is $KEY" >&2; exit 1', **loads))
    tried = (await send(adas, "POST", "/api/mcp/loads/test")).json
    assert "KEY is plum" in tried["error"], tried
    assert not list(tmp_path.glob("outside*")), "or LD_PRELOAD would start a file of the vault without a wall"


async def test_one_that_is_tried_sees_nothing_of_chats(adas: Web, vault: Path) -> None:
    sandbox_that_runs("bubblewrap")
    for path in (".claude/projects/x/a.jsonl", "Chat/assets/2026/b.txt", "Welcome.md"):
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(f"seen: {path}\n")
    looks = of_shell("cat .claude/projects/x/* Chat/assets/2026/* Welcome.md >&2; exit 1")
    await send(adas, "POST", "/api/mcp/looks", **looks)
    error = (await send(adas, "POST", "/api/mcp/looks/test")).json["error"]
    assert "seen: Welcome.md" in error
    assert "seen: .claude" not in error
    assert "seen: Chat" not in error


async def test_a_secret_is_masked_in_what_a_server_says_of_its_tools(adas: Web) -> None:
    sandbox_that_runs("bubblewrap")
    await send(adas, "PUT", "/api/secrets/TOKEN", value="/quinces-and-pears")
    script = (
        """read a; echo '{"id": 1, "result": {}}'; read b; read c; """
        """printf '{"id": 2, "result": {"tools": [{"name": "t", "description": "has %s"}]}}' "$TOKEN"; echo"""
    )
    await send(adas, "POST", "/api/mcp/tells", **of_shell(script, TOKEN="${TOKEN}"))
    tried = (await send(adas, "POST", "/api/mcp/tells/test")).json
    assert tried["tools"] == [{"name": "t", "description": "has •••"}], tried


async def test_one_that_is_tried_counts_until_it_has_ended(
    adas: Web, workspace: Workspace, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox_that_runs("bubblewrap")
    begun, goes_on = threading.Event(), threading.Event()

    def run(trial: trying.Trial) -> trying.Tried:
        begun.set()
        goes_on.wait(5)
        return trying.Tried()

    monkeypatch.setattr(trying.Trial, "run", run)
    monkeypatch.setattr(trying, "AT_ONCE", threading.BoundedSemaphore(1))
    await send(adas, "POST", "/api/mcp/waits", **of_shell("sleep 60"))
    left = asyncio.create_task(api._tried(as_ada, workspace.slug, "waits"))
    await asyncio.to_thread(begun.wait, 5)
    left.cancel()  # as somebody does who leaves the page
    await asyncio.wait({left}, timeout=0.2)
    assert (await send(adas, "POST", "/api/mcp/waits/test")).refused == (409, "conflict")
    goes_on.set()
    await asyncio.wait({left})
    assert (await send(adas, "POST", "/api/mcp/waits/test")).json["ok"]


async def test_who_may_only_read_starts_nothing(adas: Web, ada: User) -> None:
    await send(adas, "POST", "/api/mcp/garden", **SERVER)
    _, token = await in_thread(make_key)(ada, "reads", scopes=[KeyScope.READ])
    reads = Web({"authorization": f"Bearer {token}"})
    assert (await reads.get("/api/mcp/garden/tools")).refused == (403, "forbidden")


async def test_what_is_no_text_is_said_and_keeps_no_page_from_being_shown(adas: Web, vault: Path) -> None:
    (vault / ".mcp.json").write_text('{"a\\ud800": {"command": "true"}}')
    skill = vault / ".claude/skills/pruning"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pruning\ndescription: When.\n---\n")
    (skill / os.fsdecode(b"caf\xe9.md")).write_text("x")
    assert "no text" in (await adas.get("/api/mcp")).json["error"]
    assert "no text" in (await adas.get("/api/skills")).json["skills"][0]["error"]
    (vault / ".mcp.json").write_text("{}")
    refused = await send(adas, "POST", "/api/mcp/garden", command="true", note="\ud800")
    assert refused.refused == (409, "conflict")


ANSWERS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "serverInfo": {"name": "x", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "lend", "description": "Lends a book."}]},
}


def answer(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]}).encode()


class Library:
    """A server at an address of this computer, in both ways of the protocol."""

    def __init__(self) -> None:
        self.asked = 0
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def posts(self, request: web.Request) -> web.StreamResponse:
        self.asked += request.headers["Authorization"] == "Bearer x"
        message = json.loads(await request.text())
        if "id" not in message:
            return web.Response(status=202)
        told = b"event: message\ndata: " + answer(message) + b"\n\n"
        return web.Response(body=told, content_type="text/event-stream")

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /said\n\n")
        while message := await self._waiting.get():
            await response.write(b"data: " + answer(message) + b"\n\n")
        return response

    async def said(self, request: web.Request) -> web.StreamResponse:
        message = json.loads(await request.text())
        if "id" in message:
            await self._waiting.put(message)
        return web.Response(status=202)

    async def in_pieces(self, request: web.Request) -> web.StreamResponse:
        """As what is large comes, and as what is slow comes."""
        message = json.loads(await request.text())
        if "id" not in message:
            return web.Response(status=202)
        is_stream = message["method"] == "tools/list" and request.path == "/long"
        kind = "text/event-stream" if is_stream else "application/json"
        whole = answer(message).replace(b"Lends", b"L" * 300_000)
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for piece in (whole[:9], whole[9:]) if not is_stream else (b"data: " + whole, b"\n\n"):
            await response.write(piece)
            await asyncio.sleep(0.02)
        return response

    async def elsewhere(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("/mcp")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        app = web.Application()
        app.add_routes([web.post("/mcp", self.posts), web.get("/sse", self.stream)])
        app.add_routes([web.post("/said", self.said), web.post("/elsewhere", self.elsewhere)])
        app.add_routes([web.post("/pieces", self.in_pieces), web.post("/long", self.in_pieces)])
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await self._waiting.put({})
            await runner.cleanup()


async def test_one_at_an_address_is_asked_by_both_ways_and_sent_nowhere_else() -> None:
    async def asked(kind: str, url: str, *, is_local: bool = True) -> Any:
        config = {"type": kind, "url": url, "headers": {"Authorization": "Bearer x"}}
        return await remote.tools_at(config, is_local=is_local)

    library = Library()
    async with library.open() as here:
        for kind, path in (("http", "/mcp"), ("http", "/pieces"), ("http", "/long"), ("sse", "/sse")):
            assert (await asked(kind, here + path))[0]["name"] == "lend"
        for path, said in (("/elsewhere", "leads elsewhere"), ("/nowhere", "404")):
            with pytest.raises(Refused, match=said):
                await asked("http", here + path)
        with pytest.raises(Refused, match=r"\(127.0.0.1:1: Connection refused\)"):
            await asked("http", "http://127.0.0.1:1/mcp")
        before = library.asked
        with pytest.raises(Refused):
            await asked("http", here.replace("127.0.0.1", "localhost") + "/mcp", is_local=False)
        assert library.asked == before > 0, "a name that leads to this computer is not followed"
