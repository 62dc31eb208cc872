from pathlib import Path

import pytest

from tests.permissions_app.room import KEY, Room

DENIED = ("deny", "deny_list")
READING = ("allow", "reading")

SECRETS = [
    ".env",
    ".env.local",
    ".env.example.bak",
    ".env.example/../.env",
    ".env/bin/activate",
    ".envrc",
    "credentials.json",
    "server.pem",
    "id_rsa",
    "id_rsa.pub",
    "id_ed25519_sk",
    "id_ecdsa",
    "id_dsa",
    "tls.key",
    ".ssh",
    ".ssh/config",
    ".aws/credentials",
    ".netrc",
    ".git-credentials",
    ".claude/projects/-srv-vault/1.jsonl",
    ".claude/projects",
]

NEAR_MISSES = [
    ".env.example",
    "environment.md",
    "notes/my.env.md",
    "key.md",
    "monkey.key",
    "not-there.key",
    "credentials.json.md",
    "rsa.md",
    "my_id_rsa",
    "ssh/config",
    "aws.md",
    ".claude/projects.md",
    ".claude/skills/projects/SKILL.md",
]

DISGUISED = [
    ".ENV",
    ".Env.Local",
    ".env.",
    ".env ./x",
    "\uff0eenv",
    ".e\uff4ev",
    ".e\u200bnv",
    ".en\u00adv",
    ".\u017fsh/config",
    "Credentials.JSON",
    "SERVER.PEM",
    ".ssh//config",
    ".ssh/.",
    "notes\\.env",
    ".Claude/Projects/x.jsonl",
    "a/b/../../.env",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_denied(room: Room, name: str) -> None:
    assert room.read(room.vault / name) == room.read(name) == DENIED


@pytest.mark.parametrize("name", SECRETS)
def test_a_denied_path_stays_denied_at_full_trust(room: Room, name: str) -> None:
    assert room.at_full.read(room.vault / name) == room.at_full.write(room.vault / name) == DENIED


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_only_looks_like_a_secret_is_read(room: Room, name: str) -> None:
    assert room.read(room.vault / name) == READING


@pytest.mark.parametrize("name", DISGUISED)
def test_another_spelling_of_a_secret_is_denied(room: Room, name: str) -> None:
    assert room.at_full.read(f"{room.vault}/{name}") == DENIED


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": ".env"}),
        ("Write", {"file_path": ".env", "content": ""}),
        ("Edit", {"file_path": ".env", "old_string": "a", "new_string": "b"}),
        ("MultiEdit", {"file_path": ".env", "edits": []}),
        ("NotebookRead", {"notebook_path": ".env"}),
        ("NotebookEdit", {"notebook_path": ".env", "new_source": ""}),
        ("LS", {"path": ".ssh"}),
        ("Glob", {"pattern": ".env"}),
        ("Glob", {"pattern": "**/.ssh/*"}),
        ("Glob", {"pattern": "**/{notes,.env}"}),
        ("Glob", {"pattern": "*", "path": ".aws"}),
        ("Grep", {"pattern": "KEY", "path": ".env"}),
        ("Grep", {"pattern": "KEY", "glob": "**/.env*"}),
        ("Grep", {"pattern": "KEY", "glob": "*.md *.pem"}),
        ("mcp__parachute__anything", {"filePath": ".env"}),
        ("mcp__files__read_many", {"paths": ["a.md", ".env"]}),
        ("mcp__files__move", {"options": {"source": ".env"}}),
        ("SomethingNew", {"notebook_path": ".env"}),
    ],
)
def test_every_tool_that_names_a_path_meets_the_list(
    room: Room, tool: str, arguments: dict[str, object]
) -> None:
    assert room.rule(tool, **arguments) == room.at_full.rule(tool, **arguments) == DENIED


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Grep", {"pattern": r"\.env"}),
        ("Grep", {"pattern": "KEY", "glob": "!**/.env"}),
        ("Glob", {"pattern": "**/*.key"}),
        ("Write", {"file_path": "notes/a.md", "content": "keep it in .env"}),
    ],
)
def test_text_that_mentions_a_secret_is_no_path(room: Room, tool: str, arguments: dict[str, object]) -> None:
    assert room.decide(tool, **arguments).verdict == "allow"


