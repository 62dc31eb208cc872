"""One agent gives another a handle of a folder, over a socket in their vault. It shows what the giver's wall
shows, and no more when the giver has ended."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contracts.runs import Runs
from tests.contracts.test_two_agents import agent, wait_for
from tests.contracts.walled import SYSTEMS_PYTHON, give, on_bubblewrap, project_of

GIVES = """
import os, socket, time
ours = socket.socket(socket.AF_UNIX)
ours.bind("Notes/sock")
ours.listen()
open("Notes/giving", "w").close()
theirs, _ = ours.accept()
socket.send_fds(theirs, [b"."], [os.open(".", os.O_RDONLY)])
while not os.path.exists("Notes/enough"):
    time.sleep(0.01)
"""
TAKES = """
import os, socket, time
theirs = socket.socket(socket.AF_UNIX)
theirs.connect("Notes/sock")
_, (folder,), _, _ = socket.recv_fds(theirs, 1, 1)

def tried(path, how):
    try:
        handle = os.open(path, how, 0o777, dir_fd=folder)
        return os.read(handle, 100) if how == os.O_RDONLY else os.write(handle, b"EVIL")
    except OSError as error:
        return error.strerror

def all_tried():
    looks = [tried(path, os.O_RDONLY) for path in (".env", "Project/.env", "Notes/plan.md")]
    return looks + [tried(path, os.O_CREAT | os.O_WRONLY) for path in ("CLAUDE.md", ".git/hooks/post-commit")]

def say(name, said):
    handle = os.open(f"Notes/{name}.new", os.O_CREAT | os.O_WRONLY, 0o666, dir_fd=folder)
    os.write(handle, said.encode())
    os.rename(f"Notes/{name}.new", f"Notes/{name}", src_dir_fd=folder, dst_dir_fd=folder)

say("first", repr(all_tried()))
while not os.path.exists("Notes/alone"):
    time.sleep(0.01)
say("then", repr(all_tried()))
"""
CLOSED, READ_ONLY = "Permission denied", "Read-only file system"

pytestmark = [
    on_bubblewrap,
    pytest.mark.skipif(not Path(SYSTEMS_PYTHON).exists(), reason="NOT TESTED: no Python behind all walls."),
]


@pytest.mark.parametrize("patterns", [None, ()], ids=["writes", "only reads"])
def test_a_handle_is_masked_when_its_giver_has_ended(walled: Runs, patterns: tuple[str, ...] | None) -> None:
    project_of(walled)
    steers = walled.vault / "CLAUDE.md"
    steers.write_text("good")
    give(walled, walled.vault)
    notes = walled.vault / "Notes"
    with ExitStack() as giver, ExitStack() as taker:
        giver.enter_context(agent(walled, in_python(walled, GIVES), "Notes/giving"))
        taker.enter_context(agent(walled, in_python(walled, TAKES), "Notes/first", patterns))
        giver.close()
        (notes / "alone").touch()
        wait_for(notes / "then")
    seen = [CLOSED, CLOSED, b"plan", READ_ONLY, READ_ONLY]
    assert (notes / "first").read_text() == repr(seen)
    assert (notes / "then").read_text() == repr(seen)
    assert steers.read_text() == "good"
    assert not (walled.vault / ".git/hooks/post-commit").exists()


def in_python(walled: Runs, script: str) -> str:
    name = "gives.py" if script == GIVES else "takes.py"
    (walled.vault / name).write_text(script)
    return f"exec {SYSTEMS_PYTHON} -IS {name}"
