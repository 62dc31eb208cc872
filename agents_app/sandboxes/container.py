"""The wall of a container: one for each launch, of an image with a few tools and nothing of ours in it.

The CLI is no part of the image: it is bound in read-only, as everything else is that the launch names. The
engine's program runs in the launch's place and passes its streams on; what goes into the container's
environment it takes from its own, so no secret stands on a command line.
"""

import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from agents_app.sandboxes.container_engine import LABEL, WORKER, Engine
from agents_app.sandboxes.limits import Limits

from .base import MARK, MASK, READ_WRITE, CannotConfine, Launch
from .checks import checked
from .mounts import HOME, MEMORY, OURS, named_paths

RAN, FAILED = 300.0, 10.0  # seconds that an answer is good for
PERIOD = 100_000  # microseconds; the kernel's usual one
ANSWERS_WITHIN = 30.0  # seconds, also where it makes its first container
NAME = "parachute-"
NOTHING = Path(__file__).parent / "nothing"  # an empty file, in the place of a hidden one
# As its first process: it waits for what is left to it, and what it starts ends when the time is over.
FIRST = 'unset HOSTNAME; timeout -s KILL "$0" "$@"; exit $?'
CLOSED = (
    *("--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--read-only", "--ipc", "private", "--hostname", "box", "--log-driver", "none", "--pull", "never"),
)

# Where podman differs. Of itself it asks for a million processes of the user, which not every machine gives
# (--pids-limit counts them), leaves /run open, and tells more than was ordered.
PODMANS = ("--ulimit", "nproc=4096:4096", "--read-only-tmpfs=false", "--unsetenv=container")


