"""What every sandbox promises, and what a wall promises besides. Each runs through the real launcher."""

import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, StreamEvent
from claude_agent_sdk import __file__ as sdk_file

from agents_app.launcher import MARK, end_everything, executable, marked, new_mark, orders_for
from agents_app.model.demo.wire import say
from agents_app.model.door import Door
from agents_app.model.endpoint import ModelEndpoint
from agents_app.sandboxes import ENGINES, bubblewrap
from agents_app.sandboxes.base import CannotConfine, Launch, Sandbox
from agents_app.sandboxes.bubblewrap import Bubblewrap
from agents_app.sandboxes.recorded import Recorded
from tests.contracts.conftest import Sandboxes
from tests.contracts.runs import CANARY, PATIENCE, Runs
from tests.contracts.stage import sandbox_that_runs
from tests.depth import few_of
from tests.scripted_model import ScriptedModel

WALLS = ("bubblewrap", "docker", "podman")
ALL = ("none", "recorded", *WALLS)
CLI = Path(sdk_file).parent / "_bundled" / "claude"


@pytest.fixture(params=few_of(ALL, "none", "recorded", "bubblewrap"))
def sandbox(request: pytest.FixtureRequest, sandboxes: Sandboxes) -> Sandbox:
    return sandboxes(request.param)


@pytest.fixture(params=few_of(WALLS, "bubblewrap"))
def wall(request: pytest.FixtureRequest, sandboxes: Sandboxes) -> Sandbox:
    return sandboxes(request.param)


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: that of a unix socket ends at 107 bytes."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name).resolve()


@pytest.fixture
def vault(place: Path) -> Path:
    (place / "vault").mkdir()
    return place / "vault"


@pytest.fixture
def home(place: Path) -> Path:
    """$PARACHUTE_HOME, with a secret."""
    (place / "home" / "claude" / "ours").mkdir(parents=True)
    (place / "home" / "secret").write_text("SECRET")
    return place / "home"


@pytest.fixture
def inside(sandbox: Sandbox, vault: Path, place: Path) -> Runs:
    return Runs(sandbox, vault, executable(place / "launcher"))


@pytest.fixture
def walled(wall: Sandbox, vault: Path, place: Path) -> Runs:
    return Runs(wall, vault, executable(place / "launcher"))


# What every sandbox promises.


def test_streams_and_exit_code_are_the_programs_own(inside: Runs) -> None:
    done = inside.run(inside.launch("/bin/sh", "-c", "cat; echo oh >&2; exit 7"), given="hello")
    assert (done.stdout, done.stderr, done.returncode) == ("hello", "oh\n", 7)


def test_arguments_arrive_as_they_are(inside: Runs) -> None:
    done = inside.run(inside.launch("/bin/sh", "-c", 'printf "%s|" "$@"', "sh"), "a b", "--x", "", "$y")
    assert done.stdout == "a b|--x||$y|"


def test_the_environment_is_what_was_ordered_and_nothing_else(inside: Runs) -> None:
    given = {"PATH": "/usr/bin:/bin", "HOME": str(inside.vault), "TOKEN": 'a "b"\nc='}
    done = inside.run(inside.launch("/usr/bin/env", "-0", environment=given))
    found = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)
    brought = {"HOME": "/home/agent"} if inside.sandbox.is_wall else {}
    brought |= bubblewrap.certificates() if inside.sandbox.name == "bubblewrap" else {}
    assert found == {**given, **brought, "PWD": str(inside.vault)}


def test_programs_know_the_systems_certificates(place: Path, vault: Path) -> None:
    """Their own have a secret's name, `cacert.pem`, and are hidden where they lie in the vault."""
    if not (named := bubblewrap.certificates()):
        pytest.skip("NOT TESTED: this system's certificates are not known.")
    runs = Runs(sandbox_that_runs("bubblewrap"), vault, executable(place / "launcher"))
    done = runs.sh(
        'grep -c BEGIN "$REQUESTS_CA_BUNDLE"; [ "$SSL_CERT_FILE" = "$REQUESTS_CA_BUNDLE" ] && echo same'
    )
    assert done.stdout.split() == [str(Path(named["SSL_CERT_FILE"]).read_text().count("BEGIN")), "same"]
    other = {"PATH": "/usr/bin:/bin", "SSL_CERT_FILE": "/mine.pem"}
    assert runs.sh('echo "$SSL_CERT_FILE"', environment=other).stdout == "/mine.pem\n"


