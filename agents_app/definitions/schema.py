"""What the front matter of an agent's file may say. Both shapes: the fields at the top, or below `agent:`."""

import re
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from agents_app.definitions.front_matter import FrontMatter, Where
from agents_app.tools.mcp.entries import ALL, NAME, OURS, entry
from permissions_app.rules.patterns import is_path_pattern
from sessions_app.access.models import TrustLevel
from sessions_app.models import SessionKind
from sessions_app.storable import is_storable

_TOOL = re.compile(r"[A-Za-z0-9_-]{1,256}")
_PART_OF_CRON = re.compile(r"(\*|\d{1,2}(-\d{1,2})?)(/\d{1,2})?(,(\*|\d{1,2}(-\d{1,2})?)(/\d{1,2})?)*")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))

LONGEST_TEXT = 100_000
LONGEST_LINE = 1_000
MOST_LISTED = 200


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("of_ours", "{said}", {"said": message})


def _text(text: str) -> str:
    if not is_storable(text):
        raise _wrong("it holds a character that is no text")
    return text


def _tool(name: str) -> str:
    if not _TOOL.fullmatch(name):
        raise _wrong(f"{name!r} is not the name of a tool, such as Read or Bash")
    return name


def _pattern(pattern: str) -> str:
    if not is_path_pattern(pattern):
        raise _wrong(f"{pattern!r} is not a path in the vault, such as Garden/**")
    return pattern


def _server(name: str) -> str:
    if not NAME.fullmatch(name):
        raise _wrong(f"{name!r} is not the name of a server: small letters, digits and dashes")
    if name in OURS:
        raise _wrong(f"{name!r} is Parachute's own server")
    return name


def _entry(given: dict[str, Any]) -> dict[str, Any]:
    if problem := entry("x", given).problem:
        raise _wrong(problem[:1].lower() + problem[1:].removesuffix("."))
    return given


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _wrong(f"{name!r} is not a time zone, such as Europe/Berlin") from error
    return name


def _cron(given: str) -> str:
    parts = given.split()
    if len(parts) != 5 or not all(map(_is_of_cron, parts, _RANGES)):
        raise _wrong("five parts were expected, as cron has them: 0 7 * * 1-5 is seven o'clock on weekdays")
    return " ".join(parts)


def _is_of_cron(part: str, bounds: tuple[int, int]) -> bool:
    numbers = [int(each) for each in re.findall(r"(?<!/)\b\d+", part)]
    steps = [int(each) for each in re.findall(r"/(\d+)", part)]
    return (
        _PART_OF_CRON.fullmatch(part) is not None
        and all(bounds[0] <= each <= bounds[1] for each in numbers)
        and 0 not in steps
    )


def _shape_of_servers(given: object) -> str:
    """A mistake is told by what was meant. No tag could be the name of a field: see `_is_of_pydantic`."""
    return "of-fields" if isinstance(given, dict) else "all-of-them" if given == ALL else "a-list"


Line = Annotated[str, Field(max_length=LONGEST_LINE), AfterValidator(_text)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_text)]
Name = Annotated[str, Field(max_length=100), AfterValidator(_text)]
Tools = Annotated[list[Annotated[str, AfterValidator(_tool)]], Field(max_length=MOST_LISTED)]
Patterns = Annotated[list[Annotated[str, AfterValidator(_pattern)]], Field(max_length=MOST_LISTED)]
Commands = Annotated[list[Line], Field(max_length=MOST_LISTED)]
Server = Annotated[str, AfterValidator(_server)]
Written = dict[Server, Annotated[dict[str, Any], AfterValidator(_entry)]]  # out, in the agent's own file
OneServer = Annotated[
    Annotated[Server, Tag("a-name")] | Annotated[Written, Tag("of-fields")],
    Discriminator(lambda given: "of-fields" if isinstance(given, dict) else "a-name"),
]
Servers = Annotated[
    Annotated[list[OneServer], Tag("a-list")]
    | Annotated[Written, Tag("of-fields")]
    | Annotated[Literal["all"], Tag("all-of-them")],
    Discriminator(_shape_of_servers),
    Field(max_length=MOST_LISTED),
]
Skill = Annotated[str, Field(max_length=64), AfterValidator(_text)]
Skills = Annotated[list[Skill] | Literal["all"], Field(max_length=MOST_LISTED)]
Seconds = Annotated[int, Field(gt=0, le=30 * 24 * 60 * 60)]


class _Fields(BaseModel):
    # Strict: what YAML made of an unquoted word (yes, 1.0, 2026-01-01) is not taken for another thing.
    model_config = ConfigDict(strict=True, extra="ignore")


class Permitted(_Fields):
    read: Patterns = []
    write: Patterns | None = None
    bash: bool | Commands = True
    tools: Tools | None = None
    spawn: list[Name] = []


