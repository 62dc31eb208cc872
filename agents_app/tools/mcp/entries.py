"""One entry of `.mcp.json`, or of an agent's file: what a server is, in the words of its author."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from permissions_app.rules.hosts import host_of, is_public
from permissions_app.rules.paths import NotUnderstood
from sessions_app.storable import is_storable

NAME = re.compile(r"[a-z0-9-]{1,64}")
OURS = frozenset({"parachute", "orchestration", "curator"})  # servers that a vault may not name
ALL = "all"  # in an agent's file: each that is accepted
MASK = "•••"
LONGEST = 4_000  # characters of one text
MOST = 100  # arguments, variables, headers
VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<else>[^{}]*))?\}")
VAULT = "VAULT"  # the one name that is no secret: where the vault lies
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_REFERS = re.compile(r"(?:(?:Bearer|Basic|Token) )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_UP_TO_PATH = re.compile(r"(?:[^:/?#]*://)?[^/?#]*")  # of what is written: `${A:-/}` puts an end to a host
_OF_OURS = "PARACHUTE_"  # a process is known by such a variable


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("of_ours", "{said}", {"said": message})


def _text(text: str) -> str:
    if not is_storable(text) or "\n" in text or "\r" in text:
        raise _wrong("it holds a character that cannot stand here")
    if "${" in VARIABLE.sub("", text):
        raise _wrong("“${” begins the name of a secret, as in ${TOKEN}, and this is none")
    return text


def _plain(text: str) -> str:
    """Every process of the machine can read a command line."""
    if any(each["name"] != VAULT for each in VARIABLE.finditer(text)):
        raise _wrong("a command line is no place for a secret. Give it in env, and read it there")
    return text


def _variable(name: str) -> str:
    if not _VARIABLE_NAME.fullmatch(name) or name.startswith(_OF_OURS):
        raise _wrong(f"{name[:60]!r} is no name for a variable here")
    return name


def _header(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise _wrong(f"{name[:60]!r} is no name of a header")
    return name


def _address(url: str) -> str:
    plain = VARIABLE.sub("x", url)
    try:
        parts = urlsplit(plain)
        host_of(plain)
    except (ValueError, NotUnderstood):
        raise _wrong("an address was expected, such as https://example.org/mcp") from None
    if "${" in _UP_TO_PATH.match(url)[0] or parts.username is not None:  # type: ignore[index]
        raise _wrong("its host must be written out, without a secret in it")
    return url


Text = Annotated[str, Field(max_length=LONGEST), AfterValidator(_text)]
Word = Annotated[Text, AfterValidator(_plain)]
Variables = Annotated[dict[Annotated[str, AfterValidator(_variable)], Text], Field(max_length=MOST)]
Headers = Annotated[dict[Annotated[str, AfterValidator(_header)], Text], Field(max_length=MOST)]


class _Config(BaseModel):
    # What is not known is left alone: other programs keep fields of theirs there.
    model_config = ConfigDict(strict=True, extra="ignore")

    approval: Literal["ask"] | None = None


class Stdio(_Config):
    type: Literal["stdio"] = "stdio"
    command: Annotated[Word, Field(min_length=1)]
    args: Annotated[list[Word], Field(max_length=MOST)] = []
    env: Variables = {}


class Remote(_Config):
    type: Literal["http", "sse"]
    url: Annotated[Text, AfterValidator(_address)]
    headers: Headers = {}


Config = Stdio | Remote


@dataclass(frozen=True)
class Entry:
    """With a `problem` it never starts, whoever accepted it."""

    name: str
    config: Config | None = field(default=None, repr=False)
    problem: str = ""

    @property
    def hash(self) -> str:
        """Of what it does: the order of its fields, and fields of other programs, change nothing."""
        assert self.config is not None
        text = json.dumps(self.config.model_dump(exclude_none=True), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def is_named(self) -> bool:
        """By a name that a server can have: others have no page of their own."""
        return not problem_of_name(self.name)

    @property
    def kind(self) -> str:
        return self.config.type if self.config else ""

    @property
    def is_process(self) -> bool:
        return isinstance(self.config, Stdio)

    @property
    def asks(self) -> bool:
        return self.config is not None and self.config.approval == "ask"

    @property
    def is_local(self) -> bool:
        """Served by this computer, or by its network."""
        if not isinstance(self.config, Remote):
            return False
        try:
            return not is_public(VARIABLE.sub("x", self.config.url))
        except NotUnderstood:
            return True

    @property
    def host(self) -> str:
        return host_of(VARIABLE.sub("x", self.config.url)) if isinstance(self.config, Remote) else ""

    @property
    def variables(self) -> list[str]:
        """The secrets that it asks for and cannot do without."""
        asked = (each for text in self._texts() for each in VARIABLE.finditer(text))
        return sorted({each["name"] for each in asked if each["else"] is None and each["name"] != VAULT})

    @property
    def all_variables(self) -> set[str]:
        """Those too that it can do without."""
        return {each["name"] for text in self._texts() for each in VARIABLE.finditer(text)} - {VAULT}

    @property
    def what(self) -> str:
        """In one line, for people: without a secret that somebody wrote out."""
        if isinstance(self.config, Stdio):
            return " ".join((self.config.command, *self.config.args))
        return self.config.url.partition("?")[0] if self.config else ""

    def masked(self) -> dict[str, Any]:
        """As it is shown: of what may be a secret only the names."""
        if self.config is None:
            return {}
        dumped = self.config.model_dump(exclude_none=True)
        shown = {key: value for key, value in dumped.items() if value not in ([], {})}
        for kept in ("env", "headers"):
            if kept in shown:
                shown[kept] = {name: _shown(value) for name, value in shown[kept].items()}
        if isinstance(self.config, Remote) and "?" in self.config.url:
            shown["url"] = f"{self.what}?{MASK}"
        return shown

    def resolved(self, values: Mapping[str, str]) -> dict[str, Any]:
        """As it is started. Raises KeyError with the name of a secret that is not there."""
        assert self.config is not None

        def put(text: str) -> str:
            return VARIABLE.sub(lambda each: _value(each, values), text)

        match self.config:
            case Stdio(command=command, args=args, env=env):
                return {
                    "type": "stdio",
                    "command": put(command),
                    "args": [put(each) for each in args],
                    "env": {key: put(value) for key, value in env.items()},
                }
            case Remote(type=kind, url=url, headers=headers):
                return {
                    "type": kind,
                    "url": put(url),
                    "headers": {key: put(value) for key, value in headers.items()},
                }

    def _texts(self) -> Iterator[str]:
        match self.config:
            case Stdio(env=env):
                yield from env.values()
            case Remote(url=url, headers=headers):
                yield url
                yield from headers.values()


def entry(name: object, given: object) -> Entry:
    """Never raises: what is wrong is in `problem`."""
    shown = str(name)[:100]
    if problem := problem_of_name(shown):
        return Entry(shown, problem=problem)
    if not isinstance(given, Mapping):
        return Entry(shown, problem="Fields were expected here, such as a command or a url.")
    kind = _kind_of(given)
    if kind is None:
        return Entry(shown, problem="Say what it is: a command to start, or a url with the type http or sse.")
    try:
        return Entry(shown, (Stdio if kind == "stdio" else Remote).model_validate({**given, "type": kind}))
    except ValidationError as error:
        return Entry(shown, problem=_said(error))


def problem_of_name(name: str) -> str:
    if not NAME.fullmatch(name):
        return "A server's name has small letters, digits and dashes, 64 at most. Rename this one."
    if name in OURS:
        return f"{name} is Parachute's own server. Give this one another name."
    if name == ALL:
        return "all means all servers. Give this one another name."
    return ""


def _kind_of(given: Mapping[str, object]) -> str | None:
    kind = given.get("type", given.get("transport"))
    if kind in ("streamable-http", "streamableHttp", "streamable_http"):
        return "http"
    if kind is None:
        return "stdio" if "command" in given else "http" if "url" in given else None
    return str(kind) if kind in ("stdio", "http", "sse") else None


def _said(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "[key]")
    of_ours = first["type"] == "of_ours"
    said = str(first["ctx"]["said"]) if of_ours else first["msg"][:1].lower() + first["msg"][1:]
    return f"{where[:100]}: {said}."


def _shown(value: str) -> str:
    """A reference is no secret, and tells which one is meant."""
    return value if _REFERS.fullmatch(value) else MASK


def _value(found: re.Match[str], values: Mapping[str, str]) -> str:
    known = values.get(found["name"], found["else"])
    if known is None:
        raise KeyError(found["name"])
    return known
