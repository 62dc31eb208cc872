"""What an awk program reads, writes and runs: found by one walk over it, never by searching it.

Whether a slash begins a pattern or divides depends on what stands before it. Where that is not certain, or a
target is no plain string, the program is not readable.
"""

import re

from permissions_app.rules.shell.scripts import Script, Unclear

_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"[\d.][\w.]*")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
_BLANKS = re.compile(r"(?:[ \t]|\\\r?\n)*")
# Where a bracket holds a slash, not every awk ends the pattern at the same place.
_PATTERN = re.compile(r"(?:[^\[\\/\n]|\\.|\[\^?+\]?+(?:[^\]\\/\n]|\\[^\n])*+\])*+/")
_TARGET = re.compile(r'>?[ \t]*"([^"\\\n]+)"[ \t]*(?=[;}\n)]|$)')
_COMMENT = re.compile(r"#[^\n]*")
_BEFORE_PATTERN = frozenset("(,{};\n~!&|=<>?:*%^")
_KEYWORDS_BEFORE_PATTERN = frozenset({"print", "printf", "return", "case", "in", "else", "do", "exit"})
_TESTS = frozenset({"if", "while", "for", "switch"})  # what follows their brackets is no operand
_PRINTS = frozenset({"print", "printf"})
_UNCLEAR_NAMES = frozenset({"ARGV", "ARGC", "SYMTAB", "FUNCTAB"})  # by these it may open other files


def read_awk(text: str) -> Script:
    program = Script()
    try:
        _Walk(text, program).all()
    except Unclear:
        program.is_readable = False
    return program


class _Walk:
    def __init__(self, text: str, program: Script) -> None:
        self.text, self.program, self.at = text, program, 0
        self.before = "\n"  # the last token: `a` for an operand, a keyword, else its last character
        self.depth = 0
        self.tests: list[bool] = []  # of each open bracket: is it one of `if (…)`?
        self.prints_at: int | None = None  # the depth of the print statement that this is in
        self.gets_line = False

    def all(self) -> None:
        while True:
            self._past(_BLANKS)
            if self.at >= len(self.text):
                return
            self._token(self.text[self.at])

    def _past(self, what: re.Pattern[str]) -> re.Match[str] | None:
        found = what.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def _token(self, character: str) -> None:
        if name := self._past(_NAME):
            self._name(name[0])
        elif character == '"':
            if not self._past(_STRING):
                raise Unclear
            self.before = "a"
        elif self._past(_NUMBER) or character == "$":
            self.at += character == "$"
            self.before = "$" if character == "$" else "a"
        elif character == "#":
            self._past(_COMMENT)
        elif character == "/":
            self._slash()
        else:
            self.at += 1
            self._operator(character)

    def _name(self, name: str) -> None:
        if name == "system":
            self.program.runs = True
        if name in _UNCLEAR_NAMES:
            raise Unclear
        if name in _PRINTS:
            self.prints_at = self.depth
        self.gets_line |= name == "getline"
        is_operand = name not in _KEYWORDS_BEFORE_PATTERN | _TESTS | {"getline"}
        self.before = "a" if is_operand else name

    def _operator(self, character: str) -> None:
        if character in "@\\'`":
            raise Unclear
        if character == "|":
            self.program.runs |= self.text[self.at : self.at + 1] != "|"
            self.at += self.text.startswith("|", self.at)
        elif character in "(){}[];\n":
            self._bracket(character)
        elif character == ">" and self.prints_at == self.depth:
            self.program.writes.append(self._target())
        elif character == "<" and self.gets_line:
            self.program.reads.append(self._target())
            self.gets_line = False
        if character not in ")]":
            self.before = character

    def _bracket(self, character: str) -> None:
        if character in "([":
            self.tests.append(self.before in _TESTS)
        elif character in ")]":
            self.before = ";" if self.tests and self.tests.pop() else "a"
        self.depth = len(self.tests)
        if character in "{};\n" or (self.prints_at is not None and self.depth < self.prints_at):
            self.prints_at = None
        self.gets_line &= character not in "{};\n"

    def _target(self) -> str:
        found = self._past(_TARGET)
        if not found:
            raise Unclear
        return found[1]

    def _slash(self) -> None:
        if self.before == "a":
            self.at += 1
            self.before = "="  # what is divided by: a pattern only where one is written
        elif self.before in _BEFORE_PATTERN or self.before in _KEYWORDS_BEFORE_PATTERN:
            self.at += 1
            self._pattern()
            self.before = "a"
        else:
            raise Unclear

    def _pattern(self) -> None:
        found = self._past(_PATTERN)
        if not found:
            raise Unclear
