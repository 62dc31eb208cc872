"""Quotes off, braces and globs open, variables filled in where the line itself says what they hold.

While a word is put together, characters that were quoted are moved to a private range, so that a quoted `*`
stays one. `UNKNOWN` stands for what only the run will tell.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product

from tree_sitter import Node

from permissions_app.rules.shell.parse import Unreadable, text_of

UNKNOWN = "\0"
MAX_ALTERNATIVES = 24
MAX_WORDS = 400

_MEANT = "{},*?[]~\\ \t\n"
_MARK = {ord(c): chr(0xE000 + ord(c)) for c in _MEANT}
_UNMARK = {0xE000 + ord(c): c for c in _MEANT}
_AS_PATTERN = {**_UNMARK, **{0xE000 + ord(c): f"[{c}]" for c in "*?["}}
_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?\d+)?")
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
_SUBSTITUTION = re.compile(r"(?<!\\)(?:`|\$\(|[<>]\()")


@dataclass(frozen=True)
class Word:
    text: str
    pattern: str | None = None  # as a glob, where it is one

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text


@dataclass
class Scope:
    """What the line says so far of its variables, and where it stands. A value once given is never forgotten:
    who knows which branch ran."""

    directory: str | None
    variables: dict[str, set[str] | None] = field(default_factory=dict)
    splits_oddly: bool = False  # IFS was set

    def values(self, name: str) -> set[str]:
        found = self.variables.get(name, set())
        if found is None:
            return {UNKNOWN}
        if name == "HOME":
            return {os.path.expanduser("~"), *found}  # noqa: PTH111
        if name == "PWD":
            return {self.directory or UNKNOWN, *found}
        return found or {UNKNOWN}

    def assign(self, name: str, values: set[str], *, adds: bool) -> None:
        before = self.variables.get(name, set())
        if adds and before:
            values = values | {a + b for a, b in product(before, values)}
        all_values = None if before is None else before | values
        self.variables[name] = all_values if all_values and len(all_values) <= MAX_ALTERNATIVES else None

    def go_to(self, word: Word | None) -> None:
        """After a `cd`: relative paths begin elsewhere, or nobody can say where."""
        if word is None:
            self.directory = os.path.expanduser("~")  # noqa: PTH111
        elif not word.known or word.pattern or word.text.startswith("-") or self.directory is None:
            absolute = word.known and not word.pattern and word.text.startswith("/")
            self.directory = word.text if absolute else None
        else:
            self.directory = os.path.join(self.directory, word.text)  # noqa: PTH118


class Expander:
    """Turns nodes into words. `run` looks into a substitution and says what it prints, where that is clear;
    `look` reads code that the parser left as text."""

    def __init__(self, scope: Scope, run: Callable[[Node], str | None], look: Callable[[str], None]) -> None:
        self.scope, self._run, self._look = scope, run, look

    def words(self, node: Node) -> list[tuple[Word, ...]]:
        """Each way to read the node, as the words that it becomes."""
        return [tuple(_words_of(text)) for text in self._spellings(node, quoted=False)]

    def texts(self, node: Node) -> set[str]:
        """Its values where nothing is split or expanded: on the right of a `=`, or in `<<<`."""
        return {_plain(_with_home(text)) for text in self._spellings(node, quoted=False)}

    def _spellings(self, node: Node, *, quoted: bool) -> list[str]:
        kind = node.type
        if kind == "raw_string":
            return [text_of(node)[1:-1].translate(_MARK)]
        if kind == "ansi_c_string":
            return [_ANSI.sub(_ansi, text_of(node)[2:-1]).translate(_MARK)]
        if kind in {"string", "translated_string"}:
            return self._joined(node, quoted=True)
        if kind in {"simple_expansion", "expansion"}:
            return self._variable(node, quoted=quoted)
        if kind == "command_substitution":
            return [self._filled(self._run(node), quoted=quoted)]
        if kind == "process_substitution":
            self._run(node)
            return ["/dev/fd/63"]
        if kind == "arithmetic_expansion":
            self._inside(node)
            return [UNKNOWN]
        if kind == "array":
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
            if child.type not in {'"', '$"'}:
                pieces.append(self._spellings(child, quoted=quoted))
            here = end
        if here < len(source):
            pieces.append([self._literal(source[here:].decode(), quoted=quoted)])
        count = 1
        for piece in pieces:
            count *= len(piece)
        if count > MAX_ALTERNATIVES:
            return [UNKNOWN]
        return ["".join(parts) for parts in product(*pieces)]

    def _literal(self, raw: str, *, quoted: bool) -> str:
        if _SUBSTITUTION.search(raw):
            self._look(raw)
            return UNKNOWN
        if quoted:
            return _ESCAPED_IN_QUOTES.sub(lambda m: m[1].strip("\n"), raw).translate(_MARK)
        return _ESCAPED.sub(lambda m: m[1].strip("\n").translate(_MARK), raw)

    def _variable(self, node: Node, *, quoted: bool) -> list[str]:
        inner = [child for child in node.named_children if child.type != "comment"]
        if len(inner) == 1 and inner[0].type == "variable_name" and node.named_child_count == 1:
            name = text_of(inner[0])
            if text_of(node) in {f"${name}", f"${{{name}}}"}:
                return [self._filled(value, quoted=quoted) for value in self.scope.values(name)]
        self._inside(node)
        return [UNKNOWN]

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


def _words_of(marked: str) -> Iterator[Word]:
    texts = _BLANKS.split(marked)
    expanded = [text for piece in texts for text in _open_braces(piece)]
    if len(expanded) > MAX_WORDS:
        raise Unreadable
    for text in expanded:
        if not text and len(texts) > 1:
            continue
        text = _with_home(text)
        is_glob = _WILD.search(text) is not None
        yield Word(_plain(text), text.translate(_AS_PATTERN).replace(UNKNOWN, "*") if is_glob else None)


def _plain(marked: str) -> str:
    return marked.translate(_UNMARK)


def _with_home(marked: str) -> str:
    user, slash, rest = marked.partition("/")
    return with_home(_plain(user)) + slash + rest if marked.startswith("~") else marked


def with_home(text: str) -> str:
    """`~/x` as a whole path."""
    return text if UNKNOWN in text.partition("/")[0] else os.path.expanduser(text)  # noqa: PTH111


def _open_braces(text: str) -> list[str]:
    """`a{b,c}` is `ab ac`, from the first brace that opens one on."""
    for start in [i for i, character in enumerate(text) if character == "{"][:20]:
        depth, cuts = 0, [start]
        for position in range(start, len(text)):
            character = text[position]
            if character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
                if depth == 0:
                    choices = _choices(text, [*cuts, position])
                    if choices:
                        return _around(text[:start], choices, text[position + 1 :])
                    break
            elif character == "," and depth == 1:
                cuts.append(position)
    return [text]


def _choices(text: str, cuts: list[int]) -> list[str]:
    if len(cuts) > 2:
        return [text[a + 1 : b] for a, b in pairwise(cuts)]
    found = _RANGE.fullmatch(text, cuts[0] + 1, cuts[1])
    if found is None:
        return []
    if found[1].lstrip("-").isdigit() and found[2].lstrip("-").isdigit():
        first, last = int(found[1]), int(found[2])
        numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
        return [str(number) for number in numbers[:MAX_WORDS]]
    if len(found[1]) == len(found[2]) == 1:
        first, last = sorted((ord(found[1]), ord(found[2])))
        return [chr(code) for code in range(first, last + 1)]
    return []


def _around(before: str, choices: list[str], after: str) -> list[str]:
    rests = _open_braces(after)
    opened = [inner for choice in choices for inner in _open_braces(choice)]
    if len(opened) * len(rests) > MAX_WORDS:
        raise Unreadable
    return [f"{before}{inner}{rest}" for inner in opened for rest in rests]