@pytest.mark.parametrize("target", ["vault/.env", "outside/.ssh/config", "vault/tls.key", "home/db.sqlite3"])
def test_a_link_to_a_secret_is_denied(room: Room, tmp_path: Path, target: str) -> None:
    (room.vault / "innocent.md").symlink_to(tmp_path / target)
    assert room.at_full.read(room.vault / "innocent.md") == DENIED


def test_a_link_in_a_secret_folder_does_not_lead_out_of_the_list(room: Room) -> None:
    secret = room.outside / ".ssh"
    secret.mkdir()
    (secret / "known").symlink_to(room.vault / "notes" / "quinces.md")
    (room.vault / "known.md").symlink_to(secret / "known")
    assert room.at_full.read(room.vault / "known.md") == DENIED


def test_going_up_from_a_link_is_read_both_ways(room: Room, tmp_path: Path) -> None:
    (room.vault / "link").symlink_to(room.setting.home / "claude")
    assert room.at_full.read(f"{room.vault}/link/../db.sqlite3") == DENIED


@pytest.mark.parametrize(
    "name", ["db.sqlite3", "scratch/ben-2/x", "scratch/ada-10/x", "claude/ada-1/x", "SCRATCH/ada-1/x", "."]
)
def test_the_home_is_denied(room: Room, name: str) -> None:
    assert room.at_full.read(room.setting.home / name) == DENIED
    assert room.at_full.read(str(room.setting.home).upper()) == DENIED


def test_the_own_scratch_is_open_but_for_secrets(room: Room) -> None:
    assert room.read(room.scratch / "notes.txt") == READING
    assert room.write(room.scratch / "notes.txt") == ("allow", "writing")
    assert room.read(room.scratch / ".env") == DENIED
    assert room.read(f"{room.scratch}/../ben-2/x") == DENIED


def test_a_home_behind_a_link_is_denied_under_both_names(room: Room, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(room.setting.home)
    aliased = room.with_(home=tmp_path / "alias", scratch=tmp_path / "alias/scratch/ada-1").at_full
    assert aliased.read(room.setting.home / "db") == aliased.read(tmp_path / "alias" / "db") == DENIED
    assert aliased.read(tmp_path / "alias/scratch/ada-1/x") == aliased.read(room.scratch / "x") == READING


def test_an_own_config_outside_the_home_is_denied(room: Room, tmp_path: Path) -> None:
    assert room.with_(own_config=room.vault / "config").read(room.vault / "config" / ".claude.json") == DENIED


@pytest.mark.parametrize(
    "path", ["/proc/self/environ", "/proc/1/environ", "/proc/self/cwd/x", "/dev/stdin", "/dev/fd/3"]
)
def test_the_inside_of_a_process_is_denied(room: Room, path: str) -> None:
    assert room.at_full.read(path) == DENIED
    assert room.at_full.read("/proc/cpuinfo") == READING


def test_a_key_file_is_judged_by_what_it_holds(room: Room) -> None:
    late = room.vault / "late.KEY"
    late.write_text("Bag Attributes\n" * 20 + KEY)
    (room.vault / "folder.key").mkdir()
    assert room.read(late) == DENIED
    assert room.read(room.vault / "folder.key") == READING


def test_a_reason_names_the_list_and_who_may_change_it_and_no_secret(room: Room) -> None:
    reason = (
        room.read(room.vault / "tls.key")
        and room.decide("Read", file_path=str(room.vault / "tls.key")).reason
    )
    assert "deny list" in reason
    assert "who runs the server" in reason
    assert "MIIE" not in reason
