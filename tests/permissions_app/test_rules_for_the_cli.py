"""The deny list as the real CLI keeps it: in what Glob and Grep come across, which the gate never sees."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ToolResultBlock, UserMessage

from permissions_app.rules import private_keys
from permissions_app.rules.deny_list import cli_deny_rules
from permissions_app.rules.setting import Setting
from tests.permissions_app.room import KEY, Room
from tests.scripted_model import ScriptedModel, calls

OPEN = [
    "a.md",
    ".env.example",
    "deep/.env.example",
    "monkey.key",
    "environment.md",
    ".claude/skills/SKILL.md",
]
SHUT = [
    ".env",
    ".ENV.local",
    ".env.",
    ".env.exam",
    ".env.examples",
    ".env.d/x",
    ".envrc",
    "deep/.env",
    "x.PEM",
    "id_ed25519_sk",
    "deep/.ssh/config",
    ".aws/credentials",
    "credentials.json",
    ".netrc",
    ".git-credentials",
    ".claude/projects/p/1.jsonl",
    "tls.key",
]
SHUT_AT_HOME = ["db", "claude/ada-1/t.jsonl", "scratch/ben-2/x", "scratch/ada-10/x", "scratch/ada-1/.env"]
NEEDLE = "NEEDLE"


def plant(folder: Path, names: Iterable[str]) -> None:
    for path in (folder / name for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{KEY if path.name == 'tls.key' else ''}{NEEDLE}")


@pytest.fixture
def odd_room(room: Room, tmp_path: Path) -> Room:
    """Folders whose names mean something in a pattern, and a home behind a link."""
    odd = tmp_path / "Ada's [notes] (old)"
    real = tmp_path / "real home"
    (real / "scratch" / "ada-1").mkdir(parents=True)
    odd.mkdir()
    home = odd / "home"
    home.symlink_to(real)
    plant(odd / "vault", [*OPEN, *SHUT])
    plant(real, [*SHUT_AT_HOME, "scratch/ada-1/mine"])
    folders = {"vault": odd / "vault", "working_directory": odd / "vault", "home": home}
    return room.at_full.with_(**folders, scratch=home / "scratch/ada-1", own_config=home / "claude/ada-1")


async def results(setting: Setting, config: Path, *uses: dict[str, str]) -> list[str]:
    """What the CLI answers to a Grep or a Read each, with no gate but its own rules."""
    with ScriptedModel() as model:
        model.script("look", [calls("Grep" if "pattern" in use else "Read", **use) for use in uses])
        options = ClaudeAgentOptions(
            cwd=setting.working_directory,
            env={
                "ANTHROPIC_BASE_URL": model.url,
                "ANTHROPIC_API_KEY": "any",
                "CLAUDE_CONFIG_DIR": str(config),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            setting_sources=[],
            tools=["Read", "Grep"],
            allowed_tools=["Read", "Grep"],
            settings=_settings(setting),
        )
        async with ClaudeSDKClient(options) as client:
            await client.query("look")
            blocks = [
                block
                async for message in client.receive_response()
                if isinstance(message, UserMessage) and isinstance(message.content, list)
                for block in message.content
                if isinstance(block, ToolResultBlock)
            ]
    return [str(block.content) for block in blocks]


def _settings(setting: Setting) -> str:
    return json.dumps({"permissions": {"deny": cli_deny_rules(setting)}})


async def test_the_cli_finds_nothing_that_is_denied(
    odd_room: Room, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = tmp_path_factory.mktemp("config")  # elsewhere: its transcript holds what is looked for
    look = {"pattern": NEEDLE, "path": str(tmp_path), "output_mode": "files_with_matches"}
    found, by_glob = await results(odd_room.setting, config, look, {**look, "glob": "**/.e*"})
    assert sorted(Path(line).name for line in found.splitlines()[1:]) == sorted(
        ["mine", *(Path(name).name for name in OPEN)]
    )
    assert {Path(line).name for line in by_glob.splitlines()[1:]} == {".env.example"}


async def test_the_cli_reads_what_is_open_and_refuses_what_is_not(odd_room: Room, tmp_path: Path) -> None:
    vault, home = odd_room.vault, odd_room.setting.home
    paths = [*(vault / name for name in OPEN), odd_room.scratch / "mine"]
    shut = [*(vault / name for name in SHUT), *(home / name for name in SHUT_AT_HOME)]
    answers = await results(odd_room.setting, tmp_path / "c", *({"file_path": str(p)} for p in paths + shut))
    readable = [path for path, answer in zip(paths + shut, answers, strict=True) if NEEDLE in answer]
    assert readable == paths


def test_a_vault_too_big_to_look_through_has_all_its_keys_closed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"Read(/{room.vault}/tls.key)" in cli_deny_rules(room.setting)
    monkeypatch.setattr(private_keys, "MAX_ENTRIES", 2)
    assert f"Read(/{room.vault}/**/*.key)" in cli_deny_rules(room.setting)


def test_a_file_of_anothers_private_chat_is_a_rule(room: Room) -> None:
    closed = room.with_(closed_files=frozenset({room.vault / "Chat/assets/quinces.pdf"}))
    assert f"Read(/{room.vault}/Chat/assets/quinces.pdf)" in cli_deny_rules(closed.setting)