class Container:
    is_wall = True

    def __init__(
        self, engine: Engine, clock: Callable[[], float] = time.monotonic, *, user: int | None = None
    ) -> None:
        """`user` is who owns what is written."""
        self._user = os.getuid() if user is None else user
        self.name = engine.program
        self.install = f"apt install {'docker.io' if self.name == 'docker' else self.name} (or your system's)"
        self._engine = engine
        self._empty = ("notmpcopyup",) if self.name == "podman" else ()
        self._clock = clock
        self._answer: str | None = None
        self._good_until = float("-inf")

    def unavailable(self) -> str | None:
        if self._clock() >= self._good_until:
            self._answer = self._probe()
            self._good_until = self._clock() + (FAILED if self._answer else RAN)
        return self._answer

    def confine(self, launch: Launch) -> Launch:
        program = self._engine.path()
        if program is None:
            raise CannotConfine(f"{self.name} is not installed.")
        limits = launch.limits or Limits()
        environment = self._engine.client(launch.environment)
        argv = (
            *(program, "run", "--interactive", "--rm", *self._labels(launch), *CLOSED),
            *(
                "--user",
                f"{self._user}:{self._user and os.getgid()}",
                *_limits(limits),
                *(_podmans(launch) if self.name == "podman" else ()),
                *_mounts(launch, limits, self._empty),
            ),
            *(word for name in self._names() for word in ("--mount", name)),
            *("--workdir", str(launch.directory.resolve())),
            *(word for name in (*launch.environment, "PWD") for word in _variable(name)),
            *("--entrypoint", "/bin/sh", self._engine.image, "-c", FIRST),
            *(str(limits.time), *checked(launch)),
        )
        # The limits are those of the container: as the engine's program has them, they would bound it alone.
        return replace(launch, argv=argv, environment=environment, limits=None)

    def end(self, mark: str) -> None:
        self._engine.remove(f"{NAME}{mark}")

    def sweep(self) -> None:
        self._engine.remove(*self._engine.left(of_worker=True))

    def _labels(self, launch: Launch) -> tuple[str, ...]:
        owner, worker = self._engine.owner, self._engine.worker
        named = ("--name", f"{NAME}{launch.mark}") if launch.mark else ()
        return (*named, "--label", f"{LABEL}={owner}", "--label", f"{WORKER}={owner}/{worker}")

    def _names(self) -> Iterator[str]:
        """Who it is, by name; the image knows root already."""
        for name in ("passwd", "group") if self._user else ():
            yield _mount("type=bind", f"source={OURS / name}", f"destination=/etc/{name}", "readonly")

    def _probe(self) -> str | None:
        """Runs one that writes into its vault."""
        if self._engine.path() is None:
            return f"{self.name} is not installed: {self.install}."
        mark = secrets.token_hex(16)
        with tempfile.TemporaryDirectory() as folder:
            vault = Path(folder)
            writes = ("/bin/sh", "-c", "echo ran > here")
            confined = self.confine(Launch(writes, {"PATH": "/usr/bin:/bin", MARK: mark}, vault, vault))
            try:
                done = subprocess.run(
                    confined.argv,
                    env=dict(confined.environment),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=ANSWERS_WITHIN,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                self.end(mark)
                return f"{self.name} is there, but runs no container ({error})."
            if done.returncode == 0 and (vault / "here").is_file():
                return None
            said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        return f"{self.name} is there, but runs no container ({said}). {self._hint(said)}".strip()

    def _hint(self, said: str) -> str:
        words = said.lower()
        if "no such image" in words or "unable to find image" in words or "not known" in words:
            return f"Build the image with deploy/sandbox/build {self._engine.image}."
        if "connect" in words:
            return "Start its service, and let the server's user use it (on Debian: the group docker)."
        return ""


def _podmans(launch: Launch) -> tuple[str, ...]:
    return PODMANS if "TERM" in launch.environment else (*PODMANS, "--unsetenv=TERM")


def _limits(limits: Limits) -> Iterator[str]:
    yield from ("--memory", str(limits.memory), "--memory-swap", str(limits.memory))
    # Not by --cpus: docker refuses more than there are, so with one processor it would run nothing.
    yield from ("--cpu-period", str(PERIOD), "--cpu-quota", str(int(limits.cpus * PERIOD)))
    yield from ("--pids-limit", str(limits.processes))
    of_each = {"nofile": limits.files, "fsize": limits.file_size, "cpu": limits.cpu, "core": 0}
    for name, most in of_each.items():
        yield from ("--ulimit", f"{name}={most}:{most}")


def _mounts(launch: Launch, limits: Limits, empty: tuple[str, ...]) -> Iterator[str]:
    """`empty` is what says that memory shows nothing of what it lies on."""
    for path in MEMORY:
        options = ("rw", "exec", "nosuid", "nodev", "mode=1777", f"size={limits.scratch}", *empty)
        yield from ("--tmpfs", f"{path}:{','.join(options)}")
    yield from ("--shm-size", str(min(limits.scratch, 64 << 20)))
    for path, (source, how) in _placed(launch).items():
        if how == MASK and source.is_dir():
            yield from ("--mount", _mount("type=tmpfs", f"destination={path}", "ro", *empty))
        else:
            shown = NOTHING if how == MASK else source
            closed = () if how == READ_WRITE else ("readonly",)
            yield from ("--mount", _mount("type=bind", f"source={shown}", f"destination={path}", *closed))


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _placed(launch: Launch) -> dict[Path, tuple[Path, int]]:
    """What is shown where, and how. What was named by a link is there under that name too, with all that lies
    in it: an engine makes no links."""
    named = named_paths(launch)
    for path, _ in named:
        if not _is_text(path):
            raise CannotConfine(f"No container can be told of {path!r}. Give it a name that is text.")
    placed = {path: (path, how) for path, how in named}
    for given in (launch.vault, *launch.writable, *launch.readable):
        link, real = Path(os.path.normpath(given)), given.resolve()
        if link != real and link not in placed:
            inside = [(path, how) for path, how in named if path.is_relative_to(real)]
            placed |= {link / path.relative_to(real): (path, how) for path, how in inside}
    return placed


def _mount(*fields: str) -> str:
    """As one line of CSV, which is how the engine reads it."""
    return ",".join('"' + field.replace('"', '""') + '"' for field in fields)


def _variable(name: str) -> tuple[str, str]:
    """Without a value the engine takes that of its own environment, and removes what is not there."""
    return "--env", f"HOME={HOME}" if name == "HOME" else name
