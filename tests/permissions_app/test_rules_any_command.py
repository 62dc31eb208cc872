"""Whatever a line nests, the dangerous command in it is found, and a harmless one stays harmless."""

import gc
import time
from collections.abc import Callable, Iterator
from shlex import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from permissions_app.rules.ground import ground_of
from permissions_app.rules.shell import Outcome, read_command
from tests.effort import effort
from tests.permissions_app.room import Room

Nesting = Callable[[str], str]

# In each of them Bash runs the inner command, and the reading is certain.
READABLE: list[Nesting] = [
    lambda c: f"ls && {c}",
    lambda c: f"ls; {c}",
    lambda c: f"{c}\nls",
    lambda c: f"ls || {{ {c}\n}}",
    lambda c: f"( {c}\n)",
    lambda c: f"{{ {c}\n}} | cat",
    lambda c: f"ls | ( {c}\n)",
    lambda c: f"sh -c {quote(c)}",
    lambda c: f"bash -euo pipefail -c {quote(c)} name",
    lambda c: f"eval {quote(c)}",
    lambda c: f"env A=1 bash -c {quote(c)}",
    lambda c: f"timeout 5 nice -n 3 sh -c {quote(c)}",
    lambda c: f"find . -name x -exec sh -c {quote(c)} \\;",
    lambda c: f"echo x | xargs sh -c {quote(c)}",
    lambda c: f"bash <<'END{len(c)}'\n{c}\nEND{len(c)}",
    lambda c: f"bash <<< {quote(c)}",
    lambda c: f"printf '%s\\n' {quote(c)} | sh",
    lambda c: f'echo "$( {c}\n)"',
    lambda c: f"echo <( {c}\n)",
    lambda c: f"x=$( {c}\n); echo $x",
    lambda c: f"if true; then {c}\nfi",
    lambda c: f"for i in 1 2; do {c}\ndone",
    lambda c: f"while true; do {c}\nbreak; done",
    lambda c: f"case a in a) {c}\n;; esac",
    lambda c: f"task{len(c)}() {{ {c}\n}}; task{len(c)}",
    lambda c: f'code{len(c)}={quote(c)}; eval "$code{len(c)}"',
    lambda c: f"true # it's {'a quote'}\n{c}",
    lambda c: f"cat > notes/x <<'NOTE{len(c)}'\nit's $( \" `\nNOTE{len(c)}\n{c}",
    lambda c: f"echo 'it' \"'\" \\' ; {c}",
]
HARMLESS = [
    "ls",
    "git commit -m 'no sudo; rm -rf /'",
    "echo \"it's (a) {b}\" '$(sudo)'",
    "rm -rf ./build",
    "grep -rn 'rm -rf /' notes 2>/dev/null",
    "echo sudo rm -rf /",
]
DANGEROUS = ["sudo ls", "rm -rf /", "'su'do ls", "dd if=x of=/dev/sda", "chmod -R 777 /", ":(){ :|:& };:"]

NESTINGS = st.lists(st.sampled_from(READABLE), max_size=3)
CHECKED = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def outcome(room: Room, command: str) -> Outcome:
    return read_command(command, ground_of(room.setting), behind_wall=False).outcome


def nested(command: str, nestings: list[Nesting]) -> str:
    for nesting in nestings:
        command = nesting(command)
    return command


@CHECKED
@given(command=st.sampled_from(DANGEROUS), nestings=NESTINGS)
def test_a_dangerous_command_is_found_wherever_it_is_nested(
    room: Room, command: str, nestings: list[Nesting]
) -> None:
    assert outcome(room, nested(command, nestings)) is Outcome.DANGEROUS


@CHECKED
@given(command=st.sampled_from(HARMLESS), nestings=NESTINGS)
def test_a_harmless_command_is_harmless_however_it_is_nested(
    room: Room, command: str, nestings: list[Nesting]
) -> None:
    assert outcome(room, nested(command, nestings)) is Outcome.WORDS


