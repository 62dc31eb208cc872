"""Runs behind the wall, beside the agent's start: gives the egress door a socket to listen on, and ends.

A wall's network is a loopback of its own. A socket that was opened there stays there, whoever holds it: the
door, outside, answers what connects to it. Like `launch.py` it stands alone and imports little.
"""

import _socket as socket  # the standard one's other half costs 8 ms
import array
import os
import sys

PORT = 3128
TOKEN = "PARACHUTE_EGRESS"  # noqa: S105 - its name; the agent's environment does not hold it
PATIENCE = 20.0  # seconds


def main() -> None:
    hand_over(sys.argv[1], os.environ[TOKEN])  # noqa: TID251 - another process


def hand_over(path: str, token: str) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.settimeout(PATIENCE)
    try:
        listener.bind(("127.0.0.1", PORT))
        listener.listen(64)
        door.connect(path)
        handle = array.array("i", [listener.fileno()])
        door.sendmsg([f"{token}\n".encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handle)])
        answer = door.recv(3)
    except OSError as error:
        sys.exit(f"The egress door cannot be reached: {error}")
    if answer != b"ok\n":
        sys.exit("The egress door let this process not through.")
    listener.close()
    door.close()


if __name__ == "__main__":
    main()
