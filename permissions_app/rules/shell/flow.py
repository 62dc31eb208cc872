"""Which command runs after which, and in which directory: lists, branches, loops, functions, pipes.

What has run changes where the line stands, and `&&` and `||` know more about it than `;`. A loop and a
function begin where they were reached from, also from further down: that is learned while the line is read,
and it is read again until nothing new is learned.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from tree_sitter import Node

from permissions_app.rules.shell import assigning
from permissions_app.rules.shell.parse import text_of
from permissions_app.rules.shell.reading import Outcome
from permissions_app.rules.shell.scope import NOWHERE, Directories
from permissions_app.rules.shell.shapes import VALUES, calls_itself_twice, flat, statements
from permissions_app.rules.shell.words import UNKNOWN, Word

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

Visit = Callable[[Node, str | None], str | None]


class Learned:
    """From where each loop and function is reached, and where each function ends."""

    def __init__(self) -> None:
        self._known: dict[object, Directories] = {}
        self._fed: dict[str, set[str]] = {}
        self.is_new = False
        self.widens = False  # what still grows may be any directory

    def add(self, key: object, directories: Directories) -> None:
        known = self.at(key)
        if not directories <= known and None not in known:
            self._known[key] = known | (frozenset({None}) if self.widens else directories)
            self.is_new = True

    def at(self, key: object) -> Directories:
        return self._known.get(key, NOWHERE)

    def feed(self, name: str, text: str) -> None:
        fed = self._fed.setdefault(name, set())
        self.is_new |= text not in fed
        fed.add(text)

    def fed(self, name: str) -> str | None:
        texts = self._fed.get(name)
        return "\n".join(sorted(texts)) if texts else None


def in_order(line: "Line", nodes: Iterable[Node], stdin: str | None) -> str | None:
    printed = []
    for child, in_background in statements(nodes):
        before = line.scope.directories
        printed.append(line.visit(child, stdin))
        if in_background:
            line.scope.stand_in(before)
    return together(printed)


def together(printed: list[str | None]) -> str | None:
    known = [text for text in printed if text is not None]
    return "\n".join(known) if known and len(known) == len(printed) else None


def and_or(line: "Line", node: Node, stdin: str | None, last: Visit | None = None) -> str | None:
    """`last`: reads the last of them, where a redirection is its own."""
    scope = line.scope
    (_, first), *others = flat(node)
    printed = [line.visit(first, stdin)]
    for position, (operator, child) in enumerate(others, 1):
        succeeded, failed = scope.succeeded, scope.failed
        visit = last if last and position == len(others) else line.visit
        start = succeeded if operator == "&&" else failed
        printed.append(_from(line, start, partial(visit, child, stdin)))
        if operator == "&&":
            scope.end(scope.succeeded, failed | scope.failed)
        else:
            scope.end(succeeded | scope.succeeded, scope.failed)
    return together(printed)


def _from(line: "Line", start: Directories, read: Callable[[], str | None]) -> str | None:
    """Reads what begins there. What cannot be reached is read all the same, and leads nowhere."""
    line.scope.stand_in(start or line.scope.directories)
    printed = read()
    if not start:
        line.scope.end(NOWHERE, NOWHERE)
    return printed


def negated(line: "Line", node: Node, stdin: str | None) -> None:
    in_order(line, node.children, stdin)
    line.scope.end(line.scope.failed, line.scope.succeeded)


def pipe(line: "Line", nodes: list[Node], stdin: str | None, last: Visit | None = None) -> str | None:
    """Each part has its own shell, and all but the last feed another."""
    scope, before = line.scope, line.scope.directories
    for position, node in enumerate(nodes, 1):
        is_last = position == len(nodes)
        scope.stand_in(before)
        line.feeds += not is_last
        try:
            printed = (last if last and is_last else line.visit)(node, stdin)
        finally:
            line.feeds -= not is_last
        stdin = UNKNOWN if printed is None else printed
    scope.stand_in(before | scope.directories if "lastpipe" in scope.options else before)
    return stdin


def condition(line: "Line", node: Node, stdin: str | None) -> None:
    scope = line.scope
    reached, passed = scope.directories, NOWHERE
    succeeded, failed = NOWHERE, NOWHERE
    for keyword, nodes in _clauses(node):
        start = passed if keyword == "then" else reached
        _from(line, start, partial(in_order, line, nodes, stdin))
        if keyword in {"if", "elif"}:
            passed, reached = scope.succeeded, scope.failed
        else:
            succeeded, failed = succeeded | scope.succeeded, failed | scope.failed
        if keyword == "else":
            reached = NOWHERE
    scope.end(succeeded | reached, failed)


def _clauses(node: Node) -> Iterator[tuple[str, list[Node]]]:
    """Each keyword of an `if`, and what stands behind it."""
    keyword, nodes = "", list[Node]()
    for child in node.children:
        if child.type in {"if", "then", "elif", "else", "fi", "elif_clause", "else_clause"}:
            if keyword:
                yield keyword, nodes
            keyword, nodes = "" if child.is_named else child.type, []
            if child.is_named:
                yield from _clauses(child)
        else:
            nodes.append(child)
    if keyword and keyword != "fi":
        yield keyword, nodes


def loop(line: "Line", node: Node, stdin: str | None) -> None:
    """`while`, `until`, `for`, `select`: it may run again from where it ended, or not at all."""
    line.repeats = True
    scope, key = line.scope, (line.text, node.start_byte)
    entry = scope.directories | line.learned.at(key)
    scope.stand_in(entry)
    body = node.child_by_field_name("body")
    if node.type == "for_statement":
        _takes_turns(line, node)
    else:
        tests = [child for child in node.children if body is None or child.id != body.id]
        scope.calculates |= node.type == "c_style_for_statement"
        in_order(line, tests, stdin)
    tested = scope.directories
    start = scope.failed if node.children[0].type == "until" else scope.succeeded
    if body is not None:
        _from(line, start, partial(line.visit, body, stdin))
    line.learned.add(key, scope.directories - entry)
    scope.stand_in(entry | tested | scope.directories)


def _takes_turns(line: "Line", node: Node) -> None:
    """The values of a `for`."""
    variable, values = node.child_by_field_name("variable"), set[str]()
    for child in node.children_by_field_name("value"):
        for words in line.expander.words(child):
            line.paths.name(words)
            values |= {match for word in words for match in line.paths.opened(word)}
    if variable is not None:
        assigning.assign(line, text_of(variable), values or {UNKNOWN})


def case(line: "Line", node: Node) -> None:
    """What it compares is text; its patterns name no file."""
    ends = line.scope.directories
    for child in node.named_children:
        if child.type in VALUES:
            line.expander.words(child)
        elif child.type == "case_item":
            line.scope.stand_in(ends)  # `;&` falls through
            _patterns_and_more(line, child)
            ends |= line.scope.directories
    line.scope.stand_in(ends)


def _patterns_and_more(line: "Line", item: Node) -> None:
    for child in item.named_children:
        if child.type in VALUES:
            line.expander.words(child)
    in_order(line, [child for child in item.children if child.type not in VALUES], None)


def function(line: "Line", node: Node) -> None:
    """It runs where it is called; here it is only made."""
    line.repeats = line.reading.indirect = True
    name = node.child_by_field_name("name")
    called = text_of(name) if name is not None else ""
    line.functions.add(called)
    if calls_itself_twice(node, called):
        line.reading.found(Outcome.DANGEROUS)
    before = line.scope.directories
    line.scope.stand_in(before | line.learned.at(("called", called)))
    line.feeds += 1  # who calls it may take what it prints
    try:
        for child in node.named_children:
            if name is None or child.id != name.id:
                line.visit(child, line.learned.fed(called))
    finally:
        line.feeds -= 1
    line.learned.add(("ends", called), line.scope.directories)
    line.scope.stand_in(before)


def calls(line: "Line", words: list[Word], stdin: str | None) -> None:
    """A command one of whose words is a function's name may call it."""
    for name in line.functions.intersection(word.text for word in words):
        line.learned.add(("called", name), line.scope.directories)
        if stdin is not None:
            line.learned.feed(name, stdin)
        line.scope.stand_in(line.scope.directories | line.learned.at(("ends", name)))
