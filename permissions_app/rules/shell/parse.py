"""Text to a tree. What the parser and Bash would read in two ways is written in another, or not read."""

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

MAX_LENGTH = 20_000
# Some of the parser's work grows with the square of these: 3,000 of the worst take it 0.1 s.
MAX_PUNCTUATION = 3_000
MAX_REPAIRS = 4

_BASH = Language(tree_sitter_bash.language())
_NO_PUNCTUATION = re.compile(r"[^|&;<>(){}$`\[\]=]+")
# Blanks to the parser and letters to Bash; and the private characters that mark quoted ones in `words`.
_AMBIGUOUS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff\ue000-\uf8ff]"
)
_ENDS_JOINED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n\s*\Z")
# At the start of a line a joined line end says nothing, and the parser stumbles over it.
_STARTS_JOINED = re.compile(r"(\A|\n)(?:\\\n)+")
_TIME, _OF_TIME = b"time", {b"-p", b"--"}
_JOINED = re.compile(rb"(?:\\\n)+")
_BARE_NEWLINE = re.compile(rb"(?<!\\)\n")
_DIGIT = re.compile(rb"[0-9]")
_TO_REPAIR = re.compile(rb"\\|time|\$[0-9]|`")
_PLAIN_BACKTICKS = re.compile(rb"`[^`\\#]*`")
_ONE_WORD = frozenset({"word", "concatenation", "command_name"})
_WORDS = _ONE_WORD | {"string", "raw_string", "ansi_c_string", "translated_string", "number"}
_WORDS |= {"simple_expansion", "expansion", "command_substitution", "process_substitution"}
_END_WITH_WORDS = _WORDS | {"variable_assignment", "file_redirect", "herestring_redirect"}
_WHOLE = frozenset({"concatenation", "string", "translated_string", "expansion"})  # their parts are one word


class Unreadable(Exception):
    """This text cannot be read with certainty."""


def parse(text: str) -> Node:
    if len(text) > MAX_LENGTH or len(_NO_PUNCTUATION.sub("", text)) > MAX_PUNCTUATION:
        raise Unreadable
    if _AMBIGUOUS.search(text):
        raise Unreadable
    text = _STARTS_JOINED.sub(r"\1", _ENDS_JOINED.sub(r"\1", text))
    source = text.encode("utf-8", "strict")
    for _ in range(MAX_REPAIRS):
        root = Parser(_BASH).parse(source).root_node
        repaired = _repaired(source, root) if _TO_REPAIR.search(source) else source
        if repaired == source:
            return _whole_words(root)
        source = repaired
    raise Unreadable


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def is_whole_line(node: Node) -> bool:
    root = node
    while root.parent is not None:
        root = root.parent
    source, start, end = root.text or b"", node.start_byte - root.start_byte, node.end_byte - root.start_byte
    return source[end : end + 1] in {b"", b"\n"} and source[:start].rstrip(b"\t").endswith(b"\n")


def _repaired(source: bytes, root: Node) -> bytes:
    """The source with what the parser would misread written in another way.

    `su\\<newline>do` is one word to Bash and two to the parser: joined where it stands between two nodes, so
    never within quotes, a comment or a here-document. `ls<newline>\\sudo` is two commands to Bash and one to
    the parser: a blank after the newline parts them. `s''\\udo` is one word to Bash and two to the parser:
    in other quotes, `s'''u'do`, it is one to both. `a"b"$1` is so with braces, and a substitution in
    backticks with `$(…)`. What follows the keyword `time` is read as if it were not there.
    """
    changes = {change for node in _all(root) for change in _changes(source, node)}
    for start, end, text in sorted(changes, reverse=True):
        source = source[:start] + text + source[end:]
    return source


def _changes(source: bytes, node: Node) -> Iterator[tuple[int, int, bytes]]:
    """What is written otherwise: from where, to where, how."""
    yield from ((start, end, b" " * (end - start)) for start, end in _timing(node))
    if node.type == "word" and source.startswith(b"\n", node.start_byte):
        yield node.start_byte + 1, node.start_byte + 1, b" "
    ends_in_dollar = node.type == "concatenation" and node.children[-1].type == "$"
    if ends_in_dollar and (digit := _DIGIT.match(source, node.end_byte)):
        yield *digit.span(), b"{%s}" % digit[0]
    if node.type == "command_substitution" and _PLAIN_BACKTICKS.fullmatch(node.text or b""):
        yield from ((node.start_byte, node.start_byte + 1, b"$("), (node.end_byte - 1, node.end_byte, b")"))
    for left, right in pairwise(node.children):
        start, end = left.end_byte, right.start_byte
        if _goes_on(node, left, right, source):
            yield start, start + 2, _in_quotes(source[start + 1 :])
        elif _JOINED.fullmatch(source, start, end):
            yield start, end, b""
        elif (
            node.type == "command"
            and b"\\" in source
            and (newline := _BARE_NEWLINE.search(source, start, end))
        ):
            if not source.startswith(b"\\", newline.end()):
                raise Unreadable
            yield newline.end(), newline.end(), b" "


def _whole_words(root: Node) -> Node:
    """Raises Unreadable where two words touch: to Bash they are one."""
    for node in _all(root):
        if node.type in _WHOLE:
            continue
        for left, right in pairwise(node.children):
            if right.type in _WORDS and left.end_byte == right.start_byte and left.type in _END_WITH_WORDS:
                raise Unreadable
    return root


def _timing(node: Node) -> Iterator[tuple[int, int]]:
    """The keyword `time`, which the parser takes for a program, and what is behind it for its words: without
    it, it reads these as Bash does. With other options it is a program to other shells."""
    if node.type != "command" or node.children[0].type != "command_name" or node.children[0].text != _TIME:
        return
    own = [node.children[0], *takewhile(lambda each: each.text in _OF_TIME, node.children[1:])]
    behind = node.children[len(own) :]
    is_redirected = node.parent is not None and node.parent.type == "redirected_statement"
    if (behind or is_redirected) and not any((each.text or b"").startswith(b"-") for each in behind[:1]):
        yield from ((each.start_byte, each.end_byte) for each in own)


def _goes_on(node: Node, left: Node, right: Node, source: bytes) -> bool:
    """Does the word on the left go on, with a backslash, where the parser begins another, or sees a blank?"""
    if not left.is_named or right.type not in _ONE_WORD or node.type in _WHOLE:
        return False
    begins = source[left.end_byte : left.end_byte + 2]
    return begins[:1] == b"\\" and (left.end_byte == right.start_byte or begins[1:] in {b" ", b"\t"})


def _in_quotes(text: bytes) -> bytes:
    """The first byte of it. Of a longer character the others may follow its quotes: to no shell they mean
    anything, with a backslash or without."""
    first = text[:1]
    if first >= b"\x80":
        return first
    return b'"\'"' if first == b"'" else b"'" + first + b"'"


def _all(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found.extend(node.children)
    return found
