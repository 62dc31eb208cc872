"""The environment, read here and nowhere else.

`manage.py up` reads it before Django is imported, `settings.py` reads it once for everything else.
A value that cannot be meant raises `BadEnvironment` with a sentence that says how to mend it.
"""

import hashlib
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import environ

from agents_app.model.endpoint import ANTHROPIC, Credential, ModelEndpoint, opened_with
from agents_app.sandboxes.limits import MB, Limits

CREDENTIALS = {
    "ANTHROPIC_API_KEY": Credential.API_KEY,
    "ANTHROPIC_AUTH_TOKEN": Credential.AUTH_TOKEN,
    "CLAUDE_CODE_OAUTH_TOKEN": Credential.OAUTH,
}
BASE_URL = "ANTHROPIC_BASE_URL"
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - told apart, not bound
LONGEST_SOCKET_PATH = 100  # the kernel's limit is 107; names of sockets are at most a few letters longer
OWNER = "PARACHUTE_OWNER"  # marks every process that belongs to one home, so that a later start can find it


class BadEnvironment(Exception):
    """A setting from the environment that cannot be used; its text is for the person who set it."""


@dataclass(frozen=True)
class BotAccess:
    """What the environment says of a platform: `set_by` is the variable that holds a token."""

    token: str = field(default="", repr=False)
    url: str = ""  # of a server of one's own
    set_by: str = ""


@dataclass(frozen=True)
class Environment:
    host: str
    port: int
    home: Path
    vault: Path
    vault_is_chosen: bool
    allowed_hosts: tuple[str, ...]
    csrf_trusted_origins: tuple[str, ...]
    secret_key: str | None = field(repr=False)
    database_url: str | None = field(repr=False)
    redis_url: str | None = field(repr=False)
    models: tuple[str, ...]
    model: ModelEndpoint
    model_is_set_by: tuple[str, ...]  # names of variables; none: it is the demo model
    sandbox: str
    sandbox_image: str
    limits: Limits
    worker_name: str
    beat: bool
    drain: float
    permission_timeout: float
    question_timeout: float
    curator: bool
    curator_model: str
    bots: Mapping[str, BotAccess]
    embeddings_url: str
    cleanup_days: int  # 0: nothing is ever deleted by itself
    debug: bool

    @property
    def run(self) -> Path:
        """Where sockets live: in the home, or in a short place of our own where its path is too long."""
        return _run_folder(self.home)

    @property
    def web(self) -> str:
        """Where processes of this machine find the web server."""
        host = ANY.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def valkey_socket(self) -> Path:
        return self.run / "valkey.sock"

    @property
    def valkey_password_file(self) -> Path:
        return self.home / "valkey.password"

    @property
    def log_folder(self) -> Path:
        return self.home / "logs"

    @property
    def owner(self) -> str:
        return hashlib.sha256(str(self.home).encode()).hexdigest()[:16]

    def redis(self) -> str:
        """The address of Redis: the one that was given, else that of the embedded Valkey."""
        if self.redis_url:
            return self.redis_url
        return f"unix://:{made_once(self.valkey_password_file)}@{self.valkey_socket}?db=0"