def test_it_starts_in_its_directory(inside: Runs) -> None:
    (inside.vault / "deep" / "down").mkdir(parents=True)
    assert inside.sh("pwd -P", directory=inside.vault / "deep/down").stdout == f"{inside.vault}/deep/down\n"


def test_what_it_writes_into_the_vault_is_on_the_disk(inside: Runs) -> None:
    inside.sh("echo kept > note.md; mkdir folder; mv note.md folder; chmod 640 folder/note.md")
    assert (inside.vault / "folder/note.md").read_text() == "kept\n"
    assert (inside.vault / "folder/note.md").stat().st_uid == os.getuid()


def test_a_vault_that_is_named_by_a_link_works_by_both_names(inside: Runs, place: Path) -> None:
    (place / "links").mkdir()
    link = place / "links" / "vault"
    link.symlink_to(inside.vault)
    done = inside.sh(f"pwd -P; echo 1 > {link}/a; echo 2 > {inside.vault}/b", vault=link, directory=link)
    assert done.stdout == f"{inside.vault}\n"
    assert {each.name for each in inside.vault.iterdir()} == {"a", "b"}


@pytest.mark.parametrize(
    "below", [each for each in ("/var/tmp", "/usr/local", "/srv") if os.access(each, os.W_OK)]
)
def test_a_vault_may_lie_below_any_folder(inside: Runs, below: str) -> None:
    with tempfile.TemporaryDirectory(dir=below) as name:
        done = inside.sh("pwd -P; echo 1 > here", vault=Path(name), directory=Path(name))
        assert (done.stderr, done.stdout) == ("", f"{name}\n")
        assert (Path(name) / "here").exists()


def test_it_can_run_what_a_shell_needs(inside: Runs) -> None:
    done = inside.sh("yes | head -1; mktemp; bash -c 'cat <(echo sub)'; ls -l / >/dev/null; date +%Z; id -un")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("how", ["first process", "all of it"])
def test_all_that_it_started_ends_with_it(inside: Runs, how: str) -> None:
    mark = new_mark()
    # Who leaves session, parent and environment at once escapes where there is no wall.
    worst = "setsid" if inside.sandbox.is_wall else ""
    script = f"setsid sleep 600 & ({worst} env -i sleep 600 &) ; sleep 600 & echo ready; read end"
    launch = inside.launch("/bin/sh", "-c", script, environment={"PATH": "/usr/bin:/bin", MARK: mark})
    with inside.started(launch) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        handles = [os.pidfd_open(each.pid) for each in marked(mark)]
        assert len(handles) >= 3
        if inside.sandbox.is_wall and how == "first process":
            process.kill()
        else:
            assert end_everything(mark) >= 1
        assert all(has_ended(handle) for handle in handles)
        process.wait(PATIENCE)


def has_ended(handle: int) -> bool:
    with os.fdopen(handle):
        return bool(select.select([handle], [], [], PATIENCE)[0])


def test_the_recorded_one_keeps_what_it_was_given(place: Path) -> None:
    sandbox = Recorded()
    launch = Launch(("true",), {}, place, place)
    assert sandbox.confine(launch) is launch
    assert sandbox.launches == [launch]


# What a wall promises besides.


def test_outside_of_the_vault_nothing_is_written(walled: Runs, place: Path) -> None:
    system = "/ /usr /usr/bin /etc /home /run /var /proc"
    done = walled.sh(f"for at in {system}; do touch $at/planted 2>/dev/null && echo $at; done")
    assert done.stdout == ""
    # These can be written, and are the wall's own memory.
    own = ("/tmp", "/var/tmp", "/home/agent", "/dev/shm", str(place))
    walled.sh(f"for at in {' '.join(own)}; do echo 1 > $at/planted || exit 1; done").check_returncode()
    assert not [at for at in own if (Path(at) / "planted").exists()]


