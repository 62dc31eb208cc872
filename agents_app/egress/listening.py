"""Unix sockets on which a worker hears what is behind a wall."""

import socket
from pathlib import Path


def listener_at(path: Path) -> socket.socket:
    """A socket that no other user can connect to, not even before its mode is set: it does not listen yet."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
    except OSError:
        listener.close()
        raise
    return listener
