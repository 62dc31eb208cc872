"""The deny list: what no agent reads or writes, at any trust.

Said twice: here for the gate, and as rules for the CLI (`cli_deny_rules`), which looks at each file that Grep
and Glob come across and that the gate never hears of.
"""

import re
import string
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from permissions_app.rules.control_files import steers
from permissions_app.rules.ground import Ground, ground_of
from permissions_app.rules.paths import Place, fold, folded_parts, is_below
from permissions_app.rules.private_keys import has_pem_header, private_keys_in
from permissions_app.rules.setting import Setting

SECRET_NAMES = (
    ".env*",  # but not EXAMPLE
    "credentials.json",
    "*.pem",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".ssh",
    ".aws",
    ".netrc",
    ".git-credentials",
)
EXAMPLE = ".env.example"

_SECRET = re.compile("|".join(translate(name) for name in SECRET_NAMES))
# The server's environment and open files are here, and `/proc/self` is another process to the CLI than to us.
# `?` is what only the run of a command will tell, such as `$PPID`.
_PROCESS = re.compile(r"/proc/(\d+|\?|self|thread-self)(/|$)")


def is_secret_name(folded: str) -> bool:
    return folded != EXAMPLE and _SECRET.match(folded) is not None


def is_closed(names: Sequence[str]) -> bool:
    """To the server's own index and pages, by a path's names from the vault's root: what no agent reads, and
    what steers agents, which is looked at where it is changed."""
    folded = [fold(name) for name in names]
    return any(map(is_secret_name, folded)) or steers(folded)


def is_secret(names: Sequence[str]) -> bool:
    """The same without what steers. A `.key` may be a private one: that is looked into for agents only."""
    folded = [fold(name) for name in names]
    return any(is_secret_name(name) or name.endswith(".key") for name in folded)


@lru_cache(maxsize=512)
def has_secret_name(text: str) -> bool:
    """Does any name in this path, or in the literal parts of this glob, stand on the list?"""
    return any(is_secret_name(part) for part in folded_parts(text))


def what_is_denied(place: Place, ground: Ground) -> str | None:
    """What the path is, in words, where it is on the list."""
    for stop in place.stops:
        if has_secret_name(stop):
            return "a file that usually holds secrets"
        if _PROCESS.match(fold(stop)):
            return "the inside of a running process"
        if _is_ours(stop, ground):
            return "the server's own folder"
        if _is_transcript(stop, ground):
            return "a transcript of a session"
        if ground.is_closed(stop):
            return "a file that came with a message of another chat"
    if any(end.lower().endswith(".key") and has_pem_header(Path(end)) for end in place.ends):
        return "a private key"
    return None


def _is_ours(path: str, ground: Ground) -> bool:
    if ground.own_config is not None and _is_below_any(path, ground.own_config):
        return True
    return _is_below_any(path, ground.home) and not ground.in_scratch(path)


def _is_transcript(path: str, ground: Ground) -> bool:
    return any(is_below(fold(path), fold(folder)) for folder in _transcripts(ground))


def _is_below_any(path: str, folder: Place) -> bool:
    return any(is_below(fold(path), fold(stop)) for stop in folder.stops)


def _transcripts(ground: Ground) -> list[str]:
    return [f"{stop.rstrip('/')}/.claude/projects" for stop in ground.vault.stops]


# For the CLI. Measured with 2.1.326: without `//` in front a pattern holds in the working directory only; one
# that fits a folder closes all of it; case is ignored; nothing says "not", neither a rule nor a `[class]`.

_OTHER_CHARACTERS = string.ascii_lowercase + string.digits + " +,.=@_~"


def cli_deny_rules(setting: Setting) -> list[str]:
    """The list as `permissions.deny` of the CLI's settings, for one start of a process."""
    ground = ground_of(setting)
    patterns = [
        *(f"//**/{name}" for name in SECRET_NAMES if name != ".env*"),
        "//**/.env",
        *(f"//**/.env{rest}" for rest in _names_other_than(EXAMPLE.removeprefix(".env"))),
        *(f"//proc/{process}" for process in ("[0-9]*", "self", "thread-self")),
        *(f"/{_literal(folder)}" for folder in _transcripts(ground)),
        *_own_folders(ground),
        *(f"/{_literal(str(file))}" for file in sorted(setting.closed_files)),
        *_private_keys(setting),
    ]
    return [f"Read({pattern})" for pattern in dict.fromkeys(patterns)]


def _own_folders(ground: Ground) -> Iterator[str]:
    scratches = ground.scratch.stops if ground.scratch else ()
    for stop in ground.home.stops:
        kept = next((scratch for scratch in scratches if is_below(scratch, stop)), None)
        yield from _all_but(kept, stop) if kept else [f"/{_literal(stop)}"]
    yield from (f"/{_literal(stop)}" for stop in (ground.own_config.stops if ground.own_config else ()))


def _all_but(kept: str, folder: str) -> Iterator[str]:
    """Everything in `folder` but `kept`: at each step down to it, all names but the next."""
    for name in kept.removeprefix(folder).strip("/").split("/"):
        yield from (f"/{_literal(folder)}/{other}" for other in _names_other_than(name))
        folder = f"{folder}/{name}"


def _names_other_than(name: str) -> Iterator[str]:
    """Patterns that together match every name but this one: each differs first at another character."""
    for position, character in enumerate(name):
        start = _literal(name[:position])
        if start:
            yield start
        others = _OTHER_CHARACTERS.replace(character.lower(), "") + "\u00a1-\uffff"
        yield f"{start}[{others}{'' if character == '-' else '-'}]*"
    yield f"{_literal(name)}?*"


def _literal(path: str) -> str:
    """A `?` for each character with a meaning of its own: a backslash does not work for all of them."""
    return re.sub(r"[\[\]*?!#\\{}()\ud800-\udfff]", "?", path)


def _private_keys(setting: Setting) -> Iterator[str]:
    """A rule cannot say "with a PEM header", so the keys are named one by one."""
    for folder in dict.fromkeys((setting.vault, setting.working_directory)):
        keys = private_keys_in(folder)
        if keys is None:
            yield f"/{_literal(str(folder))}/**/*.key"  # too much to look through: all of them
        else:
            yield from (f"/{_literal(str(key))}" for key in keys)
