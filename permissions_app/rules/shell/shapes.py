"""Small readings of the tree and of words that need no line around them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from tree_sitter import Node

from permissions_app.rules.shell.parse import text_of
from permissions_app.rules.shell.words import MAX_ALTERNATIVES, UNKNOWN, Ways, Word

VALUES = frozenset(
    {"word", "concatenation", "string", "raw_string", "ansi_c_string", "translated_string", "number"}
    | {"simple_expansion", "expansion", "command_substitution", "process_substitution"}
    | {"arithmetic_expansion", "brace_expression", "extglob_pattern", "regex", "array"}
)


def flat(node: Node) -> list[tuple[str, Node]]:
    """`a && b || c` nests to the left, once for each: what stands in front of each of them, and it."""
    found: list[tuple[str, Node]] = []
    while node.type == "list" and len(node.named_children) > 1:
        inner = [child for child in node.children if child.type != "comment"]
        found.append((inner[1].type, inner[-1]))
        node = inner[0]
    return [("", node), *reversed(found)]


def statements(nodes: Iterable[Node]) -> Iterator[tuple[Node, bool]]:
    """What runs one after another, and whether it runs in the background."""
    waiting: Node | None = None
    for child in nodes:
        if child.is_named and child.type != "comment":
            if waiting is not None:
                yield waiting, False
            waiting = child
        elif child.type == "&" and waiting is not None:
            yield waiting, True
            waiting = None
    if waiting is not None:
        yield waiting, False


def sentences(parts: list[Ways]) -> tuple[list[list[Word]], bool]:
    """The ways to read a command, as its words; and whether these are all."""
    certain = [part[: part.certain] for part in parts]
    count = 1
    for part in certain:
        count *= len(part)
        if count > MAX_ALTERNATIVES:
            break
    is_whole = count <= MAX_ALTERNATIVES
    found = list(product(*certain)) if is_whole else _each_once(certain)
    # What a word may be besides, is read beside what the others are for sure.
    found += _each_once([part[part.certain :] or part[:1] for part in parts if parts])[: _most_maybe(parts)]
    return [[word for words in chosen for word in words] for chosen in found], is_whole


def _each_once(parts: Sequence[Sequence[tuple[Word, ...]]]) -> list[tuple[tuple[Word, ...], ...]]:
    ways = max(map(len, parts), default=1)
    return [tuple(part[way % len(part)] for part in parts) for way in range(ways)]


def _most_maybe(parts: list[Ways]) -> int:
    return max((len(part) - part.certain for part in parts), default=0)


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
