"""The options of a command, as its program reads them: bundled, glued to a value, after `=`, abbreviated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

MAX_BUNDLED = 64  # letters in one word; nobody writes more


@dataclass(frozen=True)
class Spec:
    """What a program takes. `short` maps letters, `long` names, to `""` (no value), `":"` (one) or `"?"` (one
    that is glued to it, or none)."""

    short: dict[str, str]
    long: dict[str, str]
    families: tuple[str, ...] = ()  # how long options without a value of their own begin
    one_dash: bool = False  # its long options begin with one
    ends: frozenset[str] = frozenset()  # what follows these is not the program's own

    def resolved(self, name: str) -> str | None:
        """The whole name of a long option that may be abbreviated."""
        if name in self.long:
            return name
        found = [each for each in self.long if name and each.startswith(name)]
        if len(found) == 1:
            return found[0]
        return name if name.startswith(self.families) and self.families else None


@dataclass(frozen=True)
class Option:
    name: str  # `-k`, `--kill-after`
    value: str | None
    at: int  # the word that it stands in
    value_at: int | None = None  # the word that its value stands in, where that is another


@dataclass
class Given:
    options: list[Option] = field(default_factory=list)
    plain: list[int] = field(default_factory=list)  # the words that are none
    strange: list[int] = field(default_factory=list)  # options that the program is not known to have

    def values(self, *names: str) -> list[Option]:
        return [option for option in self.options if option.name in names]

    def has(self, *names: str) -> bool:
        return bool(self.values(*names))


@lru_cache(maxsize=256)
def spec(short: str = "", long: str = "", *, one_dash: bool = False, ends: str = "") -> Spec:
    """Short ones as for getopt (`ab:c::`); long ones as words (`all name= color? no-*`)."""
    letters: dict[str, str] = {}
    for position, letter in enumerate(short):
        if letter != ":":
            after = short[position + 1 : position + 3]
            letters[letter] = "?" if after == "::" else ":" if after.startswith(":") else ""
    words = long.split()
    kinds = {"=": ":", "?": "?"}
    names = {word.rstrip("=?"): kinds.get(word[-1], "") for word in words if not word.endswith("*")}
    families = tuple(word[:-1] for word in words if word.endswith("*"))
    return Spec(letters, names, families, one_dash, frozenset(ends.split()))


def read(of: Spec, texts: Sequence[str], *, until: int | None = None, start: int = 0) -> Given:
    """`until`: how many words that are no options may stand among them; what follows is not read."""
    given, at = Given(), start
    while at < len(texts):
        text = texts[at]
        if text == "--":
            given.plain += range(at + 1, len(texts))
            break
        if not text.startswith("-") or text == "-":
            if until is not None and len(given.plain) >= until:
                given.plain += range(at, len(texts))
                break
            given.plain.append(at)
            at += 1
            continue
        at = (_long if text.startswith("--") or of.one_dash else _bundle)(of, texts, at, given)
        if given.options and given.options[-1].name in of.ends:
            given.plain += range(at, len(texts))
            break
    return given


def _long(of: Spec, texts: Sequence[str], at: int, given: Given) -> int:
    name, has_value, value = texts[at].lstrip("-").partition("=")
    full = of.resolved(name)
    if full is None:
        given.strange.append(at)
        return at + 1
    takes_next = of.long.get(full) == ":" and not has_value
    return _take(texts, at, given, f"--{full}", value if has_value else None, takes_next=takes_next)


def _bundle(of: Spec, texts: Sequence[str], at: int, given: Given) -> int:
    text = texts[at]
    for position, letter in enumerate(text[1:], start=2):
        kind = of.short.get(letter)
        if kind is None or position > MAX_BUNDLED:
            given.strange.append(at)
            return at + 1
        if kind:
            glued = text[position:] or None
            takes_next = kind == ":" and glued is None
            return _take(texts, at, given, f"-{letter}", glued, takes_next=takes_next)
        given.options.append(Option(f"-{letter}", None, at))
    return at + 1


def _take(
    texts: Sequence[str], at: int, given: Given, name: str, value: str | None, *, takes_next: bool
) -> int:
    if takes_next and at + 1 < len(texts):
        given.options.append(Option(name, texts[at + 1], at, at + 1))
        return at + 2
    given.options.append(Option(name, value, at))
    return at + 1


def with_dashes(of: Spec, texts: Sequence[str]) -> list[str]:
    """`tar czf x y`, where the values of all letters stand behind the word, as `tar -c -z -f x y`."""
    if not texts or texts[0].startswith("-"):
        return list(texts)
    found, rest = [], list(texts[1:])
    for letter in texts[0]:
        found.append(f"-{letter}")
        if of.short.get(letter) == ":" and rest:
            found.append(rest.pop(0))
    return [*found, *rest]
