"""Runs beside a server that is a process, behind the same wall: passes on what is a message, and no more.

A CLI that is sent lines without end reads them for ever, and never comes to its turn (tried: `yes` on a
server's standard output). So what is no message is left out here, and who says too much of it is ended. Like
`launch.py` it stands alone, and knows only what the smallest Python has.

Where no CLI is between, a server's variables come with `HELD` before their names: the wall itself is started
with what its program is given, and outside of it LD_PRELOAD would have the wall run a file of the vault.
"""

import errno
import os
import signal
import sys
import time

LONGEST = 8 << 20  # bytes of one message
MOST_ELSE = 1 << 20  # bytes that are none, in all
MOST_A_SECOND = 200  # messages, and
MOST_BYTES_A_SECOND = 16 << 20
PIECE = 1 << 16
OUT, ERRORS, TO_READ, TO_WRITE = 1, 2, 0, 1
HELD = "PARACHUTE_HELD_"  # no server's own variable begins so
QUIET, LOUD = "quiet", "loud"  # whether what it says on its standard error is heard


def main() -> None:
    ends = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(ends[TO_WRITE], OUT)
        os.close(ends[TO_READ])
        os.close(ends[TO_WRITE])
        if sys.argv[1] == QUIET:  # a CLI that still has a way to hear it does not believe that it has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), ERRORS)
        _become(sys.argv[2:])
    os.close(ends[TO_WRITE])
    os.close(0)  # is the server's
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: os.kill(child, number))
    code: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: _reap(child, code, ends[TO_READ]))
    _reap(child, code, ends[TO_READ])  # it may have ended before
    try:
        _pass_on(ends[TO_READ])
    except BlockingIOError:  # it has ended, and what it started holds its output open
        pass
    except (BrokenPipeError, OverflowError):
        if not code:
            os.kill(child, signal.SIGKILL)
    if not code:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _reap(child, code, ends[TO_READ])
    sys.exit(code[0] if code else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def _reap(child: int, code: "list[int]", source: int) -> None:
    """Of one that is only stopped nothing is said here, and of one that has ended once."""
    if not code and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        code.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
        os.set_blocking(source, False)  # what it said is read, and no more is waited for


def _become(argv: "list[str]") -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvpe(argv[0], argv, _its_own())  # noqa: S606 - becoming that program is the point
    except OSError as error:
        hint = _hint(argv[0]) if error.errno == errno.ENOENT else ""
        os.write(2, f"{argv[0]}: {error.strerror}.{hint}\n".encode())
        os._exit(127)


def _hint(command: str) -> str:
    """It may well be there for whoever wrote the entry, in a shell and outside of a wall."""
    if " " in command:
        return " The command is the program alone: what follows it goes into args."
    return (
        " It, and what it is a link to or run by, must lie in the vault or below /usr: a wall shows no home,"
        " and no other folder."
    )


def _its_own() -> "dict[str, str]":
    around = dict(os.environ)  # noqa: TID251 - a process of its own
    held = {name[len(HELD) :]: around.pop(name) for name in [*around] if name.startswith(HELD)}
    return {**around, **held}


def _pass_on(source: int) -> None:
    """Line by line. Raises OverflowError where it is too much."""
    kept, others, pace = b"", 0, _Pace()
    while piece := os.read(source, PIECE):
        *lines, kept = (kept + piece).split(b"\n") if b"\n" in piece else (kept + piece,)
        for line in lines:
            if line.lstrip()[:1] in (b"{", b"["):
                pace.wait_for(len(line))
                _write(line + b"\n")
            else:
                others += len(line) + 1
        if len(kept) > LONGEST or others > MOST_ELSE:
            raise OverflowError


class _Pace:
    """Messages without end keep a CLI as busy as lines without end: who sends more than it can use waits."""

    def __init__(self) -> None:
        self._since, self._messages, self._bytes = time.monotonic(), 0, 0

    def wait_for(self, size: int) -> None:
        passed = time.monotonic() - self._since
        if passed < 1 and (self._messages >= MOST_A_SECOND or self._bytes >= MOST_BYTES_A_SECOND):
            time.sleep(1 - passed)  # noqa: TID251 - a process of its own
            passed = 1
        if passed >= 1:
            self._since, self._messages, self._bytes = time.monotonic(), 0, 0
        self._messages, self._bytes = self._messages + 1, self._bytes + size


def _write(line: bytes) -> None:
    while line:
        line = line[os.write(OUT, line) :]


if __name__ == "__main__":
    main()