def test_outside_of_what_was_named_nothing_can_be_read(walled: Runs, home: Path, vault: Path) -> None:
    (vault / "way-out").symlink_to(home / "secret")
    system = () if walled.sandbox.name in ENGINES else (Path("/etc/shadow"), Path("/etc/ssl/private"))
    hidden = (home / "secret", home, vault / "way-out", *system)  # a container has an /etc of its own
    assert walled.lets_through(*(f"test -e {path}" for path in hidden)) == []
    if walled.sandbox.name in ENGINES:
        return
    assert walled.sh(
        "ls -A /root /home /srv /opt /mnt /run /boot 2>/dev/null | grep -v :"
    ).stdout.split() == ["agent"]


def test_what_is_named_below_the_home_is_all_of_it_that_shows(walled: Runs, home: Path) -> None:
    ours = home / "claude" / "ours"
    (ours.parent / "theirs").mkdir()
    done = walled.sh(f"echo 1 > {ours}/mine; ls {home} {home}/claude", writable=(ours,))
    assert done.stdout.split() == [f"{home}:", "claude", f"{home}/claude:", "ours"]
    assert (ours / "mine").read_text() == "1\n"


def test_a_home_inside_the_vault_is_masked_but_for_what_is_named(
    walled: Runs, place: Path, home: Path
) -> None:
    ours = home / "claude" / "ours"
    more = {"vault": place, "directory": place, "writable": (ours,), "masked": (home,)}
    done = walled.sh(f"cat home/secret; echo 1 > {ours}/mine; touch home/planted; find home", **more)
    assert done.stdout.split() == ["home", "home/claude", "home/claude/ours", "home/claude/ours/mine"]
    assert sorted(each.name for each in home.iterdir()) == ["claude", "secret"]


def test_masked_files_and_folders_cannot_be_read_or_replaced(walled: Runs, vault: Path) -> None:
    (vault / ".env").write_text("SECRET")
    (vault / ".ssh").mkdir()
    (vault / ".ssh/key").write_text("SECRET")
    (vault / "link").symlink_to(".env")
    masked = tuple(vault / name for name in ("link", ".ssh", "not-there"))
    tries = (
        "grep . .env",
        "grep . link",
        "cat .ssh/key",
        "echo x > .env",
        "rm .env",
        "mv .env b",
        "touch .ssh/b",
    )
    more = ("rm -r .ssh", "mv .ssh c", "umount .env", "umount .ssh", "unshare -Urm umount .env")
    assert walled.lets_through(*tries, *more, masked=masked) == []
    assert walled.sh("grep -r SECRET . 2>/dev/null", masked=masked).stdout == ""
    assert (vault / ".env").read_text() == (vault / ".ssh/key").read_text() == "SECRET"


def test_a_masked_folder_in_the_system_is_hidden(walled: Runs) -> None:
    assert walled.sh("ls -A /usr/share").stdout
    assert walled.sh("ls -A /usr/share", masked=(Path("/usr/share"),)).stdout == ""


def test_readable_is_read_only_also_inside_the_vault(walled: Runs, vault: Path) -> None:
    (vault / ".claude").mkdir()
    (vault / ".claude/settings.json").write_text("{}")
    readable = {"readable": (vault / ".claude",)}
    assert walled.sh("cat .claude/settings.json", **readable).stdout == "{}"
    remounts = (f"{unshared} mount -o remount,bind,rw {vault}/.claude" for unshared in ("", "unshare -Urm"))
    tries = ("echo x > .claude/settings.json", "rm -r .claude", "mv .claude d", *remounts)
    planting = (f"{script} && echo x > .claude/planted" for script in tries)
    assert walled.lets_through(*planting, **readable) == []
    assert [each.name for each in (vault / ".claude").iterdir()] == ["settings.json"]


def test_a_vault_that_is_named_readable_is_read_only(walled: Runs, vault: Path) -> None:
    script = f"mount -o remount,bind,rw {vault}; touch planted"
    assert walled.lets_through(script, readable=(vault,)) == []