def load(folder: Path | None = None) -> Environment:
    """The environment of this process, with the `.env` of its working directory below it."""
    folder = folder or Path.cwd()
    environ.FileAwareEnv.read_env(folder / ".env") if (folder / ".env").is_file() else None
    read = environ.FileAwareEnv()
    home = _path(read.str("PARACHUTE_HOME", default=""), folder / ".parachute")
    vault = read.str("VAULT_PATH", default="")
    return Environment(
        host=read.str("HOST", default="127.0.0.1"),
        port=_port(read.str("PORT", default="3333")),
        home=home,
        vault=_path(vault, folder / "sample-vault"),
        vault_is_chosen=bool(vault),
        allowed_hosts=_words(read.str("ALLOWED_HOSTS", default="")),
        csrf_trusted_origins=_words(read.str("CSRF_TRUSTED_ORIGINS", default="")),
        secret_key=read.str("SECRET_KEY", default="") or None,
        database_url=read.str("DATABASE_URL", default="") or None,
        redis_url=read.str("REDIS_URL", default="") or None,
        models=_models(read.str("PARACHUTE_MODELS", default="sonnet,opus,haiku")),
        model=_endpoint(read, home),
        model_is_set_by=_set_by(read),
        sandbox=_one_of(read, "PARACHUTE_SANDBOX", ("auto", "docker", "podman", "bubblewrap")),
        sandbox_image=read.str("PARACHUTE_SANDBOX_IMAGE", default="parachute-sandbox:1"),
        limits=_limits(read),
        worker_name=read.str("PARACHUTE_WORKER", default=""),
        beat=read.bool("PARACHUTE_BEAT", default=False),
        drain=_seconds(read, "PARACHUTE_DRAIN", "3"),
        permission_timeout=_seconds(read, "PARACHUTE_PERMISSION_TIMEOUT", "120"),
        question_timeout=_seconds(read, "PARACHUTE_QUESTION_TIMEOUT", "300"),
        curator=read.bool("PARACHUTE_CURATOR", default=True),
        curator_model=read.str("PARACHUTE_CURATOR_MODEL", default="") or "claude-haiku-4-5-20251001",
        bots={name: _bot(read, name) for name in ("telegram", "discord")},
        embeddings_url=_web_address(read, "PARACHUTE_EMBEDDINGS_URL"),
        cleanup_days=_days(read, "PARACHUTE_CLEANUP_DAYS"),
        debug=read.bool("DEBUG", default=False),
    )


def for_agents() -> dict[str, str]:
    """The few variables of the server's own environment that a launched agent may see."""
    names = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "USER", "LOGNAME", "SHELL", OWNER)
    return {name: os.environ[name] for name in names if name in os.environ}


