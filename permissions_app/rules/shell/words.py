"""Quotes off, braces and globs open, variables filled in where the line itself says what they hold.

While a word is put together, characters that were quoted are moved to a private range, so that a quoted `*`
stays one. `UNKNOWN` stands for what only the run will tell.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from tree_sitter import Node

from permissions_app.rules.shell.braces import MAX_WORDS, open_braces
from permissions_app.rules.shell.parse import Unreadable, text_of

if TYPE_CHECKING:
    from permissions_app.rules.shell.scope import Scope

UNKNOWN = "\0"
MAX_ALTERNATIVES = 24

_MEANT = "{},*?[]~\\ \t\n"
_MARK = {ord(c): chr(0xE000 + ord(c)) for c in _MEANT}
_UNMARK: dict[int, str | None] = {0xE000 + ord(c): c for c in _MEANT} | {0xE002: None}
_AS_PATTERN = {**_UNMARK, **{0xE000 + ord(c): f"[{c}]" for c in "*?["}}
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r"\\([$`\"\\\n])")
_BLANKS = re.compile(r"[ \t\n]+")
_WILD = re.compile(r"[*?\[]")
_IF_EMPTY = frozenset({":-", "-", ":=", "=", ":+", "+", ":?", "?"})
# Both are characters that the parser refuses.
_MAYBE = "\ue001"  # in what a word may be
_QUOTED = "\ue002"  # quotes with nothing in them: a word of its own, or none
_SUBSTITUTION = re.compile(r"(?<!\\)(?:`|\$\(|[<>]\()")


@dataclass(frozen=True)
class Word:
    text: str
    pattern: str | None = None  # as a glob, where it is one

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text


class Ways(list[tuple[Word, ...]]):
    """Each way to read a word, as the words that it becomes. Behind the first `certain` of them stand those
    that it may be, where only the run will tell what it is."""

    certain: int


@dataclass(frozen=True)
class Hooks:
    """What expanding asks of the line around it."""

    run: Callable[[Node], str | None]  # looks into a substitution; says what it prints, where that is clear
    look: Callable[[str], None]  # reads code that stands in text
    assign: Callable[[str, set[str]], None]
    unclear: Callable[[], None]  # what is read runs what nobody sees
    reveal: Callable[[], None]  # a variable was read whose name nobody knows


class Expander:
    """Turns nodes into words."""

    def __init__(self, scope: "Scope", hooks: Hooks) -> None:
        self.scope, self._hooks = scope, hooks

    def words(self, node: Node) -> Ways:
        spellings = self._spellings(node, quoted=False)
        certain = [text for text in spellings if _MAYBE not in text] or [UNKNOWN]
        maybe = [text.replace(_MAYBE, "") for text in spellings if _MAYBE in text]
        ways, also = (
            [tuple(_words_of(text, tildes)) for text in texts for tildes in self._tildes(text)]
            for texts in (certain, maybe)
        )
        found = Ways([*ways, *also])
        found.certain = len(ways)
        return found

    def texts(self, node: Node) -> set[str]:
        """Its values where nothing is split or expanded: on the right of a `=`, or in `<<<`."""
        spellings = [text.replace(_MAYBE, "") for text in self._spellings(node, quoted=False)]
        return {_plain(_with_home(text, tildes)) for text in spellings for tildes in self._tildes(text)}

    def _tildes(self, text: str) -> list[dict[str, str]]:
        """What `~`, `~+` and `~-` stand for."""
        if "~" not in text:
            return [{}]
        values = [sorted(self.scope.values(name)) for name in ("HOME", "PWD", "OLDPWD")]
        ways = range(max(map(len, values)))
        return [
            dict(zip(("~", "~+", "~-"), (each[way % len(each)] for each in values), strict=True))
            for way in ways
        ]

    def _spellings(self, node: Node, *, quoted: bool) -> list[str]:
        kind = node.type
        if kind == "raw_string":
            return [text_of(node)[1:-1].translate(_MARK) or _QUOTED]
        if kind == "ansi_c_string":
            return [_ANSI.sub(_ansi, text_of(node)[2:-1]).translate(_MARK) or _QUOTED]
        if kind in {"string", "translated_string"}:
            return [text or _QUOTED for text in self._joined(node, quoted=True)]
        if kind in {"simple_expansion", "expansion"}:
            return self._variable(node, quoted=quoted)
        if kind in {"command_substitution", "process_substitution"}:
            printed = self._hooks.run(node)
            return ["/dev/fd/63" if kind.startswith("process") else self._filled(printed, quoted=quoted)]
        if kind in {"arithmetic_expansion", "array"}:
            self.scope.calculates |= kind == "arithmetic_expansion"
            self._inside(node)
            return [UNKNOWN]
        if node.child_count:
            return self._joined(node, quoted=quoted)
        return [self._literal(text_of(node), quoted=quoted)]

    def _joined(self, node: Node, *, quoted: bool) -> list[str]:
        pieces: list[list[str]] = []
        source, start = node.text or b"", node.start_byte
        here = 0
        for child in node.children:
            begin, end = child.start_byte - start, child.end_byte - start
            if begin > here:
                pieces.append([self._literal(source[here:begin].decode(), quoted=quoted)])
            if child.type not in {'"', '$"'} and not _is_translated(child):
                pieces.append(self._spellings(child, quoted=quoted))
            here = end
        if here < len(source):
            pieces.append([self._literal(source[here:].decode(), quoted=quoted)])
        count = 1
        for piece in pieces:
            count *= len(piece)
            if count > MAX_ALTERNATIVES:
                if any(_MAYBE in text for piece in pieces for text in piece):
                    self._hooks.unclear()  # nobody writes `${x:-a}${x:-b}${x:-c}…` who has nothing to hide
                return [UNKNOWN, *(_MAYBE + text for text in _each_once(pieces))]
        return ["".join(parts) for parts in product(*pieces)]

    def _literal(self, raw: str, *, quoted: bool) -> str:
        if _SUBSTITUTION.search(raw):
            self._hooks.look(raw)
            return UNKNOWN
        if quoted:
            return _ESCAPED_IN_QUOTES.sub(lambda m: m[1].strip("\n"), raw).translate(_MARK)
        return _ESCAPED.sub(lambda m: m[1].strip("\n").translate(_MARK), raw)

    def _variable(self, node: Node, *, quoted: bool) -> list[str]:
        named, text = list(_named(node)), text_of(node)
        name = text_of(named[0]) if named else ""
        if text[1:2].isdigit() and len(name) > 1:  # `$1nv` is `$1` and `nv`: without braces it is one digit
            values = sorted(self.scope.values(name[0]))
            return [self._filled(value, quoted=quoted) + name[1:] for value in values]
        if text in {f"${name}", f"${{{name}}}"} and name != "_":
            return [self._filled(value, quoted=quoted) for value in sorted(self.scope.values(name))]
        operator = next((child.type for child in node.children if child.type in _IF_EMPTY), "")
        if "?" in operator:  # it ends where that is empty
            self._inside(node)
            return [self._filled(value, quoted=quoted) for value in sorted(self.scope.values(name) - {""})]
        if text.startswith("${!"):
            self._hooks.reveal()
        self._inside(node)
        if text.startswith("${#"):
            return [UNKNOWN]
        self.scope.calculates |= ":" in text or "[" in text
        maybe = {value for value in self.scope.values(name) if value != UNKNOWN}
        if text.endswith("@P}"):
            self._hooks.unclear()
            for value in maybe:
                self._hooks.look(value)
        if operator:
            default = {value for child in named[1:] for value in self.texts(child)}
            maybe |= default - {UNKNOWN}
            if "=" in operator:
                self._hooks.assign(name, default or {""})
        return [UNKNOWN, *(_MAYBE + self._filled(value, quoted=quoted) for value in sorted(maybe))]

    def _inside(self, node: Node) -> None:
        for child in node.named_children:
            self._spellings(child, quoted=True)

    def _filled(self, value: str | None, *, quoted: bool) -> str:
        if value is None or (not quoted and self.scope.splits_oddly):
            return UNKNOWN
        # Unquoted, a value is split at blanks and its globs are opened, but no brace or quote in it counts.
        marks = _MARK if quoted else {k: v for k, v in _MARK.items() if chr(k) in "{},~\\"}
        return value.translate(marks)


def _ansi(match: re.Match[str]) -> str:
    for digits, base in ((match[1], 16), (match[2], 16), (match[3], 16), (match[4], 8)):
        if digits:
            code = int(digits, base)
            if not 0 < code < 0xD800:
                raise Unreadable  # a NUL ends the word, others differ by locale
            return chr(code)
    if match[5]:
        return chr(ord(match[5]) & 0x1F)
    return _ANSI_LETTERS.get(match[6], match[6] if match[6] in "\\'\"?" else f"\\{match[6]}")


def _named(node: Node) -> Iterator[Node]:
    """The name of the variable, and what else stands in its braces."""
    for child in node.named_children:
        if child.type == "subscript":
            yield child.named_children[0]
        elif child.type != "comment":
            yield child


def _is_translated(node: Node) -> bool:
    """The `$` of `$"…"`."""
    after = node.next_sibling
    return node.type == "$" and after is not None and after.type == "string"


def _each_once(pieces: list[list[str]]) -> list[str]:
    """Too many ways to put them together: each at least once."""
    count = min(MAX_ALTERNATIVES, max(map(len, pieces)))
    return ["".join(piece[way % len(piece)] for piece in pieces) for way in range(count)]


def _words_of(marked: str, tildes: dict[str, str]) -> Iterator[Word]:
    texts = _BLANKS.split(marked)
    expanded = [text for piece in texts for text in open_braces(piece)]
    if len(expanded) > MAX_WORDS:
        raise Unreadable
    for text in filter(None, expanded):
        text = _with_home(text, tildes)
        is_glob = _WILD.search(text) is not None
        yield Word(_plain(text), text.translate(_AS_PATTERN).replace(UNKNOWN, "*") if is_glob else None)


def _plain(marked: str) -> str:
    return marked.translate(_UNMARK)


def _with_home(marked: str, tildes: dict[str, str]) -> str:
    if not marked.startswith("~"):
        return marked
    user, slash, rest = marked.partition("/")
    if user in tildes:
        return tildes[user] + slash + rest
    # `~2` and `~-1` are places in the stack of `pushd`.
    return (UNKNOWN if re.fullmatch(r"~[-+]?\d+", user) else with_home(_plain(user))) + slash + rest


def with_home(text: str) -> str:
    """`~/x` as a whole path."""
    return text if UNKNOWN in text.partition("/")[0] else os.path.expanduser(text)  # noqa: PTH111
