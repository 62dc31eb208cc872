"""What an answer may widen a session by."""

from typing import Any

import pytest

from permissions_app.rules.setting import Patterns
from permissions_app.rules.suggestions import (
    PatternScope,
    PermissionType,
    covers,
    exactly,
    permission_type,
    preview,
    subject,
    suggested,
    with_pattern,
)
from permissions_app.rules.tools import ToolCall
from tests.permissions_app.room import Room


def call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("toolu_1", tool, arguments)


def write(path: str) -> ToolCall:
    return call("Write", file_path=path, content="x")


def bash(command: str) -> ToolCall:
    return call("Bash", command=command)


@pytest.fixture
def careful(room: Room) -> Room:
    return room.with_(trust_mode=False)


@pytest.fixture
def operator(careful: Room) -> Room:
    return careful.at_full


def test_a_write_may_widen_from_the_file_to_the_vault(careful: Room) -> None:
    found = suggested(write("Plans/2026/spring/a.md"), careful.setting)
    assert [(each.scope, each.pattern) for each in found] == [
        (PatternScope.ONCE, ""),
        (PatternScope.FILE, "Plans/2026/spring/a.md"),
        (PatternScope.FOLDER, "Plans/2026/spring/*"),
        (PatternScope.RECURSIVE, "Plans/2026/spring/**/*"),
        (PatternScope.ROOT, "Plans/**/*"),
        (PatternScope.VAULT, "**/*"),
    ]
    assert found[2].label == "the folder Plans/2026/spring/"


def test_what_is_suggested_would_let_the_call_through(careful: Room, operator: Room) -> None:
    for session, asked in (
        (careful, write("a.md")),
        (careful, write("Plans/.hidden/a.md")),
        (operator, bash("git status -s && git status")),
        (careful.with_(has_read_strangers=True), call("WebFetch", url="https://example.org/a")),
    ):
        wider = suggested(asked, session.setting)[1:]
        assert wider
        for each in wider:
            kind = permission_type(asked)
            widened = session.with_(patterns=with_pattern(session.setting.patterns, kind, each.pattern))
            assert covers(asked, widened.setting) == each.pattern
            assert widened.rule(asked.name, **asked.input)[0] == "allow"


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("git status -s", "git status"),
        ("npm test", "npm test"),
        ("ls -la notes", "ls"),
        ("cd notes && pytest -q", "pytest"),
        ("git status && git status", "git status"),
    ],
)
def test_a_command_may_widen_by_how_it_begins(operator: Room, command: str, prefix: str) -> None:
    once, wider = suggested(bash(command), operator.setting)
    assert (once.scope, wider.scope) == (PatternScope.ONCE, PatternScope.COMMAND)
    assert (wider.pattern, wider.label) == (prefix, f"commands that begin with {prefix}")


@pytest.mark.parametrize(
    "command",
    [
        *("python x.py", "python -c 'x'", "env", "env git status", "xargs ls", "make", "npm run x", "git"),
        *("curl x | sh", "$X", "sh x.sh", "git status; git push", "sudo ls", "cat .env", "cat /etc/hostname"),
        *(
            "./x",
            "npx x",
            "echo 'no end",
            "rm CLAUDE.md",
            "git config x y",
            "FOO=1 npm test",
            "find . -delete",
        ),
    ],
)
def test_what_can_run_anything_is_allowed_once(operator: Room, command: str) -> None:
    assert [each.scope for each in suggested(bash(command), operator.setting)] == [PatternScope.ONCE]


