"""The one way to a variable, whatever sets it: `x=…`, `declare`, `read`, `printf -v`, `${x:=…}`, a loop."""

import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from permissions_app.rules.shell.parse import text_of
from permissions_app.rules.shell.reading import Outcome
from permissions_app.rules.shell.variables import runs_by
from permissions_app.rules.shell.words import UNKNOWN, Word

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

_RENAMES = frozenset({"BASH_CMDS", "BASH_ALIASES"})
_NAME = re.compile(r"[A-Za-z_]\w*")
_IN_SUBSCRIPT = re.compile(r"\w\[")
_KEYED = re.compile(r"\[[^\]]*\]\+?=(.*)", re.DOTALL)


def assign(line: "Line", name: str, values: set[str], *, adds: bool = False) -> None:
    name, _, index = name.partition("[")
    if index:
        note_code(line, f"{name}[{index}")
        line.scope.calculates = True
    if not _NAME.fullmatch(name):
        any_variable(line)
        return
    line.reading.indirect = True
    if name == "IFS":
        line.scope.splits_oddly = True
    if name == "GLOBIGNORE":
        line.scope.options.add("dotglob")
    if name in _RENAMES or runs_by(name, values):
        line.reading.found(Outcome.UNREADABLE)
    for value in values:
        note_code(line, value)
        if name in _RENAMES:
            line.code(value)
    line.scope.assign(name, values, adds=adds)
    if line.names_all:
        line.paths.name([Word(value) for value in values])


def any_variable(line: "Line") -> None:
    """Something was set, and nobody knows which."""
    line.reading.indirect = True
    line.scope.any_may_change = True


def reveals(line: "Line") -> None:
    """`${!x}` and namerefs read a variable whose name nobody knows: all values count from now on."""
    if not line.names_all:
        line.names_all = True
        for values in list(line.scope.variables.values()):
            line.paths.name([Word(value) for value in values])


def note_code(line: "Line", text: str) -> None:
    """Arithmetic runs what stands in `x[$(…)]`, also where that is only a value."""
    found = _IN_SUBSCRIPT.search(text)
    if found and ("$(" in text[found.end() :] or "`" in text[found.end() :]):
        line.in_subscripts.append(text)


def by_node(line: "Line", node: Node, *, in_front: bool = False, is_exported: bool = False) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None:
        line.visit_all(node)
        return
    if name.type == "subscript":
        line.visit_all(name)
        line.scope.calculates = True
        name = name.named_children[0]
    values = {""} if value is None else _values(line, value)
    if in_front or is_exported:
        line.paths.name([Word(text) for text in values])  # what is started may open it
    if in_front and text_of(name) == "IFS":
        return
    adds = any(child.type == "+=" for child in node.children)
    assign(line, text_of(name), values, adds=adds)


def _values(line: "Line", value: Node) -> set[str]:
    if value.type != "array":
        return line.expander.texts(value)
    words = [word for child in value.named_children for words in line.expander.words(child) for word in words]
    elements = {
        keyed[1] if (keyed := _KEYED.fullmatch(text)) else text
        for word in words
        for text in line.paths.opened(word)
    }
    return elements or {UNKNOWN}
