"""Text to a tree. What the parser and Bash could read in two ways is not read at all."""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

MAX_LENGTH = 20_000
# Some of the parser's work grows with the square of these: 3,000 of the worst take it 0.1 s.
MAX_PUNCTUATION = 3_000

_BASH = Language(tree_sitter_bash.language())
_NO_PUNCTUATION = re.compile(r"[^|&;<>(){}$`\[\]=]+")
# Blanks to the parser and letters to Bash; and the private characters that mark quoted ones in `words`.
_AMBIGUOUS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff\ue000-\uf8ff]"
)
_ENDS_JOINED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n\s*\Z")
_JOINED = re.compile(rb"(?:\\\n)+")


class Unreadable(Exception):
    """This text cannot be read with certainty."""


def parse(text: str) -> Node:
    if len(text) > MAX_LENGTH or len(_NO_PUNCTUATION.sub("", text)) > MAX_PUNCTUATION:
        raise Unreadable
    if _AMBIGUOUS.search(text):
        raise Unreadable
    source = _ENDS_JOINED.sub(r"\1", text).encode("utf-8", "strict")
    for _ in range(3):
        root = Parser(_BASH).parse(source).root_node
        joined = _join_lines(source, root)
        if joined == source:
            return root
        source = joined
    raise Unreadable


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def _join_lines(source: bytes, root: Node) -> bytes:
    """`su\\<newline>do` is one word to Bash and two to the parser: joined where it stands between two nodes,
    so never within quotes, a comment or a here-document."""
    if b"\\\n" not in source:
        return source
    gaps = [
        (left.end_byte, right.start_byte)
        for node in _all(root)
        for left, right in zip(node.children, node.children[1:], strict=False)
        if _JOINED.fullmatch(source, left.end_byte, right.start_byte)
    ]
    for start, end in sorted(set(gaps), reverse=True):
        source = source[:start] + source[end:]
    return source


def _all(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found.extend(node.children)
    return found
