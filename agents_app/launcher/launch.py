"""Becomes the process that it was ordered to become, with nothing of the worker's left in it.

The SDK runs this as if it were the CLI, with the CLI's arguments and the worker's environment. It runs
outside of its package and before every agent, so it imports little (12 ms from start to exec).
"""

import json
import os
import resource
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ORDERS = "PARACHUTE_LAUNCH_"  # numbered, because the kernel takes at most 128 KB in one variable


def main() -> None:
    # The one place besides parachute_site/env.py: this is another process, and it comes to clear it.
    variables = os.environ  # noqa: TID251
    orders = json.loads("".join(variables[name] for name in sorted(variables) if name.startswith(ORDERS)))
    argv = [*orders["argv"], *sys.argv[1:]]
    try:
        _leave_the_worker()
        _open(orders["given"])
        _take_limits(orders)
        os.chdir(orders["directory"])
        os.execve(argv[0], argv, orders["environment"])  # noqa: S606 - becoming that program is the point
    except OSError as error:
        sys.exit(f"{error.filename or argv[0]}: {error.strerror}")


def _open(given: "list[str]") -> None:
    """From the first descriptor on that is free, as none is open by now."""
    for each in given:
        descriptor = os.memfd_create("given")
        os.write(descriptor, bytes.fromhex(each))
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.set_inheritable(descriptor, True)


def _take_limits(orders: "dict[str, Any]") -> None:
    for folder, files in orders["groups"].items():
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - pathlib would cost some ms
        for name, text in (*files.items(), (_joined_by(folder), "0")):
            with open(os.path.join(folder, name), "w") as file:  # noqa: PTH118, PTH123
                file.write(text)
    for kind, wanted in orders["limits"].items():
        most = resource.getrlimit(int(kind))[1]
        value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(int(kind), (value, value))


def _joined_by(folder: str) -> str:
    """To move a process the kernel waits until no processor looks at any process, 10 ms. To move the thread
    that asks it does not wait, and this process has one. Only the older kind of groups takes threads."""
    return "tasks" if os.path.exists(os.path.join(folder, "tasks")) else "cgroup.procs"  # noqa: PTH110, PTH118


def _leave_the_worker() -> None:
    if os.getpid() != os.getsid(0):
        os.setsid()
    for descriptor in os.listdir("/dev/fd"):
        if int(descriptor) > 2:
            with suppress(OSError):  # the one that listed the others is gone
                os.close(int(descriptor))
    # Python ignores SIGPIPE, and what is ignored stays so in the next program: `yes | head` would complain.
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


if __name__ == "__main__":
    main()
