"""Where the parser and Bash part: words that are one to Bash, words that are none, and words of the shell's
own. What the rules let run is run by a real Bash, which must neither start `sudo` nor open a secret by it."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.permissions_app.room import Room

DANGEROUS = [
    # One word beside a backslash
    "s''\\udo ls",
    "'s'\\u\\d\\o ls",
    's""\\udo ls',
    "s$'u'\\do ls",
    "rm -rf /'e'\\tc",
    "sh <<< 'sud'\\o\\ ls",
    "x='sud'\\o; $x ls",
    # The `$` of a translated string
    '$"sudo" ls',
    'sudo$"" ls',
    '$"rm" -rf /',
    'x=$"sudo"; $x ls',
    'echo x > $"/dev/sda"',
    # Words of the shell's own
    "time (sudo ls)",
    "time x='sudo ls' sh -c 'eval \"$x\"'",
    "time -p -- sudo ls",
    "time [[ -f $(sudo ls) ]]",
    "time for i in 1; do sudo ls; done",
    "time >x sudo ls",
    "! time sudo ls",
    "coproc { x='sudo ls'; eval \"$x\"; }",
    'eval -- "sudo ls"',
    'printf -- "sudo ls" | sh',
    'source -- /dev/stdin <<< "sudo ls"',
    # What `xargs` hands over
    "echo 'rm -rf /' | xargs -I{} sh -c {}",
    "echo 'rm -rf /' | xargs -d '\\n' sh -c",
    "echo 'rm -rf /' | xargs -0 sh -c",
    "echo '\"rm -rf /\"' | xargs sh -c",
    "echo \"-c 'sudo ls'\" | xargs sh",
    "xargs -n 2 sh -c <<< \"'sudo ls' a b c\"",
    "xargs -L1 sh <<< \"-c 'sudo ls'\"",
    "xargs -I X sh -c X <<< \"sudo 'l's\"",
    "xargs -d: sh -c <<< 'sudo ls:a'",
    # Words that are none
    "x=; $x sudo ls",
    "x=''; sh -c $x 'sudo ls'",
    # What starts what stands behind it
    "/lib64/ld-linux-x86-64.so.2 /bin/sh -c 'sudo ls'",
    "xterm -e 'sudo ls'",
    "tini -- sudo ls",
    "execlineb -c 'sudo ls'",
    "pandoc --filter 'sudo ls' x",
    "ansible localhost -m shell -a 'sudo ls'",
]
SECRET = [
    "cat .e''\\nv",
    "cat <'.e'\\nv",
    "x='.e'\\nv; cat $x",
    "export x='.e'\\nv; cat $x",
    "for f in '.e'\\nv; do cat $f; done",
    "a=('.e'\\nv); cat ${a[0]}",
    "cat $(echo)\\.env",
    'cat < $".env"',
    'cat .$"env"',
    "time x=.env; cat $x",
    "time { x=.env; cat $x; }",
    "time (x=.env; cat $x)",
    "time >x y=.env; cat $y",
    "coproc { x=.env; cat $x; }",
    "cp .env {CLAUDE.md,}",
]
ASKS = [
    # With nothing where a variable stands
    "cat .e${z}nv",
    "cat ${z}.env",
    "cat .$(:)env",
    "cat id_rs${z}a",
    "cat .en$1v",
    "time IFS=:; a=rm:-rf:/; $a",
    "time LD_PRELOAD=./x.so ls",
    "time BASH_ENV=<(echo 'cat .env') bash -c true",
    ". -- <(echo 'sudo ls')",
    "xargs -d '\\072' sh -c <<< 'sudo ls:a'",
    "printf '%s\\n' a b c d e f g h i j k l m n o p q r s t 'sudo ls' | xargs -I{} sh -c {}",
]
CONTROL = [
    'echo x > $"CLAUDE.md"',
    "x=''; cp x CLAUDE.md $x",
    "cp x CLAUDE.md $x",
    "cp x .git/hooks/pre-commit $(true)",
    "cp x .git/h${1}ooks/pre-commit",
    "cp x .git/h$1ooks/pre-commit",
    "time (echo x > CLAUDE.md)",
]
HARMLESS = [
    "time make -j4",
    "time",
    "time; ls",
    "FOO=1 time BAR=2 make",
    "time (cd src && make)",
    "time -p ls",
    "echo time x=1",
    "echo 'a'\\ 'b' \\$x",
    'git commit -m "" --allow-empty-message',
    'echo "a" "" \'b\'',
    'cp README.md "$dst"',
    'mv "$a" "$b"',
    "cat ${name}.md",
    "git add $files",
    'rm -f "build/$name.o"',
    "find . -empty -delete",
    "bash --version",
    "echo a b c | xargs -n1 echo",
    "seq 3 | xargs -P4 -I% curl https://example.org/%",
    "git ls-files | xargs -d '\\n' wc -l",
    'echo "it\'s" | xargs echo',
]


@pytest.mark.parametrize("command", DANGEROUS)
def test_what_is_dangerous_is_denied(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == room.bash(command) == ("deny", "dangerous")


@pytest.mark.parametrize("command", SECRET)
def test_what_opens_a_secret_is_denied(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == room.bash(command) == ("deny", "deny_list")


@pytest.mark.parametrize("command", ASKS)
def test_what_may_do_so_asks(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == ("ask", "unreadable_command")
    assert room.bash(command) == ("allow", "behind_wall")


@pytest.mark.parametrize("command", CONTROL)
def test_what_writes_a_control_file_asks(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == ("ask", "control_file")


@pytest.mark.parametrize("command", HARMLESS)
def test_what_is_harmless_runs(room: Room, command: str) -> None:
    assert room.at_full.bash(command) == ("allow", "operator")
    assert room.bash(command) == ("allow", "behind_wall")


CHARACTER: list[Callable[[str], str]] = [
    lambda c: c,
    lambda c: f"\\{c}",
    lambda c: f"'{c}'",
    lambda c: f'"{c}"',
    lambda c: f'$"{c}"',
    lambda c: f"$'{c}'",
    lambda c: f"$'\\x{ord(c):02x}'",
    lambda c: f'""{c}',
    lambda c: f"''\\{c}",
    lambda c: f"${{zz:-{c}}}",
    lambda c: f"$(echo {c})",
]
NOTHING = ("", "", "", '$""', "$zz", "${zz}", "$(true)", "``", "\\\n", "$1", "${zz:+x}")
AROUND: list[Callable[[str], str]] = [
    lambda c: f"time {c}",
    lambda c: f"time -p {c}",
    lambda c: f"time ({c}\n)",
    lambda c: f'time x={quote(c)}; eval "$x"',
    lambda c: f'time {{ y={quote(c)}; eval "$y"; }}',
    lambda c: f"! {c}",
    lambda c: f"coproc {{ {c}\n}}; wait",
    lambda c: f"eval -- {quote(c)}",
    lambda c: f"bash -c {quote(c)}",
    lambda c: f"bash <<< {quote(c)}",
    lambda c: f". /dev/stdin <<< {quote(c)}",
    lambda c: f"printf -- {quote(c)} | sh",
    lambda c: f"echo {quote(quote(c))} | xargs sh -c",
    lambda c: f"echo {quote(c)} | xargs -d '\\n' sh -c",
    lambda c: f"printf '%s\\0' {quote(c)} | xargs -0 bash -c",
    lambda c: f"echo {quote(f'-c {quote(c)} a')} | xargs -n2 bash",
    lambda c: f"xargs -L1 sh <<< {quote(f'-c {quote(c)}')}",
    lambda c: f"$zz {c}",
    lambda c: f"zz=; $zz {c}",
    lambda c: f'set -- {quote(c)}; eval "$1"',
    lambda c: f"f() {{ {c}\n}}; f",
    lambda c: f'echo "$( {c}\n)"',
    lambda c: f"true \\\n&& {c}",
]


@st.composite
def spelled(draw: st.DrawFn, word: str) -> str:
    """A word as somebody writes it who wants to hide it."""
    parts = [draw(st.sampled_from(CHARACTER))(c) + draw(st.sampled_from(NOTHING)) for c in word]
    return "".join(parts) if draw(st.booleans()) else word


@st.composite
def lines(draw: st.DrawFn) -> str:
    path = draw(spelled(draw(st.sampled_from([".env", "./.env", "notes/../.env"]))))
    note = draw(spelled("CLAUDE.md"))
    plain = [
        f"{draw(spelled('sudo'))} ls",
        f"{draw(spelled('cat'))} {path}",
        f"cat < {path}",
        f"x={path}; cat $x",
        f"echo x > {note}",
        f"cp README.md {note} $zz",
    ]
    line = draw(st.sampled_from(plain))
    for around in draw(st.lists(st.sampled_from(AROUND), max_size=2)):
        line = around(line)
    return line


class Bash:
    """A real one, in a folder where `sudo` is ours."""

    def __init__(self, folder: Path, vault: Path) -> None:
        self.vault, self.called = vault, folder / "called"
        (programs := folder / "programs").mkdir()
        (programs / "sudo").write_text(f"#!/bin/sh\necho >> {self.called}\n")
        (programs / "sudo").chmod(0o755)
        self.variables = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}

    def does_harm(self, line: str) -> bool:
        (self.vault / ".env").write_text("KEY=in-the-secret\n")
        (self.vault / "CLAUDE.md").write_text("Steers agents.\n")
        (self.vault / "README.md").write_text("Read me.\n")
        ran = subprocess.run(
            ["bash", "-c", line], cwd=self.vault, env=self.variables, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=20,
        )  # fmt: skip
        is_steered = (self.vault / "CLAUDE.md").read_text() != "Steers agents.\n"
        return self.called.exists() or b"in-the-secret" in ran.stdout or is_steered


@pytest.fixture
def bash(room: Room, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bash]:
    yield Bash(tmp_path_factory.mktemp("bash"), room.vault)


def test_this_bash_would_do_harm(bash: Bash) -> None:
    for line in ("$'s'u''do ls", "cat < .env", "echo x > CLAUDE.md"):
        assert bash.does_harm(line)
        bash.called.unlink(missing_ok=True)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=lines())
def test_what_may_run_unasked_does_no_harm(room: Room, bash: Bash, line: str) -> None:
    if room.at_full.bash(line)[0] == "allow":
        assert not bash.does_harm(line)