def test_no_port_of_the_host_is_reached(walled: Runs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        done = walled.run(walled.python(code))
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "ConnectionRefusedError" in done.stderr
    interfaces = walled.sh("tail -n +3 /proc/net/dev | cut -d: -f1")
    assert interfaces.stdout.split() == ["lo"]


def test_a_socket_that_it_may_read_is_reached_and_its_neighbour_is_not(walled: Runs, place: Path) -> None:
    connect = "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9).decode())"
    (place / "run").mkdir()
    names = [str(place / "run" / name) for name in ("door.sock", "valkey.sock")]
    with listening(names[0]), listening(names[1]):
        launch = walled.python(f"import socket, sys; {connect}", readable=(Path(names[0]),))
        assert walled.run(launch, names[0]).stdout == "hello\n"
        assert "FileNotFoundError" in walled.run(launch, names[1]).stderr


@contextmanager
def listening(path: str) -> Iterator[None]:
    def greet() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"hello")

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


def test_it_has_no_capabilities_and_gets_none(walled: Runs) -> None:
    done = walled.sh("grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status")
    found = dict(line.split(":\t") for line in done.stdout.splitlines())
    assert found.pop("NoNewPrivs") == "1"
    assert set(found.values()) == {"0" * 16}
    scripts = ("mknod disk b 8 0", "chown 12345 .", "chroot / true", "mount -t tmpfs x /tmp")
    assert walled.lets_through(*scripts) == []


def test_it_makes_no_namespace_in_which_it_would_have_capabilities(walled: Runs) -> None:
    offered = subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout
    if "--disable-userns" in offered:  # since bubblewrap 0.8
        assert walled.lets_through("unshare -Ur true") == []


def test_settings_of_the_kernel_cannot_be_opened_for_writing(walled: Runs) -> None:
    """Also by root, which is who the agent is to the kernel when the server runs as root."""
    found = walled.sh("find /proc -path '/proc/[0-9]*' -prune -o -type f -print 2>/dev/null").stdout.split()
    assert "/proc/sys/kernel/core_pattern" in found
    if walled.sandbox.name in ENGINES:  # these it hides behind /dev/null; a trigger in the last runs nothing
        hidden = ("/proc/keys", "/proc/timer_list", "/proc/latency_stats", "/proc/kcore", "/proc/pressure/")
        found = [file for file in found if not file.startswith(hidden)]
    assert (
        walled.sh(f"for file in {' '.join(found)}; do (: >> $file) 2>/dev/null && echo $file; done").stdout
        == ""
    )


def test_it_sees_its_own_processes_only(walled: Runs) -> None:
    done = walled.sh("ls /proc | grep -c '^[0-9]'; tr '\\0' '\\n' < /proc/1/environ")
    count, *first = done.stdout.splitlines()
    assert int(count) <= 5
    assert not [entry for entry in first if CANARY in entry or "PARACHUTE_LAUNCH" in entry]


def test_every_namespace_is_its_own(walled: Runs) -> None:
    kinds = ["pid", "net", "ipc", "uts", "mnt"] + ["user"] * (walled.sandbox.name not in ENGINES)
    files = [f"/proc/self/ns/{kind}" for kind in kinds]
    found = walled.sh(f"for file in {' '.join(files)}; do readlink $file; done").stdout.split()
    assert len(found) == len(files)
    assert not set(found) & {str(Path(file).readlink()) for file in files}


def test_nothing_that_was_ordered_stands_on_a_command_line(walled: Runs) -> None:
    token = new_mark()
    confined = walled.sandbox.confine(walled.launch("/bin/true", environment={"TOKEN": token}))
    assert token not in " ".join(confined.argv)


@pytest.mark.parametrize("vault", ["/", "/usr", "/etc", "/home", "/proc", "/var"])
def test_a_vault_that_holds_the_system_is_refused(wall: Sandbox, vault: str) -> None:
    with pytest.raises(CannotConfine, match="parts of the system"):
        wall.confine(Launch(("true",), {}, Path(vault), Path(vault)))


def test_a_path_that_is_not_there_is_refused(wall: Sandbox, place: Path) -> None:
    with pytest.raises(CannotConfine, match="not there"):
        wall.confine(Launch(("true",), {}, place, place, readable=(place / "gone",)))


# Whether bubblewrap can be used is found out by using it.


def fake_bwrap(folder: Path, script: str) -> str:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


