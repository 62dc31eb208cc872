"""Small readings of the tree and of words that need no line around them."""

from collections.abc import Iterator
from itertools import product

from tree_sitter import Node

from permissions_app.rules.shell.parse import Unreadable, text_of
from permissions_app.rules.shell.words import MAX_ALTERNATIVES, UNKNOWN, Word

VALUES = frozenset(
    {"word", "concatenation", "string", "raw_string", "ansi_c_string", "translated_string", "number"}
    | {"simple_expansion", "expansion", "command_substitution", "process_substitution"}
    | {"arithmetic_expansion", "brace_expression", "extglob_pattern", "regex", "array"}
)


def flat(node: Node) -> Iterator[Node]:
    """`a && b && c` nests to the left, once for each."""
    right: list[Node] = []
    while node.type == "list" and node.named_children:
        right += reversed(node.named_children[1:])
        node = node.named_children[0]
    yield node
    yield from reversed(right)


def sentences(parts: list[list[tuple[Word, ...]]]) -> list[tuple[Word, ...]]:
    """Each way to read a command, as its words."""
    count = 1
    for part in parts:
        count *= max(1, len(part))
    if count > MAX_ALTERNATIVES:
        raise Unreadable
    return [tuple(word for words in chosen for word in words) for chosen in product(*parts)]


def only(texts: set[str]) -> str:
    text = next(iter(texts)) if len(texts) == 1 else None
    return UNKNOWN if text is None else text


def calls_itself_twice(node: Node, name: str) -> bool:
    """A fork bomb: a function that starts itself in a pipe or behind its own back."""
    calls, forks, waiting = 0, False, list(node.children)
    while waiting:
        child = waiting.pop()
        calls += child.type == "command_name" and text_of(child) == name
        forks |= child.type in {"pipeline", "&"}
        waiting.extend(child.children)
    return calls > 1 and forks


def redirected_to(test: Node) -> list[Node]:
    """What the parser took for comparisons with `<` and `>`: the word on the right of each."""
    found, waiting = [], list(test.children)
    while waiting:
        child = waiting.pop()
        if child.type == "binary_expression" and any(each.type.strip("<>") == "" for each in child.children):
            found.append(child.named_children[-1])
        waiting.extend(child.children)
    return found
