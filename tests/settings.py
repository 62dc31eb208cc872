"""The settings of the tests: a home of their own, nothing of the machine's environment, no process beside."""

import os
import tempfile
from pathlib import Path

_folder = Path(tempfile.mkdtemp(prefix="parachute-tests-"))
for _name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE_", "PARACHUTE_"))]:
    del os.environ[_name]
(_folder / "home").mkdir(mode=0o700)
(_folder / "vault").mkdir()
os.environ["PARACHUTE_HOME"] = str(_folder / "home")
os.environ["VAULT_PATH"] = str(_folder / "vault")

from parachute_site.settings import *  # noqa: E402, F403
from parachute_site.settings import DATABASES, ENVIRONMENT, PARACHUTE_AGENT_ENVIRONMENT  # noqa: E402

SECRET_KEY = "only for tests"
PARACHUTE_BUS = "sessions_app.streaming.bus.memory"
PARACHUTE_RUNTIME = "agents_app.runtimes.scripted"
PARACHUTE_CURATOR = False  # but for the tests of it: no other is to be about what it does beside
PARACHUTE_EMBEDDER = ""  # but for its own tests: the others are to be about words
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if ENVIRONMENT.database_url is None:
    DATABASES["default"]["TEST"] = {"NAME": str(_folder / "test.sqlite3")}
# A login shell of an agent without a wall reads the profile of this home, and not that of whoever runs the
# tests: one with pyenv in it waits a minute for a lock that a killed shell has left.
PARACHUTE_AGENT_ENVIRONMENT = {**PARACHUTE_AGENT_ENVIRONMENT, "HOME": str(_folder)}
