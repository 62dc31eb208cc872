"""Every command in a line, wherever it stands: in lists, pipes, loops, functions, substitutions."""

import re
from collections.abc import Callable
from functools import partial

from tree_sitter import Node

from permissions_app.rules.ground import Ground
from permissions_app.rules.shell import assigning, flow, programs, redirections, shell_builtins
from permissions_app.rules.shell.parse import Unreadable, parse, text_of
from permissions_app.rules.shell.paths_in import PathsIn
from permissions_app.rules.shell.reading import Outcome, Reading
from permissions_app.rules.shell.scope import NOWHERE, Scope
from permissions_app.rules.shell.shapes import VALUES, redirected_to, sentences
from permissions_app.rules.shell.words import UNKNOWN, Expander, Hooks, Ways, Word

MAX_DEPTH = 4  # of code in code
MAX_LEVEL = 60  # of syntax in syntax
MAX_RUNS = 2_000  # of commands, each in every directory and with all that its variables may hold

_OWN_SHELL = frozenset({"subshell", "command_substitution", "process_substitution"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_COMPARISONS = frozenset(
    {"unary_expression", "binary_expression", "parenthesized_expression", "negated_command"}
)
_SILENT = frozenset({"comment", "heredoc_start", "heredoc_end", "variable_name"})
_IN_FRONT = frozenset({"{", "!", "if", "then", "elif", "else", "while", "until", "do"}) | {
    *("command", "builtin", "time"),
}
_MOVES = frozenset({"cd", "pushd", "popd", "eval", ".", "source", "trap"})
_TAKES_AWAY = frozenset({"rm", "rmdir", "mv", "chmod", "chown", "ln", "find", "unlink"})
_TAKES_AWAY |= {f"g{name}" for name in _TAKES_AWAY}  # on macOS


class Line:
    """One reading of a command line: what it assigned, where it stands, and what was found."""

    def __init__(self, reading: Reading, ground: Ground, scope: Scope, *, behind_wall: bool) -> None:
        self.reading, self.ground, self.scope, self.behind_wall = reading, ground, scope, behind_wall
        self.functions: set[str] = set()
        self.learned = flow.Learned()
        self.repeats = False  # what stands further down may run before what stands further up
        self.gave_up = False
        self.names_all = False
        self.in_subscripts: list[str] = []
        self.taken_away: set[str] = set()
        self.paths = PathsIn(self)
        self.expander = Expander(
            scope,
            Hooks(
                run=lambda node: self.visit(node, None),
                look=self.left_as_text,
                assign=partial(assigning.assign, self),
                unclear=lambda: self.reading.found(Outcome.UNREADABLE),
                reveal=lambda: assigning.reveals(self),
            ),
        )
        self.text = ""  # the code that is read now
        self._depth = self._level = self._runs = 0
        self._is_again = False  # the whole of it was read before
        self.feeds = 0  # around what is read now: pipes and substitutions, that take what it prints

    def begin(self) -> None:
        self._is_again = self._runs > 0
        self.repeats = self.learned.is_new = False
        self.scope.begin()

    @property
    def has_learned(self) -> bool:
        """Would it be read otherwise if it were read again?"""
        return self.repeats and not self.gave_up and (self.learned.is_new or bool(self.scope.grown))

    def code(self, text: str, stdin: str | None = None) -> str | None:
        """Reads text that is run as a command; says what it prints, where that is clear."""
        if self._depth > MAX_DEPTH:
            self.reading.found(Outcome.UNREADABLE)
            return None
        if UNKNOWN in text:
            self.reading.found(Outcome.UNREADABLE)
            text = text.replace(UNKNOWN, "${KNOWN_WHEN_IT_RUNS}")
        around, self.text = self.text, text
        self._depth += 1
        try:
            root = parse(text)
            if root.has_error:
                self.reading.found(Outcome.UNREADABLE)
            return self.visit(root, stdin)
        except Unreadable:
            self.reading.found(Outcome.UNREADABLE)
            self.gave_up |= self._depth == 1
            return None
        finally:
            self._depth -= 1
            self.text = around

    def would_find(self, text: str) -> Outcome:
        """What there is in text that may be a command. It is read aside: this line learns nothing by it."""
        aside = Line(Reading(), self.ground, Scope(self.scope.directory or "/"), behind_wall=self.behind_wall)
        aside._depth, aside._runs = self._depth + 1, self._runs
        try:
            aside.code(text)
        finally:
            self._runs = aside._runs
        return aside.reading.outcome

    def run(self, words: list[Word], stdin: str | None, *, is_again: bool = False) -> str | None:
        """One command, in each directory where it may run; says what it prints, where that is clear."""
        self._level += 1
        if self._level > MAX_LEVEL:
            raise Unreadable
        here, scope = self.scope.directories, self.scope
        printed, succeeded, failed = set[str | None](), NOWHERE, NOWHERE
        try:
            for directory in sorted(here, key=str):
                scope.stand_in(frozenset({directory}))
                self._count(words, is_again=is_again or bool(printed) or self._is_again)
                printed.add(self._run_here(words, stdin))
                succeeded, failed = succeeded | scope.succeeded, failed | scope.failed
        finally:
            self._level -= 1
        scope.stand_in(here)
        scope.end(succeeded, failed)
        if words:
            scope.variables["_"] = {words[-1].text}
        return printed.pop() if len(printed) == 1 else None

    def _run_here(self, words: list[Word], stdin: str | None) -> str | None:
        here, written = self.scope.directories, len(self.reading.writes)
        printed = programs.judge(self, words, stdin)
        if not _TAKES_AWAY.isdisjoint(word.text for word in words):
            self.taken_away.update(end for place in self.reading.writes[written:] for end in place.ends)
        own = next((word.text for word in words if word.text not in _IN_FRONT and word.text[:1] != "-"), "")
        if own == "exit" and "exit" not in self.functions:
            self.scope.end(NOWHERE, NOWHERE)
        elif own not in _MOVES:
            self.scope.stand_in(here)  # another process went elsewhere
        flow.calls(self, words, stdin)
        return printed

    def _count(self, words: list[Word], *, is_again: bool) -> None:
        """A long command is as much work as many, so it is read once, and not in every directory."""
        self._runs += 1 + (len(words) ** 2 // 500 if is_again else 0)
        if self._runs > MAX_RUNS:
            raise Unreadable

    def visit(self, node: Node, stdin: str | None) -> str | None:
        self._level += 1
        if self._level > MAX_LEVEL:
            raise Unreadable
        before = self.scope.directories
        self.feeds += node.type in _SUBSTITUTIONS
        try:
            return self._visit(node, stdin)
        finally:
            self._level -= 1
            self.feeds -= node.type in _SUBSTITUTIONS
            if node.type in _OWN_SHELL:
                self.scope.stand_in(before)

    def visit_all(self, node: Node) -> None:
        for child in node.named_children:
            self.visit(child, None)

    def _visit(self, node: Node, stdin: str | None) -> str | None:
        kind = node.type
        if kind in _SILENT:
            return None
        if kind in _WITH_OUTPUT:
            return _WITH_OUTPUT[kind](self, node, stdin)
        if kind in _WITHOUT_OUTPUT:
            _WITHOUT_OUTPUT[kind](self, node)
            return None
        if kind in _FLOW:
            _FLOW[kind](self, node, stdin)
            return None
        if kind in _SUBSTITUTIONS and "\\" in text_of(node) and text_of(node).startswith("`"):
            return self.code(re.sub(r"\\([`\\$])", r"\1", text_of(node)[1:-1]))
        if kind in VALUES and kind not in _SUBSTITUTIONS:
            self._value(node)
            return None
        self.scope.calculates |= kind == "compound_statement" and node.children[0].type == "(("
        return flow.in_order(self, node.children, stdin)

    def _value(self, node: Node) -> None:
        for words in self.expander.words(node):
            self.paths.name(words)

    def _declaration(self, node: Node) -> None:
        """`declare`, `export`, `unset` and the like, as the parser knows them."""
        self.reading.indirect = True
        name = text_of(node.children[0])
        words = [Word(name)]
        others: list[Node] = []
        for child in node.named_children:
            if child.type == "variable_name":
                words.append(Word(text_of(child)))
            elif child.type == "variable_assignment":
                others.append(child)
            elif child.type in VALUES:
                words += [word for each in self.expander.words(child) for word in each]
            else:
                self.visit(child, None)
        self.paths.name(words[1:])
        shell_builtins.note(self, name, words, None)
        is_exported = name == "export" or any(re.match(r"-\w*x", word.text) for word in words[1:])
        for child in others:
            assigning.by_node(self, child, is_exported=is_exported)

    def _test(self, node: Node) -> None:
        """What it asks of a file reveals none of its content. To `[` a `>` is a redirection."""
        redirected = [] if text_of(node).startswith("[[") else redirected_to(node)
        self.scope.calculates |= text_of(node).startswith("[")
        if redirected:
            flow.in_order(self, node.children, None)
            for target in redirected:
                for words in self.expander.words(target):
                    self.paths.write(words)
        else:
            self._ask(node)

    def _ask(self, node: Node) -> None:
        for child in node.named_children:
            if child.type in VALUES:
                for words in self.expander.words(child):
                    for word in words:
                        assigning.note_code(self, word.text)
            elif child.type in _COMPARISONS:
                self._ask(child)
            else:
                self.visit(child, None)

    def _command(self, node: Node, stdin: str | None, more: list[Node]) -> str | None:
        parts: list[Ways] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                assigning.by_node(self, child, in_front=True)
            elif child.type == "herestring_redirect":
                stdin = redirections.herestring(self, child)
            elif child.type == "file_redirect":
                parts += [self.expander.words(extra) for extra in redirections.file(self, child)]
            elif child.type == "command_name" or child.type != "comment":
                parts.append(self.expander.words(child))
        return self._run_each([*parts, *(self.expander.words(extra) for extra in more)], stdin)

    def _run_each(self, parts: list[Ways], stdin: str | None) -> str | None:
        found, is_whole = sentences(parts)
        if not is_whole:
            self.reading.found(Outcome.UNREADABLE)
        here, scope = self.scope.directories, self.scope
        printed: list[str | None] = []
        succeeded, failed = NOWHERE, NOWHERE
        for words in found:
            scope.stand_in(here)
            printed.append(self.run(words, stdin, is_again=bool(printed)))
            succeeded, failed = succeeded | scope.succeeded, failed | scope.failed
        scope.stand_in(here)
        scope.end(succeeded, failed)
        return printed[0] if len(printed) == 1 else None

    def _redirected(self, node: Node, stdin: str | None) -> str | None:
        body = node.child_by_field_name("body")
        nodes = [child for child in node.named_children if body is None or child.id != body.id]
        return self._redirect(nodes, body, stdin)

    def _redirect(self, nodes: list[Node], body: Node | None, stdin: str | None) -> str | None:
        """The parser takes a redirection for the whole line's; to Bash it is the last command's, and opened
        where that one runs."""
        last = partial(self._redirect, nodes)
        if body is not None and body.type == "list":
            return flow.and_or(self, body, stdin, last)
        if body is not None and body.type == "pipeline":
            return flow.pipe(self, _parts(body), stdin, last)
        found = redirections.read(self, nodes, stdin)
        self.feeds += found.feeds
        try:
            printed = self._body(body, found.stdin, found.more)
        finally:
            self.feeds -= found.feeds
        return self._after_heredoc(found.after, None if found.printed_away else printed)

    def _after_heredoc(self, nodes: list[Node], printed: str | None) -> str | None:
        """What stands behind `<<EOF` on its line, whatever is between."""
        for node in nodes:
            before = self.scope.directories
            follows_pipe = node.type == "pipeline" and text_of(node).startswith("|")
            printed = flow.pipe(self, _parts(node), printed) if follows_pipe else self.visit(node, None)
            self.scope.stand_in(before | self.scope.directories)
        return printed

    def _body(self, body: Node | None, stdin: str | None, more: list[Node]) -> str | None:
        if body is None:
            return self._run_each([self.expander.words(extra) for extra in more], stdin)
        if body.type == "command":
            return self._command(body, stdin, more)
        printed_by = self.visit(body, stdin)
        if more:
            self.reading.found(Outcome.UNREADABLE)
        return printed_by

    def _redirect_more(self, node: Node) -> None:
        extra = redirections.file(self, node)
        if extra:
            self._run_each([self.expander.words(each) for each in extra], None)

    def left_as_text(self, text: str) -> None:
        """Code in what the parser gave as plain text: read as Bash reads what stands in double quotes."""
        if re.search(r"(?<!\\)(`|\$\(|[<>]\()", text):
            quoted = re.sub(r'(?<!\\)"', r"\"", text) if '"' in text else text
            self.code(f': "{quoted}"')
            if re.search(r"[<>]\(", text):
                self.reading.found(Outcome.UNREADABLE)

    def read_subscripts(self) -> None:
        """Where the line has arithmetic, what it would find in its variables."""
        for text in dict.fromkeys(self.in_subscripts) if self.scope.calculates else ():
            self.reading.found(Outcome.UNREADABLE)
            self.left_as_text(text)


def _parts(pipeline: Node) -> list[Node]:
    return [node for node in pipeline.named_children if node.type != "comment"]


_WITH_OUTPUT: dict[str, Callable[[Line, Node, str | None], str | None]] = {
    "command": lambda line, node, stdin: line._command(node, stdin, []),
    "list": flow.and_or,
    "pipeline": lambda line, node, stdin: flow.pipe(line, _parts(node), stdin),
    "redirected_statement": Line._redirected,
}
_FLOW: dict[str, Callable[[Line, Node, str | None], None]] = {
    **dict.fromkeys(("for_statement", "c_style_for_statement", "while_statement"), flow.loop),
    "if_statement": flow.condition,
    "negated_command": flow.negated,
}
_WITHOUT_OUTPUT: dict[str, Callable[[Line, Node], None]] = {
    "variable_assignment": assigning.by_node,
    "function_definition": flow.function,
    "file_redirect": Line._redirect_more,
    "test_command": Line._test,
    "case_statement": flow.case,
    "declaration_command": Line._declaration,
    "unset_command": Line._declaration,
}
