"""The text of a markdown file with front matter, as plain values that know their lines."""

from dataclasses import dataclass, field
from typing import Any

import yaml

from sessions_app.storable import is_storable

FENCE = "---"
DEEPEST = 20
MOST_NODES = 5_000
MOST_TOKENS = 4 * MOST_NODES
LONGEST_PLAIN = 100  # characters of what is no text: a number, a date, true or false
TEXT = "tag:yaml.org,2002:str"
TOO_DEEP = "It is nested too deeply."
TOO_MUCH = "There is more in it than an agent's file needs."
# What the library raises for `!!bool perhaps`, `!!int ''` and `!!timestamp soon`, too.
UNREADABLE = (yaml.YAMLError, ValueError, OverflowError, LookupError, AttributeError, TypeError)

_OPENS = (
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
)
_CLOSES = (yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)

Where = tuple[str | int, ...]  # ("agent", "permissions", "write", 0)


class NotRead(Exception):
    """The text is for the person who wrote the file."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


@dataclass(frozen=True)
class FrontMatter:
    values: dict[str, Any]
    lines: dict[Where, int] = field(repr=False)
    body: str

    def line_of(self, where: Where) -> int:
        """Of the value, or of the nearest thing around it that has a line."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where, 1)


def read(text: str) -> FrontMatter:
    """Raises NotRead."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise NotRead(
            "The file does not begin with front matter: a line of three dashes, then its fields.", 1
        )
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in (FENCE, "...")), None)
    if end is None:
        raise NotRead("The front matter has no end: put a line of three dashes below its fields.", 1)
    reader = _Reader()
    values = reader.read("\n".join(lines[1:end]))
    return FrontMatter(values, reader.lines, "\n".join(lines[end + 1 :]).strip())


class _Reader:
    """Makes values of YAML's nodes, and notes in which line each stands. Of YAML it takes what people write:
    no references, which a few lines can blow up with, and no field twice, of which one would be lost."""

    def __init__(self) -> None:
        self.lines: dict[Where, int] = {}
        self._nodes = 0
        self._loader = yaml.SafeLoader("")

    def read(self, text: str) -> dict[str, Any]:
        try:
            _look_ahead(text)
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            raise NotRead(_told(error), _line(error.problem_mark or error.context_mark)) from error
        except yaml.YAMLError as error:
            raise NotRead("There is a character in it that is no text.", 1) from error
        except RecursionError as error:
            raise NotRead(TOO_DEEP, 1) from error
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise NotRead(
                "Fields were expected: a name, a colon and a value in each line.", _line(node.start_mark)
            )
        return self._mapping(node, ())

    def _value(self, node: yaml.Node, where: Where) -> Any:
        self.lines[where] = _line(node.start_mark)
        self._nodes += 1
        if self._nodes > MOST_NODES or len(where) > DEEPEST:
            raise NotRead(TOO_MUCH, self.lines[where])
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, (*where, at)) for at, each in enumerate(node.value)]
        try:
            if node.tag != TEXT and len(node.value) > LONGEST_PLAIN:  # Python writes no number of any length
                raise ValueError(node.tag)
            return self._loader.construct_object(node)
        except UNREADABLE as error:
            raise NotRead("This value cannot be read. Put it in quotes.", self.lines[where]) from error

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = _line(key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise NotRead("A field's name must be a word.", line)
            name = str(key.value)
            if not is_storable(name):  # whoever is told of it could not be sent it
                raise NotRead("A field's name holds a character that is no text.", line)
            if name in found:
                raise NotRead(f"The field {name} stands here twice.", line)
            found[name] = self._value(value, (*where, name))
            self.lines[*where, name] = line
        return found


def _look_ahead(text: str) -> None:
    """Refuses what may not be there before anything is made of it. In the library the work for a word grows
    with the depth that it stands in: 250 KB of brackets took it minutes."""
    depth = 0
    for count, token in enumerate(yaml.scan(text)):
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken):
            said = "References (& and *) are not taken here. Put text with such a sign in quotes."
            raise NotRead(said, _line(token.start_mark))
        depth += isinstance(token, _OPENS) - isinstance(token, _CLOSES)
        if depth > DEEPEST:
            raise NotRead(TOO_DEEP, _line(token.start_mark))
        if count > MOST_TOKENS:
            raise NotRead(TOO_MUCH, _line(token.start_mark))


def _line(mark: Any) -> int:
    """In the file: YAML counts from 0, and below the fence."""
    return mark.line + 2 if mark else 1


# What the parser says, and what helps somebody who does not know how YAML is read.
_MEANT = (
    (
        "mapping values are not allowed",
        "a colon stands where none can. Put text that holds one in quotes; or the line above lacks one, or "
        "this line begins too far in",
    ),
    ("found character '\\t'", "a tab stands before it. Use blanks"),
    ("cannot start any token", "it begins with a sign that means something else. Put it in quotes"),
    ("but found '<block mapping start>'", "it begins further in or further out than the lines around it"),
    ("but found '<scalar>'", "something stands behind the end of a quote. Put all of it in quotes"),
    ("found unexpected end of stream", "a quote has no end"),
    ("'<stream end>'", "a bracket has no end"),
)


def _told(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "something else was expected"
    meant = next((said for sign, said in _MEANT if sign in problem), problem)
    return f"This is not the YAML of front matter: {meant}."
