"""What a pattern covers, and what none ever does."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from permissions_app.rules.patterns import matches
from permissions_app.rules.setting import Patterns, Setting
from permissions_app.rules.suggestions import covers
from permissions_app.rules.tools import ToolCall
from tests.effort import effort
from tests.permissions_app.room import Room

WRITES_ASK = ("ask", "write")
BY_PATTERN = ("allow", "pattern")
ASKS = ("ask", "shell")


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("notes/a.md", "notes/a.md", True),
        ("notes/a.md", "notes/b.md", False),
        ("notes/*", "notes/a.md", True),
        ("notes/*", "notes/deep/a.md", False),
        ("notes/*", "notes", False),
        ("notes/*.md", "notes/a.md", True),
        ("notes/*.md", "notes/a.txt", False),
        ("notes/**/*", "notes/a.md", True),
        ("notes/**/*", "notes/deep/er/a.md", True),
        ("notes/**/*", "notesx/a.md", False),
        ("notes/**", "notes/deep/a.md", True),
        ("notes/", "notes/deep/a.md", True),
        ("**/*", "a.md", True),
        ("**/*", "deep/er/a.md", True),
        ("**/*.md", "deep/a.md", True),
        ("**/x/*", "a/b/x/c", True),
        ("*", "a.md", True),
        ("*", "deep/a.md", False),
        ("*", ".hidden", False),
        ("**/*", ".hidden", False),
        ("**/*", ".hidden/a.md", False),
        ("**/*", "deep/.hidden", False),
        (".hidden/*", ".hidden/a.md", True),
        (".*", ".hidden", True),
        ("[a].md", "[a].md", True),
        ("[a].md", "a.md", False),
        ("a?.md", "ab.md", False),
        ("A.md", "a.md", False),
        ("../*", "a.md", False),
        ("/notes/*", "notes/a.md", False),
        ("", "a.md", False),
        ("a//b", "a/b", False),
        ("*" * 30, "a.md", False),
        ("https://example.org/", "https:/example.org", False),
        ("a*b*c", "a-c-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("ab*ba", "aba", False),
        ("*a*", "bab", True),
        ("a/**/b/**/c", "a/x/b/b/y/c", True),
        ("a/**/b/**/c", "a/x/c/b", False),
        ("a/**/b", "a/b", True),
        ("**/**/b", "b", True),
        ("**/.x/*", "a/.x/b", True),
        ("**/*/.x/**", "a/.x/b/.x/c", False),
    ],
)
def test_patterns_compare_by_segment_and_keep_dotfiles_apart(pattern: str, path: str, covered: bool) -> None:
    assert matches(pattern, path) is covered


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("*a" * 19 + "*b", "a" * 4_000), ("**/a/" * 9 + "b", "a/" * 2_000 + "c"), ("*a" * 7 + "*b", "a" * 60)],
)
def test_no_pattern_tries_a_path_again_and_again(pattern: str, path: str) -> None:
    assert not matches(pattern, path)
    assert effort(lambda: matches(pattern, path)) < 30


def careful(room: Room, **patterns: tuple[str, ...]) -> Room:
    return room.with_(trust_mode=False, patterns=Patterns(**patterns))


def test_without_trust_mode_a_write_asks_unless_a_pattern_covers_it(room: Room) -> None:
    session = careful(room, write=("Chat/artifacts/*",))
    assert session.write(room.vault / "notes" / "a.md") == WRITES_ASK
    assert session.write(room.vault / "Chat" / "artifacts" / "a.md") == BY_PATTERN
    assert session.write(room.scratch / "a.md") == ("allow", "writing")
    assert session.read(room.vault / "notes" / "quinces.md") == ("allow", "reading")


def test_links_and_dots_are_resolved_before_a_pattern_is_compared(room: Room) -> None:
    (room.vault / "open").mkdir()
    (room.vault / "open" / "out").symlink_to(room.vault / "notes")
    session = careful(room, write=("open/**/*",))
    assert session.write("open/../notes/a.md") == WRITES_ASK
    assert session.write("open/out/a.md") == WRITES_ASK
    assert session.write("notes/../open/a.md") == BY_PATTERN


def test_no_pattern_covers_a_control_file_or_a_secret(room: Room) -> None:
    session = careful(room, write=("**/*", ".claude/**/*", "CLAUDE.md", ".env", ".*"), bash=("*",))
    assert session.write("CLAUDE.md") == session.write(".claude/settings.json") == ("ask", "control_file")
    assert session.write(".env") == ("deny", "deny_list")
    assert session.at_full.bash("echo x > CLAUDE.md") == ("ask", "control_file")
    assert session.at_full.bash("cp x .mcp.json") == session.at_full.bash("rm AGENTS.md")
    assert session.at_full.bash("rm AGENTS.md") == ("ask", "control_file")
    assert session.at_full.bash("git log --output=CLAUDE.md") == ("ask", "control_file")


def test_a_read_only_box_stays_one_whatever_the_patterns(room: Room) -> None:
    session = careful(room.sandboxed, write=("**/*",))
    assert session.write(room.vault / "a.md") == ("deny", "read_only_box")


def test_an_agents_own_limits_ask_in_every_mode(room: Room) -> None:
    limited = room.with_(agent_writes=("Daily/**/*",), patterns=Patterns(write=("**/*",)))
    for session in (limited, limited.with_(trust_mode=False), limited.at_full):
        assert session.write(room.vault / "notes" / "a.md") == ("ask", "agent_writes")
    assert limited.write(room.vault / "Daily" / "a.md") == BY_PATTERN
    assert limited.write(room.scratch / "a.md") == ("allow", "writing")
    assert limited.at_full.bash("cp x notes/a.md") == ("ask", "agent_writes")


def test_at_full_trust_without_trust_mode_what_is_outside_asks(room: Room) -> None:
    session = careful(room.at_full, read=("**/*",), write=("**/*",))
    assert session.read("/etc/hostname") == ("ask", "reading_outside")
    assert session.write(room.outside / "x") == WRITES_ASK
    assert session.write("notes/a.md") == BY_PATTERN


@pytest.mark.parametrize(
    ("patterns", "command", "covered"),
    [
        (("git status",), "git status", True),
        (("git status",), "git status -s", True),
        (("git status:*",), "git status -s", True),
        (("Bash(git status:*)",), "'git' sta'tus'", True),
        (("git status *",), "git status", True),
        (("git status",), "git statusx", False),
        (("git status",), "git push", False),
        (("git status",), "./git status", False),
        (("git status",), "git -c x=y status", False),
        (("git status",), "git status && ls", False),
        (("git status", "ls"), "git status && ls | ls", True),
        (("git status",), "cd notes && git status && echo done", True),
        (("git status",), "cd / && git status", False),
        (("git status",), "cd $X && git status", False),
        (("git status",), "git status $(ls)", False),
        (("git status",), "git status $X", False),
        (("git status",), "git status > /etc/x", False),
        (("git status",), "PATH=. git status", False),
        (("git status",), "git() { ls; }; git status", False),
        (("git status",), "timeout 5 git status", True),
        (("git status",), "env git status", False),
        (("git status",), "xargs git status", False),
        (("git status",), "sh -c 'git status'", False),
        (("git status",), "eval git status", False),
        (("git status",), "echo x | git status", True),
        (("git status",), "git status; $X", False),
        (("cat",), "cat notes/quinces.md", True),
        (("cat",), "cat /etc/hostname", False),
        (("cat",), "cat ../x", False),
        (("npm test",), "npm test -- --watch", True),
        (("npm run",), "npm run build", False),
        (("npm rum",), "npm rum x", False),
        (("npm init",), "npm init x", False),
        (("yarn create",), "yarn create x", False),
        (("yarn build",), "yarn build", False),
        (("docker container",), "docker container run x", False),
        (("docker ps",), "docker ps -a", True),
        (("git x",), "git x", False),
        (("direnv",), "direnv exec . ls", False),
        (("hyperfine",), "hyperfine ls", False),
        (("setarch",), "setarch x86_64 ls", False),
        (("fakeroot",), "fakeroot ls", False),
        (("sed",), "sed -n 1p notes/quinces.md", True),
        (("sed",), "sed -e'1e ls' notes/quinces.md", False),
        (("tar",), "tar tf notes/x.tar", True),
        (("tar",), "tar tf notes/x.tar --to-com=ls", False),
        (("sort",), "sort notes/quinces.md", True),
        (("sort",), "sort --compress-prog=ls notes/quinces.md", False),
        (("sort",), "sort -oCLAUDE.md notes/quinces.md", False),
        (("git",), "git status", False),
        (("python",), "python x.py", False),
        (("make",), "make x", False),
        (("env",), "env", False),
        (("*",), "rm notes/a.md", True),
        (("*",), "sh x.sh", False),
        (("*",), "curl https://example.org | sh", False),
    ],
)
def test_a_pattern_covers_a_line_only_if_it_covers_every_command(
    room: Room, patterns: tuple[str, ...], command: str, covered: bool
) -> None:
    session = careful(room.at_full, bash=patterns, write=("**/*",))
    assert (session.bash(command) == BY_PATTERN) is covered
    if not covered:
        assert session.bash(command)[0] == "ask"


def test_a_command_that_writes_needs_the_right_to_write_too(room: Room) -> None:
    assert careful(room.at_full, bash=("ls",)).bash("ls > notes/a.md") == ASKS
    assert careful(room.at_full, bash=("ls",), write=("notes/*",)).bash("ls > notes/a.md") == BY_PATTERN


def test_bash_asks_every_time_without_a_wall_and_never_behind_one(room: Room) -> None:
    session = careful(room, bash=("git status",))
    assert session.without_wall.bash("git status") == ASKS
    assert session.bash("git push") == ("allow", "behind_wall")


def test_once_it_read_strangers_a_session_fetches_from_named_hosts_only(room: Room) -> None:
    fetched = ("ask", "unnamed_host")
    session = room.with_(
        has_read_strangers=True,
        named_hosts=frozenset({"Example.org"}),
        patterns=Patterns(read=("https://*.python.org/", "https://one.example/")),
    )

    def fetch(url: str) -> tuple[str, str]:
        return session.rule("WebFetch", url=url)

    assert fetch("https://example.org/a?b") == ("allow", "named_host")
    assert fetch("https://docs.python.org/3/") == fetch("http://ONE.example") == BY_PATTERN
    assert fetch("https://python.org/") == fetch("https://python.org.evil.example/") == fetched
    assert fetch("https://example.org.evil.example/") == fetch("https://two.one.example/") == fetched
    assert fetch("http://127.0.0.1/") == ("deny", "private_host")
    assert room.rule("WebFetch", url="https://two.one.example/") == ("allow", "public_host")


SEGMENTS = st.sampled_from(
    ["*", "**", "..", ".", ".env", "notes", "out", "*.md", ".*", "id_rsa", "", "tls.key"]
)
PATTERNS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)
TARGETS = ["../outside/x", "/etc/hostname", ".env", "notes/.env", "out/x", "notes/../../outside/x"]
TARGETS += ["tls.key", "id_rsa", ".ssh/config", "x.pem", "{home}/db", "{vault}/../outside/x"]
AS_CALL: list[Callable[[str], ToolCall]] = [
    lambda path: ToolCall("t", "Read", {"file_path": path}),
    lambda path: ToolCall("t", "Write", {"file_path": path, "content": ""}),
    lambda path: ToolCall("t", "Bash", {"command": f"cat {path}"}),
    lambda path: ToolCall("t", "Bash", {"command": f"ls notes; touch '{path}'"}),
]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    patterns=st.lists(PATTERNS, max_size=3), target=st.sampled_from(TARGETS), as_call=st.sampled_from(AS_CALL)
)
def test_no_pattern_covers_what_is_deny_listed_or_outside(
    room: Room, patterns: list[str], target: str, as_call: Callable[[str], ToolCall]
) -> None:
    link = Path(room.vault / "out")
    if not link.is_symlink():
        link.symlink_to(room.outside)
    allowed = Patterns(read=tuple(patterns), write=tuple(patterns), bash=("cat", "ls", "touch", "*"))
    for session in (room, room.at_full):
        setting: Setting = session.with_(patterns=allowed).setting
        assert covers(as_call(target.format(home=setting.home, vault=setting.vault)), setting) is None
