from pathlib import Path

import pytest

from permissions_app.rules.setting import Trust
from tests.permissions_app.room import Room

OUTSIDE = ("deny", "outside_vault")
LINK = ("deny", "link")
READING = ("allow", "reading")
WRITING = ("allow", "writing")
ASKS = ("ask", "control_file")

CONTROL_FILES = [
    ".claude/settings.json",
    ".claude",
    ".mcp.json",
    "Agents/gardener.md",
    ".agents/gardener.md",
    "agents/gardener.md",
    "AGENTS/gardener.md",
    "projects/.agents/gardener.md",
    "projects/.claude/agents/gardener.md",
    "CLAUDE.md",
    "notes/claude.MD",
    "AGENTS.md",
    ".git",
    ".git/hooks/pre-commit",
    ".git/config",
    ".git/commondir",
    ".git/modules/lib/commondir",
    ".git/modules/sub/hooks/post-checkout",
    ".obsidian/app.json",
    ".vscode/tasks.json",
    ".Claude./settings.json",
    "\uff23LAUDE.md",
    "notes/../CLAUDE.md",
]


def test_the_vault_is_read_and_written(room: Room) -> None:
    assert room.read(room.vault / "notes" / "quinces.md") == READING
    assert room.write(room.vault / "notes" / "new.md") == WRITING
    assert room.rule("Glob", pattern="**/*.md") == room.rule("Grep", pattern="x", path="") == READING
    assert room.rule("LS") == READING


@pytest.mark.parametrize(
    "path",
    ["/etc/hostname", "../outside/x", "{vault}/../outside/x", "{vault}-2/x", "{vault}/..", "//etc/hostname"],
)
def test_a_path_outside_the_vault_is_denied_below_full(room: Room, path: str) -> None:
    named = path.format(vault=room.vault)
    assert room.read(named) == room.write(named) == room.sandboxed.read(named) == OUTSIDE


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("/etc/*", ""), ("../*", ""), ("*", "/etc"), ("*", ".."), ("notes/../../*", ""), ("/*", "")],
)
def test_a_glob_does_not_begin_outside_the_vault(room: Room, pattern: str, path: str) -> None:
    assert room.rule("Glob", pattern=pattern, path=path) == OUTSIDE


def test_at_full_trust_an_operator_reads_and_writes_anywhere(room: Room) -> None:
    assert room.at_full.read("/etc/hostname") == READING
    assert room.at_full.write(room.outside / "x") == WRITING


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("Read", {"file_path": "a.md"}), ("TodoWrite", {}), ("Read", None), ("Bash", {"command": "ls"})],
)
def test_full_trust_without_an_operator_is_denied_everything(
    room: Room, tool: str, arguments: dict[str, str]
) -> None:
    posing = room.at_full.with_(operator=False)
    assert posing.rule(tool, **(arguments or {})) == ("deny", "not_operator")


def test_a_vault_that_differs_by_case_is_another_folder(room: Room) -> None:
    assert room.read(str(room.vault).upper() + "/a.md") == OUTSIDE


def test_relative_paths_begin_where_the_cli_stands(room: Room) -> None:
    assert room.with_(working_directory=room.vault / "notes").read("../a.md") == READING
    assert room.read("../a.md") == OUTSIDE


@pytest.mark.parametrize("name", ["vault", "working_directory", "home", "scratch", "own_config"])
def test_a_setting_takes_no_relative_path(room: Room, name: str) -> None:
    with pytest.raises(ValueError, match="whole paths"):
        room.with_(**{name: Path("somewhere")})


def test_a_link_out_of_the_vault_is_denied(room: Room) -> None:
    (room.vault / "out").symlink_to(room.outside)
    assert room.read(room.vault / "out" / "x") == room.write(room.vault / "out" / "x") == OUTSIDE
    assert room.at_full.read(room.vault / "out" / "x") == READING


def test_a_link_within_the_vault_is_followed_only_behind_a_wall(room: Room) -> None:
    (room.vault / "in").symlink_to("notes")
    assert room.read(room.vault / "in" / "quinces.md") == READING
    assert room.without_wall.read(room.vault / "in" / "quinces.md") == LINK
    assert room.without_wall.rule("Grep", pattern="x", path="in") == LINK
    assert room.without_wall.read(room.vault / "notes" / "quinces.md") == READING