def test_without_bubblewrap_it_is_said_how_to_get_it(place: Path) -> None:
    sandbox = Bubblewrap(search=str(place))
    assert "apt install bubblewrap" in str(sandbox.unavailable())
    with pytest.raises(CannotConfine):
        sandbox.confine(Launch(("true",), {}, place, place))


def test_without_nsenter_it_is_said_how_to_get_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it agents are brought to a stand while another wall is built."""
    monkeypatch.setenv("PATH", fake_bwrap(place, "exit 0"))
    assert "apt install util-linux" in str(Bubblewrap().unavailable())


def test_a_bubblewrap_that_builds_no_wall_is_unavailable(place: Path) -> None:
    said = "bwrap: setting up uid map: Permission denied"
    sandbox = Bubblewrap(search=fake_bwrap(place, f"echo '{said}' >&2; exit 1"))
    assert said in str(sandbox.unavailable())
    assert "AppArmor" in str(sandbox.unavailable())


def test_a_bubblewrap_that_only_pretends_is_unavailable(place: Path) -> None:
    assert Bubblewrap(search=fake_bwrap(place, "exit 0")).unavailable()


def test_an_older_bubblewrap_builds_the_wall_that_it_can(wall: Sandbox, place: Path) -> None:
    real = shutil.which("bwrap")
    older = f'for word; do [ "$word" = --disable-userns ] && exit 1; done; exec {real} "$@"'
    sandbox = Bubblewrap(search=fake_bwrap(place, older))
    assert sandbox.unavailable() is None
    assert "--disable-userns" not in sandbox.confine(Launch(("true",), {}, place, place)).argv


def test_the_answer_is_kept_for_minutes_and_a_bad_one_for_seconds(wall: Sandbox, place: Path) -> None:
    now = [0.0]
    sandbox = Bubblewrap(search=str(place), clock=lambda: now[0])
    assert sandbox.unavailable()
    (place / "bwrap").symlink_to(str(shutil.which("bwrap")))
    assert sandbox.unavailable()
    now[0] = 11
    assert sandbox.unavailable() is None
    (place / "bwrap").unlink()
    now[0] = 200
    assert sandbox.unavailable() is None
    now[0] = 400
    assert sandbox.unavailable()


# And all of it together, with the real CLI.


async def test_the_real_cli_answers_from_behind_each_sandbox(
    sandbox: Sandbox, place: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, mark = "sk-ant-the-real-key", new_mark()
    monkeypatch.setenv(CANARY, "worker")
    config = place / "claude"
    config.mkdir()
    with ScriptedModel(say("All done.")) as model:
        door = Door(place / "door.sock", ModelEndpoint(model.url, ("x-api-key", key)))
        await door.open()
        issued = door.issue()
        issued.turn = "turn"
        launch = Launch(
            argv=(str(CLI),),
            environment={
                **{"PATH": "/usr/bin:/bin", "HOME": str(place), MARK: mark, "CLAUDE_CONFIG_DIR": str(config)},
                **{"ANTHROPIC_UNIX_SOCKET": str(door.socket), "ANTHROPIC_BASE_URL": "http://door.invalid"},
                **{"ANTHROPIC_API_KEY": issued.token, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
            },
            directory=vault,
            vault=vault,
            writable=(config,),
            readable=(CLI, door.socket),
        )
        options = ClaudeAgentOptions(
            cli_path=executable(place / "launcher"),
            env=orders_for(sandbox.confine(launch)),
            cwd=vault,
            setting_sources=[],
            tools=[],
            include_partial_messages=True,
        )
        try:
            async with ClaudeSDKClient(options) as client:
                await client.query("hello")
                said = [message async for message in client.receive_response()]
                seen = [each.environment for each in marked(mark)]
        finally:
            end_everything(mark)
            await door.close()
    assert isinstance(said[-1], ResultMessage)
    assert said[-1].result == "All done."
    assert any(isinstance(message, StreamEvent) for message in said)
    assert [asked.text for asked in model.requests] == ["hello"]
    assert seen
    assert not [
        each for each in seen if key.encode() in each or b"CANARY" in each or b"PARACHUTE_LAUNCH" in each
    ]
