"""What a definition says about rights, and how what it says meets what a person accepted."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import Any, Self

from agents_app.rights.trust import narrowest
from agents_app.tools.mcp.entries import ALL
from permissions_app.rules.patterns import matches
from sessions_app.models import SessionKind

Names = tuple[str, ...]


@dataclass(frozen=True)
class Rights:
    """As they stand here they are those of the default agent, with which each new file begins."""

    kind: str = SessionKind.WORKER.value
    trust: str | None = None  # None: whatever its workspace and its person allow
    tools: Names | None = None  # None: all that are offered
    write: Names | None = None  # None: wherever its session may
    read: Names = ()  # hosts and folders beyond what is open anyway
    bash: Names = ()  # beginnings of commands that need nobody's answer
    servers: Names = ()
    spawn: Names = ()
    schedule: str = ""
    budget: float | None = None  # dollars a day; None: no limit of its own

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Self:
        known = {each.name for each in fields(cls)}
        named = {name: _tuple(value) for name, value in stored.items() if name in known}
        return cls(**named)

    def as_json(self) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @property
    def hash(self) -> str:
        return sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()

    def narrowed(self, wanted: Self) -> Self:
        """What counts of `wanted` where these were accepted: the less of both, right by right."""
        met = {each.name: _MEET[each.name](self, wanted, each.name) for each in fields(self)}
        return type(self)(**met)

    def beyond(self, wanted: Self) -> list[str]:
        """The rights of which `wanted` has more than these: what waits for a person."""
        counts = self.narrowed(wanted)
        return [
            each.name for each in fields(self) if getattr(counts, each.name) != getattr(wanted, each.name)
        ]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Meet = Callable[[Rights, Rights, str], Any]


def _of_both(held: Rights, wanted: Rights, name: str) -> Names:
    allowed = getattr(held, name)
    return tuple(each for each in getattr(wanted, name) if each in allowed)


def _servers(held: Rights, wanted: Rights, name: str) -> Names:
    """All that the vault has are more than some of them, and do not cover one that a file writes out."""
    mine, theirs = held.servers, wanted.servers
    if ALL in theirs and ALL not in mine:
        return tuple(each for each in mine if "=" not in each or each in theirs)
    return tuple(each for each in theirs if each in mine or (ALL in mine and "=" not in each))


def _of_both_or_all(held: Rights, wanted: Rights, name: str) -> Names | None:
    mine, theirs = getattr(held, name), getattr(wanted, name)
    if mine is None or theirs is None:
        return theirs if mine is None else mine  # type: ignore[no-any-return]
    return tuple(each for each in theirs if each in mine)


def _of_both_folders(held: Rights, wanted: Rights, name: str) -> Names | None:
    if held.write is None or wanted.write is None:
        return _of_both_or_all(held, wanted, name)
    return tuple(each for each in wanted.write if _lies_in(each, held.write))


def _lies_in(pattern: str, allowed: Iterable[str]) -> bool:
    """Whether each path that it covers is covered: where that cannot be seen at once, it is not."""
    if pattern in allowed:
        return True
    plain = pattern.removesuffix("/**")
    return "*" not in plain and any(
        each.endswith("/**") and (plain == each.removesuffix("/**") or matches(each, plain))
        for each in allowed
    )


def _trust(held: Rights, wanted: Rights, name: str) -> str | None:
    said = [each for each in (held.trust, wanted.trust) if each is not None]
    return narrowest(*said).value if said else None


def _budget(held: Rights, wanted: Rights, name: str) -> float | None:
    said = [each for each in (held.budget, wanted.budget) if each is not None]
    return min(said, default=None)


def _kind(held: Rights, wanted: Rights, name: str) -> str:
    return wanted.kind if wanted.kind == SessionKind.WORKER else held.kind


def _schedule(held: Rights, wanted: Rights, name: str) -> str:
    """Another time is as good as new; none at all is less."""
    return held.schedule if wanted.schedule else ""


_MEET: dict[str, Meet] = {
    "kind": _kind,
    "trust": _trust,
    "tools": _of_both_or_all,
    "write": _of_both_folders,
    "read": _of_both,
    "bash": _of_both,
    "servers": _servers,
    "spawn": _of_both,
    "schedule": _schedule,
    "budget": _budget,
}