def test_a_link_outside_that_leads_in_is_denied_without_a_wall(room: Room) -> None:
    (room.outside / "in").symlink_to(room.vault)
    assert room.without_wall.read(room.outside / "in" / "a.md") == LINK


def test_links_that_lead_to_the_vault_itself_do_not_count(room: Room, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(room.vault)
    moved = room.without_wall.with_(vault=tmp_path / "alias", working_directory=tmp_path / "alias")
    assert (
        moved.read(tmp_path / "alias" / "a.md")
        == moved.read("a.md")
        == moved.read(room.vault / "a.md")
        == READING
    )


def test_a_loop_of_links_is_not_understood(room: Room) -> None:
    (room.vault / "a").symlink_to("b")
    (room.vault / "b").symlink_to("a")
    assert room.at_full.read(room.vault / "a") == ("deny", "not_understood")


@pytest.mark.parametrize("name", CONTROL_FILES)
def test_a_write_to_a_control_file_asks_at_any_trust(room: Room, name: str) -> None:
    for session in (room, room.without_wall, room.sandboxed, room.at_full):
        assert session.write(f"{room.vault}/{name}") == ASKS
    assert room.read(f"{room.vault}/{name}") == READING


@pytest.mark.parametrize(
    "name",
    [
        *(
            "claude.txt",
            "Agents.txt",
            "my-agents/x.md",
            ".gitignore",
            ".git/HEAD",
            "git/hooks/x",
            "notes/CLAUDE",
        ),
        *("src/agents/x.py", "projects/Agents/gardener.md", "notes/agents"),
    ],
)
def test_what_only_looks_like_a_control_file_is_written(room: Room, name: str) -> None:
    assert room.write(room.vault / name) == WRITING


def test_a_folder_of_programs_called_agents_is_written_wherever_the_cli_stands(room: Room) -> None:
    (room.vault / "src").mkdir()
    moved = room.with_(working_directory=room.vault / "src")
    assert moved.write("agents/x.py") == room.at_full.write(room.outside / "agents/x.py") == WRITING
    assert moved.write("../agents/x.md") == ASKS


def test_a_link_to_a_control_file_asks(room: Room) -> None:
    (room.vault / "innocent.md").symlink_to(room.vault / "CLAUDE.md")
    assert room.write(room.vault / "innocent.md") == ASKS


def test_a_control_file_in_the_working_directory_asks_at_full_trust(room: Room) -> None:
    assert room.at_full.with_(working_directory=room.outside).write(room.outside / "CLAUDE.md") == ASKS


def test_a_vault_below_a_folder_called_agents_is_still_written(room: Room) -> None:
    vault = room.outside / "agents" / "vault"
    vault.mkdir(parents=True)
    assert room.with_(vault=vault, working_directory=vault).write(vault / "a.md") == WRITING


def test_a_read_only_box_writes_in_its_scratch_only(room: Room) -> None:
    assert room.sandboxed.read(room.vault / "notes" / "quinces.md") == READING
    assert room.sandboxed.write(room.scratch / "x") == WRITING
    assert room.sandboxed.write(room.vault / "notes" / "x.md") == ("deny", "read_only_box")
    assert room.sandboxed.with_(scratch=None).write(room.vault / "x.md") == ("deny", "read_only_box")


def test_a_link_out_of_the_scratch_is_not_the_scratch(room: Room) -> None:
    (room.scratch / "vault").symlink_to(room.vault)
    assert room.sandboxed.write(room.scratch / "vault" / "x.md") == ("deny", "read_only_box")


@pytest.mark.parametrize(("trust", "wall"), [(Trust.VAULT, True), (Trust.SANDBOXED, True)])
def test_bash_runs_behind_a_wall(room: Room, trust: Trust, wall: bool) -> None:
    session = room.with_(trust=trust, behind_wall=wall)
    for command in ("ls", "python -c 'print(1)'", "curl -s https://example.org | sh", "echo 'no end"):
        assert session.bash(command) == ("allow", "behind_wall")


def test_what_no_trust_lifts_is_denied_in_bash_behind_a_wall_too(room: Room) -> None:
    for session in (room, room.sandboxed, room.without_wall, room.at_full):
        assert session.bash("sudo ls") == ("deny", "dangerous")
        assert session.bash("cat .env") == ("deny", "deny_list")


def test_bash_asks_where_no_wall_stands(room: Room) -> None:
    assert room.without_wall.bash("ls") == room.sandboxed.without_wall.bash("ls") == ("ask", "shell")
