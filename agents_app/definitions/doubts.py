"""What in a file counts for nothing, though somebody most likely meant it: a tool that is not here, and
a field whose name is nearly one of ours. The file runs all the same: other programs may keep fields in it."""

from collections.abc import Iterator
from difflib import get_close_matches

from agents_app.definitions.front_matter import FrontMatter, Where
from agents_app.definitions.schema import OTHER_NAMES, Fields, Permitted, Problem
from agents_app.tools.offered import OFFERED

NEARLY = 0.8  # of 1: one letter too many, too few, or two in the wrong order
OF_OTHERS = frozenset({"mode"})  # nearly `model`, and what another program calls something else
OF_A_SERVER = "mcp__"


def doubts_of(matter: FrontMatter) -> list[Problem]:
    """For a file that can be taken. In the order of its lines."""
    nested = matter.values.get("agent")
    found: list[Problem] = []
    for around, values in (((), matter.values), (("agent",), nested if isinstance(nested, dict) else {})):
        found += _misspelled(matter, around, values, [*Fields.model_fields, *OTHER_NAMES, "agent"])
        found += _unknown_tools(matter, (*around, "tools"), values.get("tools"))
        permissions = values.get("permissions")
        if isinstance(permissions, dict):
            below = (*around, "permissions")
            found += _misspelled(matter, below, permissions, list(Permitted.model_fields))
            found += _unknown_tools(matter, (*below, "tools"), permissions.get("tools"))
    return sorted(found, key=lambda each: each.line or 0)


def _misspelled(
    matter: FrontMatter, around: Where, values: dict[str, object], known: list[str]
) -> Iterator[Problem]:
    missing = [each for each in known if each not in values]
    for name in values:
        if name in known or name in OF_OTHERS:
            continue
        meant = get_close_matches(name.lower().replace("-", "_"), missing, n=1, cutoff=NEARLY)
        if meant:
            said = f"no field is called so, and what it says does not count. Is {meant[0]} meant?"
            yield Problem(said, line=matter.line_of((*around, name)), field=name[:100])


def _unknown_tools(matter: FrontMatter, where: Where, given: object) -> Iterator[Problem]:
    """Of a list, or of names with commas between them."""
    named = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    for at, each in enumerate(named):
        name = str(each).strip()
        if name and name not in OFFERED and not name.startswith(OF_A_SERVER):
            near = get_close_matches(name.capitalize(), OFFERED, n=1, cutoff=0.6)
            hint = f"Is {near[0]} meant?" if near else f"There are {', '.join(OFFERED)}."
            yield Problem(
                f"{name!r} is no tool here, and the agent does not get it. {hint}",
                line=matter.line_of((*where, at)),
                field=".".join(map(str, where)),
            )
