"""A real `manage.py up` in a home of its own, watched from outside: its lines, its processes, its files."""

import asyncio
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import httpx

from parachute_site import env
from parachute_site.up import health, processes

ROOT = Path(__file__).resolve().parents[2]
REAL = (sys.executable, str(ROOT / "manage.py"), "up")
PATIENCE = 60.0
STOPS_WITHIN = 10.0
READY = "Parachute is ready"


class RunningUp:
    """One `up`. What it prints is read all the time, as a person's terminal does."""

    def __init__(self, argv: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        self.home = Path(variables["PARACHUTE_HOME"])
        self.vault = Path(variables["VAULT_PATH"])
        self.port = int(variables["PORT"])
        self.address = f"http://127.0.0.1:{self.port}"
        self.environment = replace(env.load(folder), home=self.home, port=self.port)
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._is_over = False
        self._popen = subprocess.Popen(
            argv, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.pid = self._popen.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @cached_property
    def sign_in(self) -> str:
        """The one-time link, with the address in front."""
        return self.wait_log(r"sign in, once").split()[-1]

    @cached_property
    def cookies(self) -> dict[str, str]:
        """Those of the first person, who used the link."""
        with httpx.Client(base_url=self.address, timeout=PATIENCE) as client:
            client.get(self.sign_in)
            used = client.post(self.sign_in, data={"csrfmiddlewaretoken": client.cookies["csrftoken"]})
            assert used.status_code == 302, used.text
            return dict(client.cookies)

    def wait_ready(self) -> None:
        self.wait_log(READY)

    def wait_log(self, pattern: str, *, times: int = 1, within: float = PATIENCE) -> str:
        """The line that matches; with `times`, once that many have."""
        until = time.monotonic() + within
        seen, left = 0, times
        with self._changed:
            while True:
                for line in self.lines[seen:]:
                    left -= bool(re.search(pattern, line))
                    if not left:
                        return line
                seen = len(self.lines)
                if self._is_over or not self._changed.wait(until - time.monotonic()):
                    break
        raise AssertionError(f"{pattern!r} was not printed {times} times in {within} s:\n{self.text}")

    def wait_health(self, expected: int = 200, *, within: float = PATIENCE) -> None:
        """Until /api/health/ready answers that; asked again with each line that is printed, or soon."""
        until = time.monotonic() + within
        while (answer := asyncio.run(health.ask(self.environment)))[0] != expected:
            assert time.monotonic() < until, f"{answer}\n{self.text}"
            with self._changed:
                self._changed.wait(0.2)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def pid_of(self, name: str) -> int:
        """The process that runs under that name now."""
        started = re.findall(rf"\| {name} started, process (\d+)", self.text)
        return int(started[-1])

    def kill(self, name: str, how: int = signal.SIGKILL) -> None:
        """Send a signal to one process: `up`, `valkey`, `web`, `turns`, `background` or `model`."""
        os.kill(self.pid if name == "up" else self.pid_of(name), how)

    def wait_exit(self, within: float = STOPS_WITHIN) -> int:
        code = self._popen.wait(within)
        self._reader.join(STOPS_WITHIN)
        return code

    def ended_within(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self.wait_exit(seconds)
        return self._popen.returncode is not None

    def stop(self, how: int = signal.SIGTERM) -> float:
        """End it as a person would; how many seconds it took. Not within 10 s is a failure."""
        began = time.monotonic()
        if self._popen.poll() is None:
            self._popen.send_signal(how)
            assert self.wait_exit() == 0, self.text
        return time.monotonic() - began

    def left(self) -> dict[int, str]:
        """The processes that carry the mark of this home, `up` itself not among them."""
        marked = (pid for pid in processes.parents() if _owner(pid) == self.environment.owner)
        return {pid: _command(pid) for pid in marked}

    def end_at_any_price(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self.wait_exit()
        processes.end_marked(self.environment.owner)
        shutil.rmtree(self.environment.run, ignore_errors=True)

    def _read(self) -> None:
        assert self._popen.stdout
        with self._popen.stdout as lines:
            for line in lines:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


StartUp = Callable[..., RunningUp]


def of_whoever_runs_it() -> dict[str, str]:
    """The little that a test takes of the environment around it."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ") if name in os.environ}


def free_port() -> int:
    """None of those that the kernel gives out by itself: another test would have it before `up` listens."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)  # hypothesis seeds the other dice
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _owner(pid: int) -> str | None:
    return env.of_process(pid).get(env.OWNER)


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    return "gone"
