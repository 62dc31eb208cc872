"""A vault that an agent has filled on purpose costs a rule, never the turn."""

from pathlib import Path

from permissions_app.rules import private_keys
from permissions_app.rules.control_files import control_files_in
from permissions_app.rules.decision import Verdict
from permissions_app.rules.ladder import ToolCall, decide
from permissions_app.rules.setting import Setting, Trust
from tests.plain_user import folder_of_a_plain_user

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


def test_a_repository_that_an_agent_closed_to_us_has_none_that_we_see() -> None:
    with folder_of_a_plain_user() as folder:
        (folder / ".git/hooks").mkdir(parents=True)
        (folder / "CLAUDE.md").touch()
        (folder / ".git").chmod(0)
        assert control_files_in(folder) == [folder / "CLAUDE.md"]
        folder.chmod(0)
        assert control_files_in(folder) == []


def test_a_command_of_git_where_we_may_not_look_is_answered() -> None:
    with folder_of_a_plain_user() as folder:
        (folder / "vault/closed/.git").mkdir(parents=True)
        (folder / "vault/closed").chmod(0)
        setting = Setting(
            trust=Trust.VAULT,
            behind_wall=True,
            operator=False,
            vault=folder / "vault",
            working_directory=folder / "vault",
            home=folder / "home",
            scratch=None,
            own_config=None,
            own_servers=frozenset(),
        )
        call = ToolCall("toolu_1", "Bash", {"command": "git -C closed config user.name Ada"})
        assert decide(call, setting).verdict is Verdict.ALLOW  # git will say that it cannot
