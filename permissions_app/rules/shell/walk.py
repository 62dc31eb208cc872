"""Every command in a line, wherever it stands: in lists, pipes, loops, functions, substitutions."""

import re
from collections.abc import Callable, Iterable

from tree_sitter import Node

from permissions_app.rules.ground import Ground
from permissions_app.rules.shell import programs, redirections
from permissions_app.rules.shell.parse import Unreadable, parse, text_of
from permissions_app.rules.shell.paths_in import PathsIn
from permissions_app.rules.shell.reading import Outcome, Reading
from permissions_app.rules.shell.shapes import VALUES, calls_itself_twice, flat, redirected_to, sentences
from permissions_app.rules.shell.variables import runs_by
from permissions_app.rules.shell.words import UNKNOWN, Expander, Scope, Word

MAX_DEPTH = 4  # of code in code
MAX_LEVEL = 60  # of syntax in syntax

_OWN_SHELL = frozenset({"subshell", "command_substitution", "process_substitution"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_COMPARISONS = frozenset(
    {"unary_expression", "binary_expression", "parenthesized_expression", "negated_command"}
)
_SILENT = frozenset({"comment", "heredoc_start", "heredoc_end", "variable_name"})


class Line:
    """One reading of a command line: what it assigned, where it stands, and what was found."""

    def __init__(self, reading: Reading, ground: Ground, scope: Scope, *, behind_wall: bool) -> None:
        self.reading, self.ground, self.scope, self.behind_wall = reading, ground, scope, behind_wall
        self.functions: set[str] = set()
        self.paths = PathsIn(self)
        self.expander = Expander(scope, lambda node: self.visit(node, None), self.left_as_text)
        self._depth = self._level = 0
        self.feeds = 0  # around what is read now: pipes and substitutions, that take what it prints

    def code(self, text: str, stdin: str | None = None) -> str | None:
        """Reads text that is run as a command; says what it prints, where that is clear."""
        if self._depth > MAX_DEPTH:
            self.reading.found(Outcome.UNREADABLE)
            return None
        if UNKNOWN in text:
            self.reading.found(Outcome.UNREADABLE)
            text = text.replace(UNKNOWN, "${KNOWN_WHEN_IT_RUNS}")
        self._depth += 1
        try:
            root = parse(text)
            if root.has_error:
                self.reading.found(Outcome.UNREADABLE)
            return self.visit(root, stdin)
        except Unreadable:
            self.reading.found(Outcome.UNREADABLE)
            return None
        finally:
            self._depth -= 1

    def run(self, words: list[Word], stdin: str | None) -> str | None:
        """One command; says what it prints, where that is clear."""
        self._level += 1
        if self._level > MAX_LEVEL:
            raise Unreadable
        try:
            return programs.judge(self, words, stdin)
        finally:
            self._level -= 1

    def visit(self, node: Node, stdin: str | None) -> str | None:
        self._level += 1
        if self._level > MAX_LEVEL:
            raise Unreadable
        before = self.scope.directory
        self.feeds += node.type in _SUBSTITUTIONS
        try:
            return self._visit(node, stdin)
        finally:
            self._level -= 1
            self.feeds -= node.type in _SUBSTITUTIONS
            if node.type in _OWN_SHELL:
                self.scope.directory = before

    def _visit(self, node: Node, stdin: str | None) -> str | None:
        kind = node.type
        if kind in _SILENT:
            return None
        if kind in _WITH_OUTPUT:
            return _WITH_OUTPUT[kind](self, node, stdin)
        if kind in _WITHOUT_OUTPUT:
            _WITHOUT_OUTPUT[kind](self, node)
            return None
        if kind in _SUBSTITUTIONS and "\\" in text_of(node) and text_of(node).startswith("`"):
            return self.code(re.sub(r"\\([`\\$])", r"\1", text_of(node)[1:-1]))
        if kind in VALUES and kind not in _SUBSTITUTIONS:
            self._value(node)
            return None
        self.reading.indirect |= kind in {"declaration_command", "unset_command"}
        return self._in_order(node.named_children, stdin)

    def _value(self, node: Node) -> None:
        for words in self.expander.words(node):
            self.paths.name(words)

    def _case(self, node: Node) -> None:
        """What it compares is text; its patterns name no file."""
        for child in node.named_children:
            if child.type in VALUES:
                self.expander.words(child)
            else:
                self.visit(child, None)

    def _test(self, node: Node) -> None:
        """What it asks of a file reveals none of its content. To `[` a `>` is a redirection."""
        redirected = [] if text_of(node).startswith("[[") else redirected_to(node)
        if redirected:
            self._in_order(node.named_children, None)
            for target in redirected:
                for words in self.expander.words(target):
                    self.paths.write(words)
        else:
            self._ask(node)

    def _ask(self, node: Node) -> None:
        for child in node.named_children:
            if child.type in VALUES:
                self.expander.words(child)
            elif child.type in _COMPARISONS:
                self._ask(child)
            else:
                self.visit(child, None)

    def _in_order(self, nodes: Iterable[Node], stdin: str | None) -> str | None:
        printed = [self.visit(node, stdin) for node in nodes if node.type != "comment"]
        known = [text for text in printed if text is not None]
        return "\n".join(known) if known and len(known) == len(printed) else None

    def _pipe(self, nodes: Iterable[Node], stdin: str | None, *, feeds: bool = False) -> str | None:
        """`feeds`: another that is not among these takes what the last one prints."""
        waiting = [node for node in nodes if node.type != "comment"]
        while waiting:
            node = waiting.pop(0)
            before = self.scope.directory
            printed = self._feeding(node, stdin, feeds=feeds or bool(waiting))
            stdin = UNKNOWN if printed is None else printed
            self.scope.directory = before
        return stdin

    def _feeding(self, node: Node, stdin: str | None, *, feeds: bool) -> str | None:
        self.feeds += feeds
        try:
            return self.visit(node, stdin)
        finally:
            self.feeds -= feeds

    def _command(self, node: Node, stdin: str | None, more: list[Node]) -> str | None:
        parts: list[list[tuple[Word, ...]]] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, in_front=True)
            elif child.type == "herestring_redirect":
                stdin = redirections.herestring(self, child)
            elif child.type == "file_redirect":
                parts += [self.expander.words(extra) for extra in redirections.file(self, child)]
            elif child.type == "command_name" or child.type != "comment":
                parts.append(self.expander.words(child))
        parts += [self.expander.words(extra) for extra in more]
        printed = [self.run(list(words), stdin) for words in sentences(parts)]
        return printed[0] if len(printed) == 1 else None

    def _redirected(self, node: Node, stdin: str | None) -> str | None:
        body = node.child_by_field_name("body")
        nodes = [child for child in node.named_children if body is None or child.id != body.id]
        found = redirections.read(self, nodes, stdin)
        self.feeds += found.feeds
        try:
            printed = self._body(body, found.stdin, found.more)
        finally:
            self.feeds -= found.feeds
        printed = None if found.printed_away else printed
        for inner in found.after:
            follows_pipe = inner.type == "pipeline" and text_of(inner).startswith("|")
            printed = self._pipe(inner.named_children, printed) if follows_pipe else self.visit(inner, None)
        return printed

    def _body(self, body: Node | None, stdin: str | None, more: list[Node]) -> str | None:
        if body is None:
            words = [self.expander.words(extra) for extra in more]
            printed = [self.run(list(sentence), stdin) for sentence in sentences(words)]
            return printed[0] if len(printed) == 1 else None
        if body.type == "command":
            return self._command(body, stdin, more)
        if body.type in {"pipeline", "list"}:
            # The parser takes a redirection for the whole line's; to Bash it is the last command's.
            *before, last = [node for node in flat(body) if node.type != "comment"]
            if body.type == "pipeline":
                *before, last = [node for node in body.named_children if node.type != "comment"]
                piped = self._pipe(before, None, feeds=True)
                return self._body(last, piped if stdin is None else stdin, more)
            self._in_order(before, None)
            return self._body(last, stdin, more)
        printed_by = self.visit(body, stdin)
        if more:
            self.reading.found(Outcome.UNREADABLE)
        return printed_by

    def _redirect_more(self, node: Node) -> None:
        words = [self.expander.words(extra) for extra in redirections.file(self, node)]
        for sentence in sentences(words) if words else []:
            self.run(list(sentence), None)

    def left_as_text(self, text: str) -> None:
        """Code in what the parser gave as plain text: read as Bash reads what stands in double quotes."""
        if re.search(r"(?<!\\)(`|\$\(|[<>]\()", text):
            quoted = re.sub(r'(?<!\\)"', r"\"", text) if '"' in text else text
            self.code(f': "{quoted}"')
            if re.search(r"[<>]\(", text):
                self.reading.found(Outcome.UNREADABLE)

    def _assign(self, node: Node, *, in_front: bool = False) -> None:
        self.reading.indirect = True
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            self._in_order(node.named_children, None)
            return
        values = self.expander.texts(value) if value is not None else {""}
        self.paths.name([Word(text) for text in values])
        if text_of(name) == "IFS" and not in_front:
            self.scope.splits_oddly = True
        if runs_by(text_of(name), values):
            self.reading.found(Outcome.UNREADABLE)
        adds = any(child.type == "+=" for child in node.children)
        self.scope.assign(text_of(name), {UNKNOWN} if value is None else values, adds=adds)

    def _loop(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        values: set[str] = set()
        for child in node.children_by_field_name("value"):
            for words in self.expander.words(child):
                self.paths.name(words)
                values |= {match for word in words for match in self.paths.opened(word)}
        if variable is not None:
            self.scope.assign(text_of(variable), values or {UNKNOWN}, adds=False)
        if body is not None:
            self.visit(body, None)

    def _function(self, node: Node) -> None:
        self.reading.indirect = True
        name = node.child_by_field_name("name")
        if name is not None:
            self.functions.add(text_of(name))
            if calls_itself_twice(node, text_of(name)):
                self.reading.found(Outcome.DANGEROUS)
        self.feeds += 1  # who calls it may take what it prints
        try:
            self._in_order(
                [child for child in node.named_children if name is None or child.id != name.id], None
            )
        finally:
            self.feeds -= 1


_WITH_OUTPUT: dict[str, Callable[[Line, Node, str | None], str | None]] = {
    "command": lambda line, node, stdin: line._command(node, stdin, []),
    "list": lambda line, node, stdin: line._in_order(flat(node), stdin),
    "pipeline": lambda line, node, stdin: line._pipe(node.named_children, stdin),
    "redirected_statement": Line._redirected,
}
_WITHOUT_OUTPUT: dict[str, Callable[[Line, Node], None]] = {
    "variable_assignment": Line._assign,
    "for_statement": Line._loop,
    "function_definition": Line._function,
    "file_redirect": lambda line, node: line._redirect_more(node),
    "test_command": Line._test,
    "case_statement": Line._case,
    "case_item": Line._case,
}
