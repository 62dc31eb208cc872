"""Runs beside a server that is a process, behind the same wall: passes on what is a message, and no more.

A CLI that is sent lines without end reads them for ever, and never comes to its turn (tried: `yes` on a
server's standard output). So what is no message is left out here, and who says too much of it is ended. Like
`launch.py` it stands alone, and knows only what the smallest Python has.
"""

import os
import signal
import sys

LONGEST = 8 << 20  # bytes of one message
MOST_ELSE = 1 << 20  # bytes that are none, in all
PIECE = 1 << 16
OUT, TO_READ, TO_WRITE = 1, 0, 1


def main() -> None:
    ends = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(ends[TO_WRITE], OUT)
        os.close(ends[TO_READ])
        os.close(ends[TO_WRITE])
        _become(sys.argv[1:])
    os.close(ends[TO_WRITE])
    os.close(0)  # is the server's
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: os.kill(child, number))
    try:
        _pass_on(ends[TO_READ])
    except (BrokenPipeError, OverflowError):
        os.kill(child, signal.SIGKILL)
    os.close(ends[TO_READ])
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def _become(argv: "list[str]") -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - becoming that program is the point
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def _pass_on(source: int) -> None:
    """Line by line. Raises OverflowError where it is too much."""
    kept, others = b"", 0
    while piece := os.read(source, PIECE):
        *lines, kept = (kept + piece).split(b"\n") if b"\n" in piece else (kept + piece,)
        for line in lines:
            if line.lstrip()[:1] in (b"{", b"["):
                _write(line + b"\n")
            else:
                others += len(line) + 1
        if len(kept) > LONGEST or others > MOST_ELSE:
            raise OverflowError


def _write(line: bytes) -> None:
    while line:
        line = line[os.write(OUT, line) :]


if __name__ == "__main__":
    main()
