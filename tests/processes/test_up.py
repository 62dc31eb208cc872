"""`manage.py up`: the real supervisor and Valkey with stand-ins as children; at the end, the real thing."""

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.processes.running import REAL, ROOT, RunningUp, StartUp

pytestmark = pytest.mark.processes

# Runs `up` with the children that argv[1] says: {"prepare": code, "others": {name: code}}.
DRIVER = """
import json, sys
from dataclasses import replace
from parachute_site import env, up
from parachute_site.up import plan

def make_plan(environment):
    def child(name, code):
        variables = env.for_children(environment, PORT=str(environment.port))
        return plan.Child(name, (sys.executable, "-c", code), variables)
    asked = json.loads(sys.argv[1])
    others = tuple(child(name, code) for name, code in asked["others"].items())
    return replace(plan.make(environment), prepare=child("prepare", asked["prepare"]), others=others)

sys.exit(up.main(sys.argv[2:], make_plan))
"""

PREPARE = """print('{"signIn": "/signin/secret-link", "vault": "/a/vault", "model": null}')"""

WEB = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"{}")
print("listening")
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""

# Starts some that outlive it, each in its own way.
WORKER = """
import os, signal, subprocess
sleep = ["sleep", "1000"]
plain = subprocess.Popen(sleep)
session = subprocess.Popen(sleep, start_new_session=True)
more = "sleep 1000 & setsid sleep 1000 & env -i sleep 1000 & echo started; wait"
shell = subprocess.Popen(["sh", "-c", more])
signal.pause()
"""

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("I stay")
while True: signal.pause()
"""

SLOW = """
import signal
signal.signal(signal.SIGTERM, lambda *_: None)
print("I need a moment")
signal.pause()
print("done")
"""


def stand_ins(prepare: str = PREPARE, **others: str) -> tuple[str, ...]:
    return (sys.executable, "-c", DRIVER, json.dumps({"prepare": prepare, "others": others}))


@pytest.fixture(autouse=True)
def _stand_ins_find_our_packages(variables: dict[str, str]) -> None:
    variables["PYTHONPATH"] = str(ROOT)


def refusal(variables: dict[str, str], folder: Path, *, argv: tuple[str, ...] = REAL) -> str:
    """The one line with which `up` refuses to start."""
    ended = subprocess.run(argv, cwd=folder, env=variables, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2, ended
    (line,) = ended.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PORT", "http", "PORT is 'http'"),
        ("PARACHUTE_SANDBOX", "chroot", "PARACHUTE_SANDBOX is 'chroot'"),
        ("PARACHUTE_LIMIT_PROCESSES", "many", "PARACHUTE_LIMIT_PROCESSES is 'many'"),
        ("HOST", "0.0.0.0", "--public"),
        ("HOST", "203.0.113.7", "ALLOWED_HOSTS"),
        ("VAULT_PATH", "/nowhere/at/all", "does not exist"),
        ("VAULT_PATH", "/etc/hostname", "is not a folder"),
        ("VAULT_PATH", "/proc", "cannot be written"),
        ("PARACHUTE_HOME", "/proc/home", "cannot be used"),
        ("PARACHUTE_HOME", "/etc/hostname/home", "cannot be used"),
    ],
)
def test_a_value_that_cannot_be_meant_is_one_line(
    variable: str, value: str, expected: str, variables: dict[str, str], tmp_path: Path
) -> None:
    assert expected in refusal(variables | {variable: value}, tmp_path)


def test_a_public_host_needs_its_names_too(variables: dict[str, str], tmp_path: Path) -> None:
    assert "ALLOWED_HOSTS" in refusal(variables | {"HOST": "0.0.0.0"}, tmp_path, argv=(*REAL, "--public"))


def test_an_unknown_option_is_one_line(variables: dict[str, str], tmp_path: Path) -> None:
    assert "usage" in refusal(variables, tmp_path, argv=(*REAL, "--verbose"))


def test_a_bad_value_is_one_line_in_any_command(variables: dict[str, str], tmp_path: Path) -> None:
    argv = (sys.executable, str(ROOT / "manage.py"), "check")
    assert "PORT is '0'" in refusal(variables | {"PORT": "0"}, tmp_path, argv=argv)


def test_a_port_in_use_is_one_line(variables: dict[str, str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", int(variables["PORT"]))):
        assert f"Port {variables['PORT']} on 127.0.0.1 is in use" in refusal(variables, tmp_path)


def test_an_address_of_another_machine_is_one_line(variables: dict[str, str], tmp_path: Path) -> None:
    public = variables | {"HOST": "203.0.113.7", "ALLOWED_HOSTS": "example.org"}
    assert "address of this machine" in refusal(public, tmp_path, argv=(*REAL, "--public"))


def test_what_prepare_refuses_is_what_up_says(variables: dict[str, str], tmp_path: Path) -> None:
    prepare = "import sys; print('The database cannot be reached.', file=sys.stderr); sys.exit(2)"
    assert refusal(variables, tmp_path, argv=stand_ins(prepare)) == "The database cannot be reached."


def test_a_prepare_that_crashes_is_told_where_to_look(variables: dict[str, str], tmp_path: Path) -> None:
    line = refusal(variables, tmp_path, argv=stand_ins("1 / 0"))
    assert "exit code 1" in line
    assert "ZeroDivisionError" in (tmp_path / "home/logs/prepare.log").read_text()


def test_a_home_in_use_is_one_line(start_up: StartUp, variables: dict[str, str], tmp_path: Path) -> None:
    first = start_up(argv=stand_ins(web=WEB))
    assert f"another `up` (process {first.pid})" in refusal(variables, tmp_path)
    first.kill("web", 0)  # is still there


def test_the_home_is_closed_to_others(start_up: StartUp, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    up = start_up(argv=stand_ins(web=WEB))
    assert {stat.S_IMODE(path.stat().st_mode) for path in (up.home, up.environment.run)} == {0o700}
    private = [
        up.home / "valkey.conf",
        up.environment.valkey_password_file,
        *up.environment.log_folder.iterdir(),
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_a_folder_for_sockets_that_others_may_enter_is_refused(
    variables: dict[str, str], tmp_path: Path
) -> None:
    run = tmp_path / "h/run"
    run.mkdir(parents=True)
    run.chmod(0o777)
    variables["PARACHUTE_HOME"] = str(run.parent)
    assert "closed to others" in refusal(variables, tmp_path)


def test_the_sign_in_link_is_printed_and_in_no_file(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB, turns=WORKER))
    assert up.sign_in == f"{up.address}/signin/secret-link"
    up.stop()
    files = [path for path in up.home.rglob("*") if path.is_file()]
    assert "listening" in (up.home / "logs/web.log").read_text()
    assert [path for path in files if b"secret-link" in path.read_bytes()] == []


def test_lines_carry_the_time_and_the_name(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB))
    assert up.wait_log(r"^\d\d:\d\d:\d\d web        \| listening$")


@pytest.mark.parametrize(("user", "times"), [(0, 1), (1000, 0)], ids=["root", "plain"])
def test_it_says_that_it_runs_as_root(user: int, times: int, start_up: StartUp) -> None:
    as_user = ("unshare", "--user", f"--map-user={user}")  # whoever runs the tests is that user in there
    up = start_up(argv=(*as_user, *stand_ins(web=WEB)))
    assert up.text.count("running as root") == times


def test_a_log_file_is_begun_anew_when_it_is_full(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB, turns="for n in range(45_000): print('x' * 1000)"))
    up.wait_log("turns ended with exit code 0")
    up.stop()
    sizes = {path.name: path.stat().st_size for path in (up.home / "logs").glob("turns.log*")}
    assert sorted(sizes) == ["turns.log", "turns.log.1", "turns.log.2", "turns.log.3"]
    assert max(sizes.values()) <= 10 * 1024 * 1024


def test_a_line_without_an_end_is_cut_and_cannot_move_the_cursor(start_up: StartUp) -> None:
    endless = "import signal; print('\\x1b[2J' + 'x' * 1_000_000, end='', flush=True); signal.pause()"
    up = start_up(argv=stand_ins(web=WEB, turns=endless))
    assert up.wait_log(r"turns      \| \?\[2Jxxx")


@pytest.mark.parametrize("name", ["web", "valkey"])
def test_a_child_that_dies_is_started_again(name: str, start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB))
    before = up.pid_of(name)
    up.kill(name)
    up.wait_log(f"{name} was ended by SIGKILL; starting it again in 0.5 s")
    up.wait_log(f"{name} started", times=2)
    assert up.pid_of(name) != before


def test_one_that_cannot_start_waits_longer_each_time(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB, turns="raise SystemExit(3)"))
    for wait in ("0.5", "1", "2"):
        up.wait_log(f"turns ended with exit code 3; starting it again in {wait} s")


def test_what_a_dead_worker_left_is_gone_before_the_next_one_starts(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB, turns=WORKER))
    up.wait_log(r"\| started$")
    left = psutil.Process(up.pid_of("turns")).children(recursive=True)
    assert [one.name() for one in left].count("sleep") == 5
    up.kill("turns")
    up.wait_log("starting it again")
    assert [one for one in left if one.is_running()] == []
    up.kill("web", 0)  # the others were not meant


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(how: signal.Signals, start_up: StartUp) -> None:
    with hearing_sighup(is_heard=True):
        up = start_up(argv=stand_ins(web=WEB, turns=WORKER))
    up.wait_log(r"\| started$")
    all_of_it = psutil.Process(up.pid).children(recursive=True)
    assert len(all_of_it) >= 9
    assert up.stop(how) < 3
    assert [one for one in all_of_it if one.is_running()] == []


def test_started_with_nohup_it_outlives_its_terminal(start_up: StartUp) -> None:
    with hearing_sighup(is_heard=False):
        up = start_up(argv=stand_ins(web=WEB))
    up.kill("up", signal.SIGHUP)
    assert up.stop() < 5
    assert "stopping (SIGTERM)" in up.text
    assert "SIGHUP" not in up.text


@contextmanager
def hearing_sighup(*, is_heard: bool) -> Iterator[None]:
    """Whoever ignores it hands that on to what they start, as a test run does that `nohup` started. A handler
    of one's own is not handed on."""
    before = signal.signal(signal.SIGHUP, (lambda *_: None) if is_heard else signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_that_does_not_want_to_stop_is_killed_in_time(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB, turns=STUBBORN))
    up.wait_log("I stay")
    assert 5 < up.stop() < 10
    assert "turns did not stop within 6 s and is killed" in up.text


