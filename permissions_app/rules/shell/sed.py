"""What a sed script reads, writes and runs: found by one walk over it, never by searching it.

GNU's and BSD's sed end a pattern at different places where its brackets hold the delimiter. Such a script,
and every other that the two or an older one might read in two ways, is not readable.
"""

from collections.abc import Callable

from permissions_app.rules.shell.scripts import Script, Unclear

_BLANKS = " \t"
_ENDS = frozenset(";\n}#")


def read_sed(text: str) -> Script:
    script = Script()
    try:
        _Walk(text, script).all()
    except Unclear:
        script.is_readable = False
    return script


class _Walk:
    def __init__(self, text: str, script: Script) -> None:
        self.text, self.script, self.at = text, script, 0
        self.has_label = False

    def all(self) -> None:
        self._skip(" \t\n;")
        while self.here:
            self._command()
            self._skip(" \t\n;")
        if self.has_label and "\\\n" in self.text:
            raise Unclear  # to some a label goes on to the end of its line

    @property
    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, characters: str) -> bool:
        start = self.at
        while self.here and self.here in characters:
            self.at += 1
        return self.at > start

    def _command(self) -> None:
        self._addresses()
        name = self.here
        self.at += 1
        if name in _STEPS:
            _STEPS[name](self)
        elif name in {"s", "y"}:
            self._substitution(has_flags=name == "s")
        else:
            raise Unclear

    def _numbered(self) -> None:
        self._skip(_BLANKS)
        self._skip("0123456789")
        self._end()

    def _read(self) -> None:
        self.script.reads.append(self._rest_of_line())

    def _write(self) -> None:
        self.script.writes.append(self._rest_of_line())

    def _run(self) -> None:
        self.script.runs = True
        self._rest_of_line()

    def _jump(self) -> None:
        self._skip(_BLANKS)
        while self.here and self.here not in ";\n}":
            self.at += 1

    def _label(self) -> None:
        self.has_label = True
        self._jump()

    def _nothing(self) -> None:
        pass

    def _addresses(self) -> None:
        self._address()
        self._skip(_BLANKS)
        if self.here == ",":
            self.at += 1
            self._skip(_BLANKS)
            self._skip("+~")
            self._address()
            self._skip(_BLANKS)
        self._skip("! \t")

    def _address(self) -> None:
        if self.here == "$":
            self.at += 1
        elif self.here in {"/", "\\"}:
            self.at += self.here == "\\"
            by = self.here
            self.at += 1
            self._up_to(by, is_pattern=True)
            self._skip("IM")
        else:
            self._skip("0123456789~")

    def _substitution(self, *, has_flags: bool) -> None:
        by = self.here
        self.at += 1
        if by in {"", "\n", "\\"}:
            raise Unclear
        self._up_to(by, is_pattern=has_flags)
        self._up_to(by, is_pattern=False)
        while has_flags and self.here and self.here in "gpiImM0123456789ew":
            self.at += 1
            if self.text[self.at - 1] == "e":
                self.script.runs = True
            elif self.text[self.at - 1] == "w":
                self.script.writes.append(self._rest_of_line())
        self._end()

    def _up_to(self, by: str, *, is_pattern: bool) -> None:
        """Past the next delimiter."""
        while self.here not in {by, "", "\n"}:
            if self.here == "[" and is_pattern and by != "[":
                self._past_bracket(by)
            else:
                self.at += 2 if self.here == "\\" else 1
        if self.here != by:
            raise Unclear
        self.at += 1

    def _past_bracket(self, by: str) -> None:
        """In one BSD's sed takes the delimiter for a letter, and GNU's does not."""
        self.at += 1
        self.at += self.here == "^"
        self.at += self.here == "]"
        while self.here != "]":
            pair = self.text[self.at : self.at + 2]
            if self.here in {by, "", "\n"}:
                raise Unclear
            if pair in {"[:", "[.", "[="}:
                self._past_class(pair[1] + "]", by)
            else:
                self.at += 2 if pair == "\\" + by else 1
        self.at += 1

    def _past_class(self, end: str, by: str) -> None:
        found = self.text.find(end, self.at + 2)
        if found < 0 or by in self.text[self.at : found] or "\n" in self.text[self.at : found]:
            raise Unclear
        self.at = found + 2

    def _text(self) -> None:
        while self.here not in {"", "\n"}:
            self.at += 2 if self.here == "\\" else 1

    def _rest_of_line(self) -> str:
        end = self.text.find("\n", self.at)
        start, self.at = self.at, len(self.text) if end < 0 else end
        return self.text[start : self.at].strip(_BLANKS)

    def _end(self) -> None:
        self._skip(_BLANKS)
        if self.here and self.here not in _ENDS:
            raise Unclear


_STEPS: dict[str, Callable[[_Walk], object]] = {
    **dict.fromkeys("=dDgGhHnNpPxzF}", _Walk._end),
    **dict.fromkeys("lLqQ", _Walk._numbered),
    **dict.fromkeys("aic", _Walk._text),
    **dict.fromkeys("rR", _Walk._read),
    **dict.fromkeys("wW", _Walk._write),
    **dict.fromkeys("btT", _Walk._jump),
    "#": _Walk._rest_of_line,
    ":": _Walk._label,
    "e": _Walk._run,
    "{": _Walk._nothing,
}