class Fields(_Fields):
    name: Name = ""
    description: Line = ""
    model: Name = ""
    system_prompt: Text = ""
    tools: Tools | None = None
    mcpServers: Servers | None = None
    skills: Skills | None = None
    write_permissions: Patterns | None = None
    kind: Literal["worker", "orchestrator", "scheduled"] = "worker"
    trust: Literal["full", "vault", "sandboxed"] | None = None
    schedule: Annotated[str, AfterValidator(_cron)] | None = None
    timezone: Annotated[str, AfterValidator(_zone)] | None = None
    heartbeat: Text = ""
    checkup_minutes: Annotated[int, Field(gt=0, le=24 * 60)] | None = None
    activity_timeout_seconds: Seconds | None = None
    max_turns: Annotated[int, Field(gt=0, le=10_000)] | None = None
    timeout_seconds: Seconds | None = None
    budget_usd_per_day: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    spawn: list[Name] = []
    permissions: Permitted = Permitted()


assert ALL == "all"
assert set(TrustLevel.values) == {"full", "vault", "sandboxed"}
assert set(SessionKind.values) == {"worker", "orchestrator", "scheduled"}

# What other programs call the same thing.
OTHER_NAMES = {
    "mcp_servers": "mcpServers",
    "systemPrompt": "system_prompt",
    "writePermissions": "write_permissions",
    "trust_level": "trust",
    "trustLevel": "trust",
}


class Problem(Exception):
    """What is wrong in a file, for the person who wrote it."""

    def __init__(self, message: str, *, line: int | None = None, field: str = "") -> None:
        super().__init__(message)
        self.message, self.line, self.field = message, line, field

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash((self.message, self.line, self.field))

    def as_json(self) -> dict[str, Any]:
        return {"line": self.line, "field": self.field, "message": self.message}


def fields_of(matter: FrontMatter) -> tuple[Fields, list[Problem]]:
    """What can be taken, and what is wrong: where something is, the fields are those of an empty file."""
    nested = matter.values.get("agent")
    if nested is not None and not isinstance(nested, dict):
        return Fields(), [
            Problem("fields were expected below it", line=matter.line_of(("agent",)), field="agent")
        ]
    whole: dict[str, Any] = {}
    places: dict[str, Where] = {}
    for around, values in (((), matter.values), (("agent",), nested or {})):
        for name, value in values.items():
            known = OTHER_NAMES.get(name, name)
            if value is not None:  # `model:` with nothing behind it says nothing
                whole[known], places[known] = value, (*around, name)
    for name in ("tools", "skills"):
        if isinstance(given := whole.get(name), str) and given != ALL:  # "Read, Grep", as some write it
            whole[name] = [each.strip() for each in given.split(",") if each.strip()]
    try:
        return Fields.model_validate(whole), []
    except ValidationError as error:
        return Fields(), _problems(error, matter, places)


def _problems(error: ValidationError, matter: FrontMatter, places: dict[str, Where]) -> list[Problem]:
    """One for each field, from above down: of a value that may be two things, the first reading is told."""
    found: dict[str, Problem] = {}
    for each in error.errors():
        named = [part for part in each["loc"] if not _is_of_pydantic(part)]
        top, *below = named
        where: Where = (*places.get(str(top), (str(top),)), *below)
        name = ".".join(map(str, named))
        problem = Problem(_said(each), line=matter.line_of(where), field=name)
        found.setdefault(str(top) if len(named) == 1 or isinstance(below[0], int) else name, problem)
    return sorted(found.values(), key=lambda each: each.line or 0)


def _is_of_pydantic(part: str | int) -> bool:
    """Which of several readings it was, and that it was a key."""
    return isinstance(part, str) and (not part.isidentifier() or part in ("bool", "dict", "list", "str"))


_EXPECTED = {
    "string_type": "text was expected",
    "list_type": "a list was expected",
    "dict_type": "fields were expected below it",
    "model_type": "fields were expected below it",
    "bool_type": "true or false was expected",
    "int_type": "a whole number was expected",
    "float_type": "a number was expected",
}


def _said(error: ErrorDetails) -> str:
    kind, given = error["type"], error["input"]
    if kind in _EXPECTED:
        return f"{_EXPECTED[kind]}, and this is {_called(given)}"
    if kind == "literal_error":
        return f"{given!r} is not one of {error['ctx']['expected']}"
    if kind == "of_ours":
        return str(error["ctx"]["said"])
    return error["msg"][:1].lower() + error["msg"][1:]


def _called(value: Any) -> str:
    match value:
        case bool():
            return f"{str(value).lower()}; put it in quotes if it is text"
        case int() | float():
            return f"the number {value}; put it in quotes if it is text"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "fields"
        case _:
            return "a date; put it in quotes if it is text"
