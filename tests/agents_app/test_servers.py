"""Entries of `.mcp.json`: how they are read and written, which of them count, and which a turn gets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.runtimes.scripted import Say, Use
from agents_app.sandboxes import named, walls
from agents_app.tools.mcp import files, secrets, services
from agents_app.tools.mcp.entries import MASK, Entry, entry
from agents_app.tools.mcp.models import WorkspaceSecret
from agents_app.tools.mcp.pasted import pasted
from permissions_app import audit
from permissions_app import services as deciding
from permissions_app.models import ToolRequest
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Forbidden, Invalid
from sessions_app.models import Session, SessionEvent
from sessions_app.threads import in_thread
from tests.agents_app.asked import asked
from tests.agents_app.engine import Engine, events

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = {
    "command": "python3",
    "args": ["${VAULT}/server.py"],
    "env": {"TOKEN": "${TOKEN}", "PLAIN": "a-password"},
}
FAR = {"type": "http", "url": "https://library.example.org/mcp"}


def write(vault: Path, whole: Any) -> Path:
    (vault / ".mcp.json").write_text(whole if isinstance(whole, str) else json.dumps(whole))
    return vault / ".mcp.json"


def problems(vault: Path) -> dict[str, str]:
    return {each.name: each.problem for each in files.read(vault).entries}


@pytest.mark.parametrize("whole", [{"mcpServers": {"garden": GOOD}}, {"garden": GOOD}])
def test_both_shapes_are_read_and_kept(vault: Path, whole: dict[str, Any], as_ada: Caller) -> None:
    workspace = Workspace.objects.get()
    place = write(vault, whole).stat().st_ino
    assert problems(vault) == {"garden": ""}
    services.save(as_ada, workspace, "library", FAR)
    kept = json.loads((vault / ".mcp.json").read_text())
    assert kept.get("mcpServers", kept) == {"garden": GOOD, "library": FAR}
    assert ("mcpServers" in kept) == ("mcpServers" in whole)
    services.remove(as_ada, workspace, "library")
    assert json.loads((vault / ".mcp.json").read_text()) == whole
    assert (vault / ".mcp.json").stat().st_ino == place, "in place: walls are mounted on it"


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("parachute", GOOD, "Parachute's own"),
        ("Garden Shed", GOOD, "small letters"),
        ("a__b", GOOD, "small letters"),
        ("all", GOOD, "all servers"),
        ("x", [], "Fields were expected"),
        ("x", {}, "Say what it is"),
        ("x", {"type": "ws", "url": "wss://a.example"}, "Say what it is"),
        ("x", {"command": ""}, "command"),
        ("x", {"command": "a", "args": ["--token=${TOKEN}"]}, "no place for a secret"),
        ("x", {"command": "a", "env": {"A": "${not-a-name}"}}, "name of a secret"),
        ("x", {"command": "a", "env": {"PARACHUTE_PROCESS": "x"}}, "no name for a variable"),
        ("x", {"command": "a\nb"}, "cannot stand here"),
        ("x", {"type": "http", "url": "file:///etc/passwd"}, "an address was expected"),
        ("x", {"type": "http", "url": "https://${TOKEN}.example.org/"}, "written out"),
        ("x", {"type": "http", "url": "http://127.0.0.1${NONE:-/}.example.org/"}, "written out"),
        (
            "x",
            {"type": "http", "url": "https://a.example/", "headers": {"A": "x\r\nB: y"}},
            "cannot stand here",
        ),
        ("x", {**GOOD, "approval": "never"}, "approval"),
    ],
)
def test_an_entry_that_cannot_be_used_says_why(name: str, given: Any, said: str) -> None:
    assert said in entry(name, given).problem


def test_one_that_is_wrong_keeps_no_other_from_counting_and_two_of_one_name_are_neither(
    vault: Path, as_ada: Caller
) -> None:
    good = json.dumps(GOOD)
    write(vault, f'{{"a": {good}, "b": 7, "a": {{"command": "evil"}}, "c": {good}}}')
    assert problems(vault)["c"] == ""
    assert "Two entries" in problems(vault)["a"]
    twice = (vault / ".mcp.json").read_text()
    with pytest.raises(Conflict, match="two entries named a"):  # the first would be gone unseen
        services.save(as_ada, Workspace.objects.get(), "d", GOOD)
    assert (vault / ".mcp.json").read_text() == twice
    services.remove(as_ada, Workspace.objects.get(), "a")
    assert set(problems(vault)) == {"b", "c"}
    write(vault, {"mcpServers": {"a": GOOD}, "b": GOOD})
    assert "stands beside" in problems(vault)["b"]


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"mcpServers": [1]}', "[" * 100_000, '"x"', "\x00", " " * 300_000]
)
def test_a_file_that_cannot_be_read_says_so_and_is_not_written_over(
    vault: Path, text: str, as_ada: Caller
) -> None:
    write(vault, text)
    assert files.read(vault).problem
    with pytest.raises(Conflict):
        services.save(as_ada, Workspace.objects.get(), "garden", GOOD)
    assert (vault / ".mcp.json").read_text() == text


def test_a_folder_in_its_place_is_said_where_servers_are_read_and_written(
    vault: Path, as_ada: Caller
) -> None:
    (vault / ".mcp.json").mkdir()
    assert files.read(vault).problem.startswith(".mcp.json is a folder")
    with pytest.raises(Conflict, match="is a folder"):
        services.save(as_ada, Workspace.objects.get(), "garden", GOOD)


def test_a_link_is_not_followed(vault: Path, tmp_path: Path, as_ada: Caller) -> None:
    other = tmp_path / "elsewhere.json"
    other.write_text(json.dumps({"garden": GOOD}))
    (vault / ".mcp.json").symlink_to(other)
    assert files.read(vault).entries == ()
    with pytest.raises(Conflict):
        services.save(as_ada, Workspace.objects.get(), "library", FAR)
    assert json.loads(other.read_text()) == {"garden": GOOD}


def test_it_counts_as_an_owner_accepted_it_and_not_as_it_is_later(
    vault: Path, workspace: Workspace, as_ada: Caller, as_ben: Caller, audited: list[audit.Entry]
) -> None:
    write(vault, {"garden": GOOD})
    seen = services.server_of(workspace, "garden")
    assert (seen.state, seen.is_accepted) == ("new", False)
    with pytest.raises(Forbidden):
        services.accept(as_ben, workspace, "garden", seen.entry.hash)
    with pytest.raises(Conflict):
        services.accept(as_ada, workspace, "garden", "0" * 64)
    assert services.accept(as_ada, workspace, "garden", seen.entry.hash).is_accepted
    assert [each.arguments["name"] for each in audited if each.tool == services.TOOL] == ["garden"]
    write(vault, {"garden": {**dict(reversed(GOOD.items())), "comment": "of another program"}})
    assert services.server_of(workspace, "garden").is_accepted, "it does the same"
    write(vault, {"garden": {**GOOD, "args": ["-c", "evil"]}})
    assert services.server_of(workspace, "garden").state == "changed"
    with pytest.raises(Conflict):
        services.switch(as_ada, workspace, "garden", on=True)


def test_what_may_be_a_secret_is_masked_and_stays_where_the_mask_comes_back(
    vault: Path, workspace: Workspace, as_ada: Caller
) -> None:
    services.save(as_ada, workspace, "garden", GOOD)
    shown = services.server_of(workspace, "garden").entry.masked()
    assert shown["env"] == {"TOKEN": "${TOKEN}", "PLAIN": MASK}
    shown["env"]["MORE"] = "1"
    services.save(as_ada, workspace, "garden", shown)
    kept = json.loads((vault / ".mcp.json").read_text())["mcpServers"]["garden"]
    assert kept["env"] == {**GOOD["env"], "MORE": "1"}  # type: ignore[dict-item]
    far = Entry("far", entry("far", {**FAR, "url": "https://a.example/mcp?key=hidden"}).config)
    assert "hidden" not in json.dumps(far.masked()) + far.what


def test_a_secret_lies_there_sealed_and_only_owners_change_it(
    workspace: Workspace, as_ada: Caller, as_ben: Caller, audited: list[audit.Entry]
) -> None:
    with pytest.raises(Forbidden):
        secrets.save(as_ben, workspace, "TOKEN", "quinces")
    for name, value in (("VAULT", "x"), ("a b", "x"), ("TOKEN", ""), ("TOKEN", "${OTHER}")):
        with pytest.raises(Invalid):
            secrets.save(as_ada, workspace, name, value)
    secrets.save(as_ada, workspace, "TOKEN", "quinces")
    assert "quinces" not in WorkspaceSecret.objects.get().sealed
    assert secrets.opened(workspace, {"TOKEN", "OTHER"}) == {"TOKEN": "quinces"}
    assert "quinces" not in repr(audited)


def test_what_documentation_shows_may_be_pasted_as_it_is() -> None:
    assert pasted("", json.dumps({"mcpServers": {"garden": GOOD}})) == ("garden", GOOD)
    assert pasted("mine", json.dumps({"garden": GOOD})) == ("mine", GOOD)
    assert pasted("mine", json.dumps(GOOD)) == ("mine", GOOD)
    misspelt = {"comand": "python3", "args": ["x.py"]}
    assert pasted("mine", json.dumps(misspelt)) == ("mine", misspelt), "one entry, of which entry() says more"
    for text in ("", "{", "[]", json.dumps({"a": GOOD, "b": GOOD})):
        with pytest.raises(Invalid):
            pasted("", text)


@pytest.fixture
def agent(vault: Path, workspace: Workspace, as_ada: Caller) -> Callable[[str], Any]:
    def made(says: str, accepts: bool = True) -> str:
        (vault / "Agents").mkdir(exist_ok=True)
        (vault / "Agents/counter.md").write_text(f"---\nname: Counter\n{says}\n---\nCount.\n")
        found = agent_of(workspace, "counter")
        assert found and found.definition.is_usable, found and found.definition.trouble
        if accepts:
            accepting.accept(as_ada, workspace, found.definition, "")
        return "counter"

    return in_thread(made)


def given(engine: Engine) -> dict[str, str]:
    return {each.name: each.kind for each in engine.runtime.requests[-1].given}


def warned(written: list[SessionEvent]) -> list[str]:
    return [each.payload["message"] for each in written if each.type == "warning"]


@pytest.fixture
async def known(vault: Path, workspace: Workspace, as_ada: Caller) -> None:
    """Two that are accepted, of which one is on, and one that is not."""
    await in_thread(write)(vault, {"waits": GOOD})
    for name, config in (("garden", {"command": "true"}), ("library", FAR)):
        await in_thread(services.save)(as_ada, workspace, name, config)
    await in_thread(services.switch)(as_ada, workspace, "garden", on=True)


async def test_agents_that_say_nothing_get_what_is_on_and_others_what_they_name(
    engine: Engine, known: None, agent: Any, behind_a_wall: None
) -> None:
    await engine.answer("hi")
    assert given(engine) == {"garden": "stdio"}
    inline = "mcpServers: {own: {command: 'true'}, library: {url: 'https://other.example.org/'}}"
    for says, wanted in (
        ("description: x", ["garden"]),
        ("mcpServers: []", []),
        ("mcpServers: [library]", ["library"]),
        ("mcpServers: all", ["garden", "library"]),
        ("mcpServers: [garden, {own: {command: 'true'}}]", ["own", "garden"]),
        (inline, ["own", "library"]),
    ):
        await engine.answer("hi", agent=await agent(says))
        assert [*given(engine)] == wanted, says
    settings = engine.runtime.requests[-1].given[1].settings
    assert settings["url"] == "https://other.example.org/", "an agent's own counts before the vault's"
    changed = await engine.answer("hi", agent=await agent(inline.replace("'true'", "evil"), accepts=False))
    assert [*given(engine)] == ["library"], "another command is another server, and waits"
    assert ["page Agents" in each for each in warned(changed)] == [True]
    await Session.objects.aupdate(source="telegram")
    (last,) = [each async for each in Session.objects.filter(agent_slug="default")]
    await engine.answer("and now", session_id=last.pk)
    assert given(engine) == {}, "who writes to a bot is a stranger"


async def test_a_chat_switches_them_and_what_cannot_be_is_said(
    engine: Engine, known: None, workspace: Workspace, agent: Any, behind_a_wall: None, as_ada: Caller
) -> None:
    opened = await engine.say("hi", agent=await agent("mcpServers: [garden, waits, nobody]"))
    await engine.run(opened)
    assert [*given(engine)] == ["garden"]
    assert ["accepted" in each or "no such entry" in each for each in warned(await events(opened))] == [
        True,
        True,
    ]
    session = await Session.objects.select_related("workspace").aget(pk=opened.session_id)
    with pytest.raises(Conflict):
        await in_thread(services.choose)(session, "waits", True)
    await in_thread(services.choose)(session, "library", True)
    await in_thread(services.choose)(session, "garden", False)
    await engine.answer("more", session_id=opened.session_id)
    assert [*given(engine)] == ["library"]
    await in_thread(services.choose)(session, "garden", None)
    await engine.answer("more", session_id=opened.session_id)
    assert [*given(engine)] == ["garden", "library"]


async def test_what_cannot_work_at_its_trust_level_says_what_would(
    engine: Engine, vault: Path, workspace: Workspace, as_ada: Caller, agent: Any, behind_a_wall: None
) -> None:
    near = {"type": "sse", "url": "http://127.0.0.1:3000/sse"}
    for name, config in (("far", FAR), ("near", near), ("process", {"command": "true"})):
        await in_thread(services.save)(as_ada, workspace, name, config)
    name = await agent("mcpServers: all")
    for trust, works, said in (
        ("sandboxed", ["process"], ["This folder", "This folder"]),
        ("vault", ["far", "process"], ["Whole computer"]),
        ("full", ["far", "near", "process"], []),
    ):
        written = await engine.answer("hi", agent=name, trust_level=trust)
        assert [*given(engine)] == works
        assert [part in each for part, each in zip(said, warned(written), strict=True)] == [True] * len(said)


async def test_without_a_wall_no_process_starts_below_the_whole_computer(
    engine: Engine, known: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_wall = walls.Wall(named("none"), "Nothing to build one with.")
    monkeypatch.setattr("agents_app.turns.running.prepare.wall_for", lambda *_: no_wall)
    written = await engine.answer("hi", trust_level="vault")
    assert given(engine) == {}
    assert any("without a wall" in each for each in warned(written))


async def test_approval_asks_before_each_tools_first_use_in_a_chat(
    engine: Engine, vault: Path, workspace: Workspace, as_ada: Caller, agent: Any, behind_a_wall: None
) -> None:
    config = {"command": "true", "approval": "ask"}
    await in_thread(services.save)(as_ada, workspace, "garden", config)
    name = await agent("mcpServers: [garden]")
    engine.runtime.scripts["one"] = [Use("mcp__garden__dig", {}), Use("mcp__garden__dig", {}), Say("Dug.")]
    opened = await engine.say("one", agent=name)
    async with asked(engine, opened) as request:
        assert (request.rule, request.tool_name) == ("first_use", "mcp__garden__dig")
        await in_thread(deciding.grant)(engine.caller, request.pk)
    assert await ToolRequest.objects.acount() == 1
    engine.runtime.scripts["two"] = [Use("mcp__garden__sow", {}), Say("Sown.")]
    more = await engine.say("two", session_id=opened.session_id)
    async with asked(engine, more) as request:
        assert request.tool_name == "mcp__garden__sow"
        await in_thread(deciding.deny)(engine.caller, request.pk)
