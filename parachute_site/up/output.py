"""What the processes say: one stream of lines for the terminal, and a file for each of them."""

import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path

LONGEST_FILE = 10 * 1024 * 1024
KEPT = 3
STDOUT = 1
WIDEST_NAME = len("background")
WAITING_LINES = 1000
LAST_WORDS = 1.0  # seconds that the terminal gets for what is still to be printed when we leave

# What an agent made a process say must not move a terminal's cursor.
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


def open_what_is_closed() -> None:
    """Started without standard handles, our own files would get their numbers, and lines meant for nobody."""
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


class Output:
    """Lines of processes go to the terminal and to files; what is shown once goes to the terminal only."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._files: dict[str, LogFile] = {}
        self._terminal = Terminal(STDOUT)
        self._dim, self._plain = ("\x1b[2m", "\x1b[0m") if os.isatty(STDOUT) else ("", "")

    def close(self) -> None:
        self._terminal.close()
        for file in self._files.values():
            file.close()

    def say(self, text: str) -> None:
        self.line("up", text.encode(), must=True)

    def line(self, name: str, raw: bytes, *, must: bool = False) -> None:
        text = CONTROL.sub(b"?", raw.rstrip(b"\r"))
        clock = time.strftime("%H:%M:%S")
        self._terminal.put(
            f"{self._dim}{clock} {name:<{WIDEST_NAME}} |{self._plain} ".encode() + text, must=must
        )
        self._file(name).write(f"{time.strftime('%Y-%m-%d')} {clock} ".encode() + text + b"\n")

    def show(self, text: str) -> None:
        """To the terminal and never to a file: a sign-in link must not lie around."""
        self._terminal.put(text.encode(), must=True)

    def _file(self, name: str) -> "LogFile":
        if name not in self._files:
            self._files[name] = LogFile(self._folder / f"{name}.log")
        return self._files[name]


class Terminal:
    """Writes in a thread of its own: a pipe that nobody reads, or one that is closed, holds nothing up.

    What a slow reader cannot take is left out (the files have it), but never what `must` be shown.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lines: list[bytes] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def put(self, line: bytes, *, must: bool) -> None:
        with self._changed:
            if self._thread.is_alive() and (must or len(self._lines) < WAITING_LINES):
                self._lines.append(line + b"\n")
                self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(LAST_WORDS)

    def _write(self) -> None:
        with suppress(OSError):  # nobody reads any more, which is no reason to stop
            while lines := self._next():
                while lines:
                    lines = lines[os.write(self._handle, lines) :]

    def _next(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._closing)
            lines = b"".join(self._lines)
            self._lines.clear()
            return lines


class LogFile:
    """Appends lines; begun anew when it is full, the last ones kept as `.1` to `.3`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        self._size = 0

    def write(self, line: bytes) -> None:
        with suppress(OSError):  # a full disk must not end what still works
            if self._size + len(line) > LONGEST_FILE:
                self._begin_anew()
            self._size += os.write(self._open(), line)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> int:
        if self._handle is None:
            self._handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.fchmod(self._handle, 0o600)
            self._size = os.fstat(self._handle).st_size
        return self._handle

    def _begin_anew(self) -> None:
        self.close()
        for number in range(KEPT - 1, 0, -1):
            with suppress(FileNotFoundError):
                self._older(number).rename(self._older(number + 1))
        self._path.rename(self._older(1))
        self._size = 0

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