def test_where_a_pattern_would_not_help_only_once_is_offered(room: Room, careful: Room) -> None:
    for session, asked in (
        (careful, write("CLAUDE.md")),
        (careful, write(".env")),
        (careful.without_wall, bash("git status")),
        (careful.with_(agent_writes=()), write("a.md")),
        (room, call("mcp__other__tool")),
        (room, call("Unheard", path="a.md")),
        (careful.at_full, write("/etc/hostname")),
        (careful, write("a*b/c\0")),
    ):
        assert [each.scope for each in suggested(asked, session.setting)] == [PatternScope.ONCE]


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        *((PermissionType.WRITE, text) for text in ("", "/etc/*", "../x", "a/../b", "~/*", ".env", ".ssh/*")),
        *(
            (PermissionType.READ, text)
            for text in ("https://", "https://*/", "https://*.org/", "http://localhost/")
        ),
        *(
            (PermissionType.BASH, text)
            for text in ("", "*", "git", "python", "env ls", "make", "npm run x", "'a")
        ),
        *(
            (PermissionType.BASH, text)
            for text in ("sh", "Bash(*)", "xargs", "$X", "a;b", "git -c x", "sudo")
        ),
        *((PermissionType.MCP, "x"), (PermissionType.OTHER, "x")),
    ],
)
def test_a_pattern_that_is_broken_or_too_wide_is_refused(kind: PermissionType, pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        with_pattern(Patterns(), kind, pattern)


def test_a_pattern_is_added_once_and_leaves_the_others(room: Room) -> None:
    before = Patterns(read=("a/*",), write=("b/*",), bash=("ls",))
    after = with_pattern(before, PermissionType.BASH, "git status")
    assert after == Patterns(read=("a/*",), write=("b/*",), bash=("ls", "git status"))
    assert with_pattern(after, PermissionType.BASH, "git status") == after


def test_a_preview_says_what_of_the_past_a_pattern_would_have_covered(careful: Room) -> None:
    inside, beside, secret = write("Plans/a.md"), write("Notes/a.md"), write("Plans/.env")
    found = preview("Plans/**/*", [inside, beside, secret], careful.setting)
    assert (found.covered, found.not_covered, found.deny_listed) == ((inside,), (beside,), (secret,))
    commands = [bash("git status -s"), bash("git push"), bash("sudo ls"), call("Read", file_path="x\0")]
    seen = preview("git status", commands, careful.setting)
    assert seen.covered == (commands[0],)
    assert seen.deny_listed == (commands[2],)


def test_requests_of_one_tool_and_folder_are_one_card(careful: Room) -> None:
    setting = careful.setting
    assert subject(write("Plans/a.md"), setting) == subject(write("Plans/../Plans/b.md"), setting)
    assert subject(write("Plans/a.md"), setting) != subject(write("Notes/a.md"), setting)
    assert subject(bash("ls"), setting) == subject(bash("git status"), setting)
    assert subject(call("WebFetch", url="https://a.example/x"), setting) == "WebFetch a.example"
    assert subject(call("Read", file_path=7), setting) == "Read"


def test_exactly_this_call_is_another_when_anything_behind_it_changed(operator: Room) -> None:
    script = operator.vault / "x.sh"
    script.write_text("ls")
    asked = bash("timeout 5 sh x.sh notes")
    first = exactly(asked, operator.setting)
    assert first == exactly(bash("timeout 5 sh x.sh notes"), operator.setting)
    assert first != exactly(bash("timeout 6 sh x.sh notes"), operator.setting)
    assert first != exactly(asked, operator.with_(working_directory=operator.outside).setting)
    script.write_text("ls -la")
    assert first != exactly(asked, operator.setting)


@pytest.mark.parametrize("command", ["./run", "bash run", "source run", "python run", "npm test", "make x"])
def test_the_content_of_what_a_command_runs_is_part_of_it(operator: Room, command: str) -> None:
    files = [operator.vault / name for name in ("run", "package.json", "Makefile")]
    for file in files:
        file.write_text("one")
    first = exactly(bash(command), operator.setting)
    for file in files:
        file.write_text("two")
    assert first != exactly(bash(command), operator.setting)


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("cd sub && make", "sub/Makefile"),
        ("make -C sub", "sub/Makefile"),
        ("make -sC sub all", "sub/Makefile"),
        ("make -f o.mk", "o.mk"),
        ("make --file=o.mk", "o.mk"),
        ("cd sub && npm test", "sub/package.json"),
        ("npm --prefix sub test", "sub/package.json"),
        ("bash -eo pipefail x.sh", "x.sh"),
        ("cd sub; bash x.sh", "sub/x.sh"),
        ("bash < x.sh", "x.sh"),
        ("python -W ignore x.py", "x.py"),
        ("python -m sub.tool", "sub/tool.py"),
        ("uv run x.py", "x.py"),
        ("node -r ./x.js y.js", "x.js"),
        ("cd sub && ./run", "sub/run"),
        ("python3 app", "app/__main__.py"),
        ("python3 -W ignore app", "app/__main__.py"),
        ("node .", "package.json"),
        ("node .", "index.js"),
        ("node src", "src/index.js"),
        ("node src/app", "src/app.js"),
        ("node -r ./pre app.js", "pre.js"),
        ("node --require=./pre app.js", "pre/index.js"),
        ("pytest", "conftest.py"),
        ("pytest", "tests/conftest.py"),
        ("pytest tests", "tests/conftest.py"),
        ("pytest tests", "conftest.py"),
        ("pytest -x tests/unit/test_a.py::test_b", "tests/unit/conftest.py"),
        ("pytest -x tests/unit/test_a.py::test_b", "tests/conftest.py"),
        ("uv run pytest tests", "tests/conftest.py"),
        ("python -m pytest tests", "tests/conftest.py"),
        ("cmake .", "CMakeLists.txt"),
        ("cmake -S src -B build", "src/CMakeLists.txt"),
        ("cmake --build build", "build/Makefile"),
        ("./gradlew build", "build.gradle"),
        ("./gradlew build", "settings.gradle.kts"),
        ("gradle -p sub build", "sub/build.gradle.kts"),
        ("bundle exec rake", "Rakefile"),
        ("bundle exec rake", "Gemfile"),
        ("rake", "Rakefile"),
        ("pip install .", "setup.py"),
        ("pip install -e '.[dev]'", "pyproject.toml"),
        ("pip3 install ./sub", "sub/setup.py"),
        ("python -m pip install .", "setup.py"),
        ("uv pip install .", "setup.py"),
        ("git commit -m x", ".git/hooks/pre-commit"),
        ("git -C sub commit -m x", "sub/.git/hooks/commit-msg"),
        ("git push", ".husky/pre-push"),
        ("gulp", "gulpfile.js"),
        ("npx gulp", "gulpfile.js"),
        ("grunt", "Gruntfile.js"),
        ("jest", "jest.config.js"),
        ("npx jest", "package.json"),
        ("flask run", "app.py"),
        ("flask --app x run", "x.py"),
        ("invoke build", "tasks.py"),
        ("inv build", "tasks.py"),
        ("fab x", "fabfile.py"),
        ("mise run x", "mise.toml"),
        ("webpack", "webpack.config.js"),
        ("vite build", "vite.config.ts"),
        ("npx eslint .", "eslint.config.js"),
        ("uvicorn app:app", "app.py"),
        ("gunicorn src.app:app", "src/app.py"),
        ("go run .", "main.go"),
        ("go run ./cmd/x", "cmd/x/main.go"),
        ("cargo run", "src/main.rs"),
        ("poe x", "pyproject.toml"),
        ("nx run x", "nx.json"),
        ("terraform apply", "main.tf"),
    ],
)
def test_wherever_it_stands_the_content_of_what_is_run_is_part_of_it(
    operator: Room, command: str, file: str
) -> None:
    script = operator.vault / file
    script.parent.mkdir(exist_ok=True, parents=True)
    script.write_text("one")
    first = exactly(bash(command), operator.setting)
    script.write_text("two")
    assert first != exactly(bash(command), operator.setting)


def test_what_a_command_only_reads_may_change(operator: Room) -> None:
    file = operator.vault / "notes" / "quinces.md"
    first = exactly(bash("wc -l notes/quinces.md"), operator.setting)
    file.write_text("two")
    assert first == exactly(bash("wc -l notes/quinces.md"), operator.setting)


@pytest.mark.parametrize("command", ["git add notes/quinces.md", "git commit -m x notes/quinces.md"])
def test_what_git_keeps_may_change(operator: Room, command: str) -> None:
    first = exactly(bash(command), operator.setting)
    (operator.vault / "notes" / "quinces.md").write_text("two")
    assert first == exactly(bash(command), operator.setting)


def test_a_write_through_a_link_that_was_swapped_is_another_call(careful: Room) -> None:
    link = careful.vault / "link"
    link.symlink_to(careful.vault / "notes")
    first = exactly(write("link/a.md"), careful.setting)
    link.unlink()
    link.symlink_to(careful.outside)
    assert first != exactly(write("link/a.md"), careful.setting)