def for_engines() -> dict[str, str]:
    """What a container engine's program needs to reach its engine."""
    names = ("PATH", "HOME", "XDG_RUNTIME_DIR", "CONTAINER_HOST", "CONTAINERS_CONF", "DOCKER_HOST")
    docker = ("DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
    return {name: os.environ[name] for name in (*names, *docker) if name in os.environ}


def for_children(environment: Environment, **more: str) -> dict[str, str]:
    """The environment of a process that `up` starts."""
    return {**os.environ, "PYTHONUNBUFFERED": "1", OWNER: environment.owner, **more}


def of_process(pid: int) -> Mapping[str, str]:
    """The environment that a running process was started with; empty where the system does not say."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in raw.decode(errors="replace").split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


def _endpoint(read: environ.FileAwareEnv, home: Path) -> ModelEndpoint:
    url = read.str(BASE_URL, default="").rstrip("/")
    for name, kind in CREDENTIALS.items():
        if secret := read.str(name, default=""):
            return opened_with(url or ANTHROPIC, kind, secret)
    if url:
        return ModelEndpoint(url)
    return ModelEndpoint("http://demo.invalid", socket=_run_folder(home) / "model.sock")


def _set_by(read: environ.FileAwareEnv) -> tuple[str, ...]:
    """The variables that say which model answers, as a person finds them: some are files."""
    named = [name for name in CREDENTIALS if read.str(name, default="")][:1]
    named += [BASE_URL] if read.str(BASE_URL, default="") else []
    return tuple(f"{name}_FILE" if f"{name}_FILE" in os.environ else name for name in named)


def _bot(read: environ.FileAwareEnv, platform: str) -> BotAccess:
    token = f"{platform.upper()}_BOT_TOKEN"
    given = read.str(token, default="").strip()
    named = f"{token}_FILE" if f"{token}_FILE" in os.environ else token
    url = _web_address(read, f"{platform.upper()}_API_URL").rstrip("/")
    return BotAccess(given, url, named if given else "")


def _run_folder(home: Path) -> Path:
    inside = home / "run"
    if len(str(inside)) + 20 <= LONGEST_SOCKET_PATH:
        return inside
    name = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    base = "/tmp" if sys.platform == "darwin" else tempfile.gettempdir()  # noqa: S108
    return Path(base) / f"parachute-{os.getuid()}-{name}"


def _path(given: str, default: Path) -> Path:
    """Absolute and without `..`: inside a wall the folders before a `..` may not exist. Links stay links."""
    return Path(os.path.abspath(Path(given).expanduser() if given else default))  # noqa: PTH100


def _port(given: str) -> int:
    if given.isdigit() and 0 < int(given) < 65536:
        return int(given)
    raise BadEnvironment(f"PORT is {given!r}. Set it to a number from 1 to 65535.")


def _seconds(read: environ.FileAwareEnv, name: str, default: str) -> float:
    given = read.str(name, default=default)
    if given.isascii() and given.isdigit():
        return float(given)
    raise BadEnvironment(f"{name} is {given!r}. Set it to a number of seconds.")


def _limits(read: environ.FileAwareEnv) -> Limits:
    """What an agent behind a wall may take of the machine."""
    usual = Limits()
    return Limits(
        memory=_count(read, "PARACHUTE_LIMIT_MEMORY_MB", usual.memory // MB) * MB,
        processes=_count(read, "PARACHUTE_LIMIT_PROCESSES", usual.processes),
        files=_count(read, "PARACHUTE_LIMIT_OPEN_FILES", usual.files),
        file_size=_count(read, "PARACHUTE_LIMIT_FILE_MB", usual.file_size // MB) * MB,
        cpu=_count(read, "PARACHUTE_LIMIT_CPU_SECONDS", usual.cpu),
        scratch=_count(read, "PARACHUTE_LIMIT_SCRATCH_MB", usual.scratch // MB) * MB,
        cpus=float(_count(read, "PARACHUTE_LIMIT_CPUS", int(usual.cpus))),
        time=_count(read, "PARACHUTE_LIMIT_SECONDS", usual.time),
    )


def _web_address(read: environ.FileAwareEnv, name: str) -> str:
    given = read.str(name, default="")
    if given and not given.startswith(("http://", "https://")):
        raise BadEnvironment(f"{name} is {given!r}. Give an address that begins with http:// or https://.")
    return str(given)


def _count(read: environ.FileAwareEnv, name: str, default: int) -> int:
    given = str(read.str(name, default=str(default)))
    if given.isascii() and given.isdigit() and int(given) > 0:
        return int(given)
    raise BadEnvironment(f"{name} is {given!r}. Set it to a whole number above 0.")


def _days(read: environ.FileAwareEnv, name: str) -> int:
    """0, which is never, where it is not set."""
    return _count(read, name, 0) if read.str(name, default="") else 0


def _words(given: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in given.split(",") if word.strip())


def _models(given: str) -> tuple[str, ...]:
    if models := _words(given):
        return models
    raise BadEnvironment("PARACHUTE_MODELS is empty. Name at least one model, such as sonnet.")


def _one_of(read: environ.FileAwareEnv, name: str, choices: tuple[str, ...]) -> str:
    given = str(read.str(name, default=choices[0]))
    if given in choices:
        return given
    raise BadEnvironment(f"{name} is {given!r}. Set it to one of: {', '.join(choices)}.")


def made_once(path: Path) -> str:
    """A secret that lives in a file: made by whoever needs it first, the same for everybody after. It gets
    its name when it is whole, so that a crash between leaves no empty secret behind."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(fresh, "x", opener=_private) as file:
            file.write(secrets.token_urlsafe(48))
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # somebody was quicker, and theirs is the one
        finally:
            fresh.unlink()
    except OSError as error:
        raise BadEnvironment(f"{path} cannot be written ({error.strerror}). Check PARACHUTE_HOME.") from error
    return path.read_text().strip()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
