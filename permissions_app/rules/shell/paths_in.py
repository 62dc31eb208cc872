"""The paths that the words of a command name."""

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from permissions_app.rules.control_files import is_control_file
from permissions_app.rules.deny_list import has_secret_name, what_is_denied
from permissions_app.rules.paths import NotUnderstood, Place, find
from permissions_app.rules.shell import danger, globs
from permissions_app.rules.shell.parse import Unreadable
from permissions_app.rules.shell.reading import Outcome
from permissions_app.rules.shell.scope import Directories
from permissions_app.rules.shell.words import UNKNOWN, Word, with_home

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line

MAX_PATHS = 600
_SEPARATORS = re.compile(r"[=:,@]")
_FORM_SEPARATORS = re.compile(r"[=:,@<;\"\\]")  # `curl -F 'x=<file;type=text/plain'`
_MAX_PIECES = 200
_DISK = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|r?disk|dm-|mapper/|md|loop|nbd|k?mem|port).*", re.DOTALL)
_CODE = re.compile(r"[^\w./~*-]+")


class PathsIn:
    def __init__(self, line: "Line") -> None:
        self._line = line
        self._named: set[tuple[Word, Directories]] = set()
        self._matched: dict[tuple[str, str, frozenset[str]], list[str]] = {}
        self._seen: dict[tuple[str, str | None], Place | None] = {}

    def name(self, words: Iterable[Word]) -> None:
        for word in words:
            self._name(word)

    def write(self, words: Iterable[Word]) -> None:
        for word in dict.fromkeys(words):
            self._name(word)
            if not word.known:
                self._line.reading.indirect = True
            if None in self._line.scope.directories and not word.text.startswith(("/", "-")):
                self._line.reading.found(Outcome.UNREADABLE)  # who knows which file that is
            for text in [*self.opened(word), *_without_unknown(word)]:
                if danger.is_harmless_device(text):
                    continue
                for place in self.places(text):
                    self._line.reading.writes.append(place)
                    if any(danger.is_device(path) for path in {*place.stops, *place.ends}):
                        self._line.reading.found(Outcome.DANGEROUS)

    def form(self, words: Iterable[Word]) -> None:
        """Values of `curl -F`, which names files in ways of its own."""
        for word in words:
            self.name(Word(piece) for piece in _FORM_SEPARATORS.split(word.text)[:_MAX_PIECES] if piece)

    def steer(self, words: Iterable[Word]) -> None:
        """Words of a command that may write what they name: control files and devices count as written."""
        for word in set(words):
            for text in {*_pieces(word.text), *self.opened(word)}:
                place = None if danger.is_harmless_device(text) else self.place(text)
                if place is None:
                    continue
                if is_control_file(place, self._line.ground):
                    self._line.reading.writes.append(place)
                devices = [path for path in {*place.stops, *place.ends} if danger.is_device(path)]
                if devices:
                    is_disk = any(_DISK.fullmatch(path) for path in devices)
                    self._line.reading.found(Outcome.DANGEROUS if is_disk else Outcome.UNREADABLE)

    def is_there(self, text: str) -> bool:
        place = self.place(text)
        return place is not None and any(os.path.lexists(end) for end in place.ends)

    def is_folder(self, text: str) -> bool:
        place = self.place(text)
        return place is not None and any(os.path.isdir(end) for end in place.ends)  # noqa: PTH112

    def code(self, text: str) -> None:
        """Code in another language: whatever in it looks like a path."""
        for piece in set(_CODE.split(text[:20_000])):
            if "." in piece and has_secret_name(piece):
                self._line.reading.found(Outcome.SECRET)

    def opened(self, word: Word) -> list[str]:
        if word.pattern is None:
            return [word.text]
        found: list[str] = []
        for directory in sorted(self._line.scope.directories, key=str):
            if directory is not None or word.text.startswith("/"):
                found += self._matches(word.pattern, directory or "/")
        return list(dict.fromkeys(found)) or [word.text]

    def _matches(self, pattern: str, directory: str) -> list[str]:
        options = frozenset(self._line.scope.options)
        key = (pattern, directory, options)
        if key not in self._matched:
            self._matched[key] = globs.matches(pattern, directory, options)
        return self._matched[key]

    def place(self, text: str) -> Place | None:
        """Where a word of a command leads; None where it is no path, or begins nobody knows where."""
        return self._place(text, self._line.scope.directory)

    def places(self, text: str) -> list[Place]:
        """The same for each directory in which the line may stand."""
        found = (self._place(text, each) for each in sorted(self._line.scope.directories, key=str))
        return list(dict.fromkeys(place for place in found if place is not None))

    def _place(self, text: str, directory: str | None) -> Place | None:
        key = (text, directory)
        if key not in self._seen:
            if len(self._seen) > MAX_PATHS:
                raise Unreadable
            self._seen[key] = self._find(text, directory)
        return self._seen[key]

    def _find(self, text: str, directory: str | None) -> Place | None:
        if directory is None and not text.startswith("/"):
            return None
        try:
            return find(text.replace(UNKNOWN, "?").strip(), directory or "/", self._line.ground.links)
        except NotUnderstood:
            return None

    def _name(self, word: Word) -> None:
        reading = self._line.reading
        reading.indirect |= not word.known
        key = (word, self._line.scope.directories)
        if key in self._named:
            return
        self._named.add(key)
        for piece in _pieces(word.text):
            if danger.is_harmless_device(piece):
                continue  # `/dev/stderr` is a link into `/proc/self`
            if has_secret_name(piece) or self._is_denied(piece):
                reading.found(Outcome.SECRET)
        for text in _without_unknown(word):
            if has_secret_name(text) or any(
                what_is_denied(each, self._line.ground) for each in self.places(text)
            ):
                reading.found(Outcome.UNREADABLE)
        if word.pattern is not None:
            self._open(word)

    def _open(self, word: Word) -> None:
        if globs.is_written_for_secret(word.pattern or "", self._line.scope.options):
            self._line.reading.found(Outcome.SECRET)
        if any(has_secret_name(path) or self._is_denied(path) for path in self.opened(word)):
            self._line.reading.found(Outcome.SECRET)

    def _is_denied(self, text: str) -> bool:
        places = self.places(text)
        self._line.reading.places += places
        return any(what_is_denied(place, self._line.ground) is not None for place in places)


def _without_unknown(word: Word) -> list[str]:
    """What it leads to where nothing stands for what is not known: `.e${x}nv`. Of a place below a folder that
    nobody knows it says nothing."""
    text = word.text.replace(UNKNOWN, "")
    return [] if word.known or not text or word.text.startswith(f"{UNKNOWN}/") else [text]


def _pieces(text: str) -> set[str]:
    found = _SEPARATORS.split(text)
    if len(found) > _MAX_PIECES:
        raise Unreadable
    pieces = {text, *found}
    if text.startswith("-") and not text.startswith("--"):
        # `-f.env`, `-sT.env`: how many letters are options is the program's affair.
        pieces |= {text[start:] for start in range(2, min(len(text), 6))}
    pieces |= {with_home(piece) for piece in pieces if piece.startswith("~")}
    return {piece for piece in pieces if piece and piece != UNKNOWN}