def test_the_same_signal_twice_at_once_is_one(start_up: StartUp) -> None:
    """`make` passes SIGTERM on to what its process group has got already."""
    up = start_up(argv=stand_ins(web=WEB, turns=SLOW))
    up.wait_log("I need a moment")
    up.kill("up", signal.SIGTERM)
    up.stop()
    assert "| done" in up.text


def test_a_second_signal_kills_at_once(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB, turns=STUBBORN))
    up.wait_log("I stay")
    up.kill("up", signal.SIGINT)
    up.wait_log("stopping")
    while not up.ended_within(0.3):  # within a second it counts as the same signal
        up.kill("up", signal.SIGINT)
    assert "killing everything (SIGINT again)" in up.text


def test_a_signal_in_the_middle_of_starting_ends_it(start_up: StartUp) -> None:
    up = start_up(
        argv=stand_ins("import sys, signal; print('x', file=sys.stderr); signal.pause()"), wait=False
    )
    up.wait_log("valkey started")
    assert up.stop() < 5


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "full"])
def test_nobody_reading_its_output_holds_nothing_up(
    closed: bool, variables: dict[str, str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "said")
    says_so = f"open({str(tmp_path / 'said')!r}, 'w').write('flooded')"
    flood = f"import signal\nfor n in range(5000): print('x' * 100)\n{says_so}\nsignal.pause()"
    argv = stand_ins(web=WEB, turns=flood)
    said = os.open(tmp_path / "said", os.O_RDWR)
    with subprocess.Popen(argv, cwd=tmp_path, env=variables, stdout=subprocess.PIPE) as up:
        assert up.stdout
        if closed:
            up.stdout.close()
        said_so = select.select([said], [], [], 30)[0]
        up.terminate()
        try:
            assert up.wait(10) == 0
        finally:
            up.kill()
    os.close(said)
    assert said_so


def test_what_a_killed_up_left_is_ended_by_the_next(start_up: StartUp) -> None:
    first = start_up(argv=stand_ins(web=WEB, turns=WORKER))
    first.wait_log(r"\| started$")
    first.kill("up")
    first.wait_exit()
    left = first.left()
    assert len(left) >= 7
    second = start_up(argv=stand_ins(web=WEB))
    assert second.wait_log("ended what an earlier `up` left behind")
    assert left.keys() & second.left().keys() == set()


def test_whoever_started_up_is_spared_by_the_sweep(start_up: StartUp) -> None:
    first = start_up(argv=stand_ins(web=WEB))
    owner = first.environment.owner
    first.stop()
    shell = ("sh", "-c", 'echo "I am $$"; "$@"; echo still here', "sh", *stand_ins(web=WEB))
    second = start_up({"PARACHUTE_OWNER": owner}, argv=shell)
    os.kill(psutil.Process(second.pid).children()[0].pid, signal.SIGTERM)
    assert second.wait_exit() == 0
    assert "still here" in second.text


def test_up_is_small(start_up: StartUp) -> None:
    up = start_up(argv=stand_ins(web=WEB))
    assert psutil.Process(up.pid).memory_full_info().pss < 24 * 1024 * 1024


def test_the_real_thing_starts_tells_how_to_sign_in_comes_back_and_stops(running_up: RunningUp) -> None:
    assert running_up.sign_in.startswith(f"{running_up.address}/signin/")
    link = running_up.sign_in.rpartition("/")[2].encode()
    assert [path for path in (running_up.home / "logs").iterdir() if link in path.read_bytes()] == []
    for name in ("valkey", "web", "turns", "background", "bots", "model"):
        running_up.kill(name)
        running_up.wait_log(f"{name} started", times=2)
        running_up.wait_health()
    assert running_up.stop() < 10


def test_a_wrong_database_is_one_line(variables: dict[str, str], tmp_path: Path) -> None:
    wrong = variables | {"DATABASE_URL": "postgresql://nobody:wrong@127.0.0.1:1/none"}
    assert "DATABASE_URL" in refusal(wrong, tmp_path)
