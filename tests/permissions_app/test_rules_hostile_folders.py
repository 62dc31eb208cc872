"""A vault that an agent has filled on purpose costs a rule, never the turn."""

from pathlib import Path

from permissions_app.rules import private_keys
from permissions_app.rules.control_files import control_files_in

KEY = "-----BEGIN PRIVATE KEY-----\n"


def test_keys_are_named_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a.key").write_text(KEY)
    (tmp_path / "song.key").write_text("a presentation")
    assert private_keys.private_keys_in(tmp_path) == [tmp_path / "a.key"]


def test_a_folder_that_is_too_deep_is_too_much_to_say(tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * (private_keys.MAX_DEPTH + 2)).mkdir(parents=True)
    assert private_keys.private_keys_in(tmp_path) is None


def test_more_keys_than_a_command_line_takes_are_too_much_to_say(tmp_path: Path) -> None:
    for number in range(private_keys.MAX_KEYS + 1):
        (tmp_path / f"{number}.key").write_text(KEY)
    assert private_keys.private_keys_in(tmp_path) is None


def test_what_steers_agents_and_git_is_found_for_the_wall(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    for name in ("CLAUDE.md", ".mcp.json", "Note.md"):
        (tmp_path / name).write_text("")
    found = {path.relative_to(tmp_path).as_posix() for path in control_files_in(tmp_path)}
    assert found == {"CLAUDE.md", ".mcp.json", ".git/hooks"}
