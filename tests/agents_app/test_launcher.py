"""The launcher: the file it is, the orders it takes, and how what it started ends."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.launcher import MARK, end_everything, executable, marked, new_mark, orders_for
from agents_app.sandboxes.base import Group, Launch

PATIENCE = 20


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def launch(folder: Path, *argv: str, **environment: str) -> Launch:
    return Launch(argv, {"PATH": "/usr/bin:/bin", **environment}, directory=folder, vault=folder)


def run(file: Path, given: Launch, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [file, *arguments], env=orders_for(given), capture_output=True, text=True, timeout=PATIENCE
    )


def start(stack: ExitStack, folder: Path, mark: str, script: str) -> subprocess.Popen[bytes]:
    """A process with this mark, once its script has said that it is ready."""
    given = launch(folder, "/bin/sh", "-c", script, **{MARK: mark})
    file = executable(folder / "launcher")
    process = stack.enter_context(
        subprocess.Popen([file], env=orders_for(given), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    stack.callback(process.kill)
    stack.callback(end_everything, mark)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    return process


def test_the_file_is_made_once_in_a_folder_of_the_owners_alone(tmp_path: Path) -> None:
    file = executable(tmp_path / "new" / "launcher")
    made = file.stat()
    assert executable(file.parent).stat().st_ino == made.st_ino
    assert stat.S_IMODE(file.parent.stat().st_mode) == stat.S_IMODE(made.st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == ["launch"]


def test_a_changed_file_is_made_anew(tmp_path: Path) -> None:
    executable(tmp_path).write_text("#!/bin/false\n")
    assert run(executable(tmp_path), launch(tmp_path, "/bin/echo"), "hi").stdout == "hi\n"


def test_a_path_to_python_with_spaces_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "it's my own" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    file = executable(tmp_path / "launcher")
    assert file.read_text().startswith("#!/bin/sh\n")
    assert run(file, launch(tmp_path, "/usr/bin/printf", "%s|"), "a b", '"$x"').stdout == 'a b|"$x"|'


def test_orders_of_any_length_arrive(tmp_path: Path) -> None:
    many = [f"argument {number}" for number in range(20_000)]
    given = launch(
        tmp_path, "/bin/sh", "-c", 'echo "$# $LAST ${#LONG}"', "sh", *many, LONG="x" * 120_000, LAST="é"
    )
    done = run(executable(tmp_path), given, "one more")
    assert (done.stderr, done.stdout) == ("", "20001 é 120000\n")


def test_bytes_that_are_no_text_arrive_as_they_are(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    (tmp_path / odd).mkdir()
    given = launch(tmp_path / odd, "/bin/pwd")
    done = subprocess.run(
        [executable(tmp_path)], env=orders_for(given), capture_output=True, timeout=PATIENCE
    )
    assert done.stdout == os.fsencode(tmp_path) + b"/caf\xe9\n"


def test_a_program_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    done = run(executable(tmp_path), launch(tmp_path, "/nowhere/claude"))
    assert (done.returncode, done.stderr) == (1, "/nowhere/claude: No such file or directory\n")


def test_nothing_that_python_ignores_stays_ignored(tmp_path: Path) -> None:
    done = run(executable(tmp_path), launch(tmp_path, "/bin/grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"))
    kept_by_the_c_library = 1 << 31 | 1 << 32  # signals 32 and 33, which no program can set
    masks = [int(line.split()[1], 16) & ~kept_by_the_c_library for line in done.stdout.splitlines()]
    assert masks == [0, 0]


@pytest.mark.parametrize("joined_by", ["tasks", "cgroup.procs"])
def test_it_joins_each_of_its_groups_before_it_becomes_its_program(tmp_path: Path, joined_by: str) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "cgroup.procs").touch()
    (group / joined_by).touch()
    given = launch(tmp_path, "/bin/cat", str(group / joined_by), str(group / "pids.max"))
    done = run(executable(tmp_path / "launcher"), replace(given, groups=(Group(group, {"pids.max": "7"}),)))
    assert (done.stdout, done.stderr) == ("07", "")


def test_it_is_the_first_of_its_own_session(tmp_path: Path) -> None:
    done = run(executable(tmp_path), launch(tmp_path, "/bin/cut", "-d ", "-f1,5,6", "/proc/self/stat"))
    assert len(set(done.stdout.split())) == 1


def test_no_open_file_of_the_worker_comes_along(tmp_path: Path) -> None:
    given = launch(tmp_path, "/bin/ls", "/proc/self/fd")
    with (tmp_path / "secret").open("w") as secret:
        done = subprocess.run(
            [executable(tmp_path)],
            env=orders_for(given),
            pass_fds=[secret.fileno()],
            capture_output=True,
            timeout=PATIENCE,
        )
    assert done.stdout.split() == [b"0", b"1", b"2", b"3"]  # the last is the listing itself


@pytest.mark.parametrize(
    "script",
    [
        "setsid sleep 600 & sleep 600 & echo ready; read end",
        "(setsid sh -c 'sleep 600 & exec sleep 600' &) ; sleep 600 & echo ready; read end",
        "env -i sleep 600 & (env -i sleep 600 &) ; echo ready; read end",
        "setsid env -i sh -c 'sleep 600 & echo ready; wait' & read end",
    ],
)
def test_everything_of_a_launch_ends_and_nothing_else(
    tmp_path: Path, started: ExitStack, script: str
) -> None:
    mine, other = new_mark(), new_mark()
    first = start(started, tmp_path, mine, script)
    neighbour = start(started, tmp_path, other, "echo ready; read end")
    assert end_everything(mine) >= 2
    assert marked(mine) == []
    assert first.wait(PATIENCE) == -9
    assert [each.pid for each in marked(other)] == [neighbour.pid]
    assert end_everything(mine) == 0


def test_what_outlived_its_first_process_ends_too(tmp_path: Path, started: ExitStack) -> None:
    mark = new_mark()
    first = start(started, tmp_path, mark, "setsid sleep 600 & echo ready; read end")
    first.kill()
    first.wait(PATIENCE)
    assert end_everything(mark) == 1


def test_a_launcher_that_has_not_become_its_program_ends_too(tmp_path: Path, started: ExitStack) -> None:
    mark = new_mark()
    waits = [sys.executable, "-c", "print('ready', flush=True); input()"]
    given = launch(tmp_path, "/bin/true", **{MARK: mark})
    process = started.enter_context(
        subprocess.Popen(waits, env=orders_for(given), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    )
    started.callback(process.kill)
    assert process.stdout
    process.stdout.readline()
    assert end_everything(mark) == 1  # and not this test, whose session it still shares


def test_a_mark_that_would_match_strangers_is_refused() -> None:
    with pytest.raises(ValueError, match="by chance"):
        end_everything("")


def test_of_an_environment_no_more_is_read_than_an_honest_one_has(started: ExitStack) -> None:
    """Any process can give out all of its memory as its environment."""
    mark = new_mark()
    environment = {MARK: mark, **{f"LONG_{number}": "x" * 100_000 for number in range(6)}}
    process = started.enter_context(subprocess.Popen(["/bin/sleep", "20"], env=environment))
    started.callback(process.kill)
    (found,) = marked(mark)
    assert len(found.environment) <= 400_000


def test_a_launcher_with_long_orders_is_found_all_the_same(started: ExitStack, tmp_path: Path) -> None:
    """Before it is its program, too: a large vault has many mounts."""
    mark = new_mark()
    given = launch(tmp_path, "/bin/true", *["x" * 99] * 8_900, **{MARK: mark})
    process = started.enter_context(subprocess.Popen(["/bin/sleep", "20"], env=orders_for(given)))
    started.callback(process.kill)
    assert [each.pid for each in marked(mark)] == [process.pid]
