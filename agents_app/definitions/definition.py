"""What the server made of one file."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agents_app.definitions.doubts import doubts_of
from agents_app.definitions.front_matter import FrontMatter, NotRead, read
from agents_app.definitions.rights import Rights
from agents_app.definitions.schema import Fields, Problem, Servers, fields_of
from agents_app.rights.models import is_allowed_model
from agents_app.tools.offered import OFFERED
from sessions_app.storable import is_storable

DEFAULT = "default"
LONGEST_SLUG = 100
ENDING = ".md"
# Letters and digits of any language, in small letters and one form, in words with one dash between them.
SLUG = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")


@dataclass(frozen=True)
class Definition:
    """Of an agent's file, or, without a path, of the agent that is there without one."""

    slug: str
    path: str = ""  # in the vault
    fields: Fields = field(default_factory=Fields)
    prompt: str = ""  # empty: the preset
    wanted: Rights = field(default_factory=Rights)
    problems: tuple[Problem, ...] = ()  # with one of these it does not run
    doubts: tuple[Problem, ...] = ()  # with these it does
    text: str = field(default="", repr=False)
    model_line: int | None = None

    @property
    def name(self) -> str:
        return self.fields.name or self.slug.replace("-", " ").capitalize()

    @property
    def is_usable(self) -> bool:
        return not self.problems

    @property
    def trouble(self) -> str:
        """The first thing that is wrong, in one line."""
        first = self.problems[0]
        where = ", ".join(each for each in (self.path, f"line {first.line}" if first.line else "") if each)
        return f"{where}: {first.field + ': ' if first.field else ''}{first.message}"

    @property
    def digest(self) -> str:
        """Of the file: who changes it says which one they read."""
        return hashlib.sha256(self.text.encode(errors="surrogateescape")).hexdigest()

    @property
    def model(self) -> str:
        """The one that it names, if it may be used here."""
        return self.fields.model if self.fields.model and is_allowed_model(self.fields.model) else ""

    @property
    def model_problem(self) -> Problem | None:
        """It runs all the same, with the model of its workspace."""
        wanted = self.fields.model
        if not wanted or is_allowed_model(wanted):
            return None
        allowed = ", ".join(settings.PARACHUTE_MODELS)
        said = f"{wanted!r} is not allowed here, so the workspace's model runs. Choose one of: {allowed}."
        return Problem(said, line=self.model_line, field="model")

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        about_model = self.model_problem
        return (*self.problems, *((about_model,) if about_model else ()), *self.doubts)


def builtin() -> Definition:
    fields = Fields(name="Default", description="Claude with the notes of this folder, as they are.")
    return Definition(DEFAULT, fields=fields)


def slug_of(stem: str) -> str:
    """`Head Gardener` is `head-gardener`. Raises Problem."""
    shown = repr(stem[:60])
    if len(stem) > LONGEST_SLUG:
        raise Problem(f"The file's name has {len(stem)} characters; {LONGEST_SLUG} are taken: {shown}…")
    if any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co", "Cn") for each in stem):
        raise Problem(f"The file's name holds a character that cannot be seen: {shown}")
    slug = re.sub(r"[\s.]+", "-", unicodedata.normalize("NFC", stem.strip()).lower())
    if not is_slug(slug):
        raise Problem(
            f"The file's name is none that an agent can have: {shown}. Use letters, digits and dashes."
        )
    return slug


def is_slug(text: str) -> bool:
    in_one_form = unicodedata.normalize("NFC", text).lower() == text
    return in_one_form and 0 < len(text) <= LONGEST_SLUG and SLUG.fullmatch(text) is not None


def defined(slug: str, path: str, content: bytes) -> Definition:
    """Never raises: what is wrong is in `problems`."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        shown = content.decode(errors="replace")
        return Definition(slug, path, problems=(Problem("This is no text in UTF-8.", line=line),), text=shown)
    if not is_storable(text):
        line = text[: text.index("\0")].count("\n") + 1
        said = "There is a character in it that is no text (NUL)."
        return Definition(slug, path, problems=(Problem(said, line=line),), text=text)
    try:
        matter = read(text)
    except NotRead as problem:
        return Definition(slug, path, problems=(Problem(problem.message, line=problem.line),), text=text)
    fields, problems = fields_of(matter)
    return Definition(
        slug,
        path,
        fields=fields,
        prompt="\n\n".join(part for part in (fields.system_prompt.strip(), matter.body) if part),
        wanted=_rights(fields),
        problems=tuple(problems),
        doubts=() if problems else tuple(doubts_of(matter)),
        text=text,
        model_line=_line_of_model(matter),
    )


def _line_of_model(matter: FrontMatter) -> int | None:
    return matter.lines.get(("agent", "model")) or matter.lines.get(("model",))


def _rights(fields: Fields) -> Rights:
    permissions = fields.permissions
    tools = _first(fields.tools, permissions.tools)
    if permissions.bash is False:
        tools = [each for each in tools or OFFERED if each != "Bash"]
    return Rights(
        kind=fields.kind,
        trust=fields.trust,
        tools=_unique(tools),
        write=_unique(_first(fields.write_permissions, permissions.write)),
        read=_unique(permissions.read) or (),
        bash=(_unique(permissions.bash) or ()) if isinstance(permissions.bash, list) else (),
        servers=_servers(fields.mcpServers),
        spawn=_unique([*fields.spawn, *permissions.spawn]) or (),
        schedule=fields.schedule or "",
        budget=fields.budget_usd_per_day,
    )


def _first(*given: list[str] | None) -> list[str] | None:
    return next((each for each in given if each is not None), None)


def _unique(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(dict.fromkeys(names))


def _servers(given: Servers) -> tuple[str, ...]:
    """One that is written out in the file is named with what it is: another command is another server. All of
    its hash is kept: somebody could find two servers, one of them harmless, that share a part of it."""
    if isinstance(given, list):
        return _unique(given) or ()
    return tuple(f"{name}={_hash(config)}" for name, config in given.items())


def _hash(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()