@CHECKED
@given(
    text=st.text(st.sampled_from("'\"`$(){}[]<>|&;\\\n #=*~!ab-/."), max_size=60),
    command=st.sampled_from(HARMLESS),
)
def test_any_text_is_read_and_quoted_text_is_never_a_command(room: Room, text: str, command: str) -> None:
    assert isinstance(outcome(room, text), Outcome)
    assert outcome(room, f"{command} >> notes/x; echo {quote(text + ' sudo ls')}") < Outcome.SECRET


@pytest.mark.parametrize(
    "unit",
    [
        *("(", "((", "$(", "$((", "${", "{ ", "[[ ", "`", "'", '"', '"$(', "<(", "a=(", "if ", "case x in "),
        *(
            "<<E ",
            "<<E\n",
            "a|",
            "a|b&",
            "a&&",
            "!",
            "\\",
            "\\\n",
            "$",
            "{a,",
            "{a,b}",
            "[",
            "f(){ ",
            "<",
            "a;",
        ),
        *("while ", "${a:-", "[[ a =~ (", "$'", "*(", "é", "*", "/*", "../", "a=b;", "for i in ", "xargs "),
        *("env ", "$a ", "sh -c '", "~", "a=$a$a;", "x=$x*;", "echo $x|", "'a' ", "cd ..;", "rm -rf * ;"),
        *("cd a;", "cd a||", "while :;do cd a;done;", "f(){ cd a;};f;", "for x in */;do cd $x;done;", "~+ "),
        *("if a;then ", "case a in a)", "pushd a;", "x[0]=a;", "read x<<<a;", "${x%a}", "trap a DEBUG;"),
    ],
)
def test_a_long_line_of_any_kind_is_read_in_bounded_time(room: Room, unit: str) -> None:
    moves = "for x in {1..20};do cd $x;cd a;cd b;"  # so many directories that each counts many times
    texts = [(unit * 20_000)[:20_000], unit * 100, "a=1;b=2;" + unit * 40, (moves + unit * 20_000)[:20_000]]
    for text in texts:
        assert effort(lambda text=text: outcome(room, text)) < 250  # type: ignore[misc]


# What reads words of a command in ways of its own: scripts, patterns, options, paths.
WORDS = [
    *("sed '%s' x", "sed 's%s' x", "sed -e '%sx' y", "awk '%s' x", "awk '/%s' x", "awk '{print > \"%s' x"),
    *("rm -%s! x", "rm -r /%s/x", "bash -%s! x", "tar -%s x", "xargs -%s ls", "timeout -%s 5 ls"),
    *("git config %s", "git commit -m%s", "git -c %s=x log", "git remote add x %s", "git grep -%s x"),
    *("curl -F '%s' x", "curl -%s x", "ssh -o '%s' h", "rsync -e '%s' a b", "vim '+%s' x", "less '+%s' x"),
    *("sqlite3 x '%s'", "psql -c '%s'", "mysql -e '%s'", "node -r '%s' x", "php -d '%s' x", "jq '%s' x"),
    *("grep %s x", "find . %s -delete", "cp %s .", "python -%s x", "PAGER='%s' x", "unheard --a='%s'"),
]
UNITS = ["s,", "a=", "r", "*a", "[", "[[:", "/*", "-e ", "(", '"', "x\\", "-o -name x ", "~", "a.b"]


@pytest.fixture
def without_collection() -> Iterator[None]:
    """What it finds to do depends on the tests before."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collection")
@pytest.mark.parametrize("words", WORDS)
def test_ten_times_as_long_a_word_takes_no_more_than_forty_times_as_long(room: Room, words: str) -> None:
    def cost(unit: str, length: int) -> float:
        text = words.replace("%s", (unit * length)[:length])
        start = time.thread_time()
        outcome(room, text)
        return time.thread_time() - start

    for unit in UNITS:
        short, long = max(cost(unit, 1_900), 0.01), cost(unit, 19_000)
        assert long <= 40 * short, unit  # with its square it would be a hundred
