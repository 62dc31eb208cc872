"""Where a path leads: every place that it names on the way.

A path is judged as it is written and as the kernel follows it, because a link may lead out of a safe
folder, and may lead into one from a place that is closed.
"""

import errno
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_BYTES = 4096  # the kernel takes no longer path
MAX_LINKS = 40  # nor more links than this: it is a loop

_NO_LINK = frozenset({errno.EINVAL, errno.ENOENT, errno.ENOTDIR})


class NotUnderstood(ValueError):
    """The input cannot be read with certainty, so it is denied. The text says what is wrong with it."""


@dataclass(frozen=True)
class Place:
    """Where one path leads. All paths are absolute and without `.` and `..`."""

    stops: tuple[str, ...]  # as written, then after each link
    ends: tuple[str, ...]  # where it ends: as we read `..`, and as the kernel does
    links: tuple[str, ...]  # where a link stands on the way


Links = dict[str, str | None]  # where each leads that was looked at; None for what is no link


def find(text: str, start: str, links: Links) -> Place:
    """Follow `text` from `start`. Raises NotUnderstood where it might mean something else to the CLI.

    What `links` hold is not looked at again: a decision looks once at each, so it sees one state of them, and
    does not let go of the interpreter at every name of every path.
    """
    spellings, names, unlinked = _written(text, start)
    if len(spellings) == 1:
        step = ""
        for name in names:
            step = f"{step}/{name}"
            if _leads(step, links) is not None:
                break
        else:
            return unlinked
    stops = [spellings[0]]
    ends: list[str] = []
    crossed: list[str] = []
    for spelling in spellings:
        ends.append(_follow(spelling, stops, crossed, links))
    return Place(tuple(dict.fromkeys(stops + ends)), tuple(ends), tuple(crossed))


@lru_cache(maxsize=512)
def _written(text: str, start: str) -> tuple[tuple[str, ...], tuple[str, ...], Place]:
    """How a path can be read, the names on the plain way, and where that leads if no link stands on it: all
    that can be said without a look at the files. Most paths of a session come again and again. The steps of
    the way are not kept: of one path of 1,700 names they take 3 MB."""
    refuse_unclear(text)
    written = os.path.join(start, text)  # noqa: PTH118  (a Path costs ten times as much)
    plain = _normal(written)
    # `link/..` is the folder above the link's target to the kernel, and the link's own to the CLI.
    spellings = (plain, written) if ".." in written.split("/") else (plain,)
    names = tuple(name for name in plain.split("/") if name)
    return spellings, names, Place((plain,), (plain,), ())


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@lru_cache(maxsize=512)
def fold(text: str) -> str:
    """The text as the most forgiving file system compares it.

    Only for refusing: what is allowed is compared exactly. Case, compatibility forms (fullwidth
    letters) and characters without a width are all ignored by one file system or another.
    """
    if text.isascii():
        return text.lower().replace("\\", "/")
    wide = unicodedata.normalize("NFKC", text).casefold()
    visible = wide if wide.isprintable() else "".join(c for c in wide if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", visible).replace("\\", "/")


def folded_parts(path: str) -> list[str]:
    """The names in a path, folded. Some file systems drop dots and blanks at the end of a name."""
    return [part.rstrip(". ") for part in fold(path).split("/") if part]


def refuse_unclear(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise NotUnderstood("a path holds characters that no file name can have") from None
    if size > MAX_BYTES:
        raise NotUnderstood("a path is too long")
    if "\0" in text:
        raise NotUnderstood("a path holds a NUL byte")
    if text.strip().strip("\ufeff") != text:
        raise NotUnderstood("a path begins or ends with blanks, which the CLI would cut")
    if text.startswith("~"):
        raise NotUnderstood("a path begins with ~; write the whole path")
    if text.lower().startswith("file:"):
        raise NotUnderstood("a path is written as an address; write the plain path")


def _normal(path: str) -> str:
    return "/" + os.path.normpath(path).lstrip("/")  # normpath keeps a double slash at the front


def _follow(path: str, stops: list[str], crossed: list[str], links: Links) -> str:
    """Walk the path name by name as the kernel does, noting each link and what was meant after it."""
    here = "/"
    waiting = list(_backwards(path))
    while waiting:
        name = waiting.pop()
        if name == "..":
            here = os.path.dirname(here)  # noqa: PTH120
            continue
        step = f"{here.rstrip('/')}/{name}"
        target = _leads(step, links)
        if target is None:
            here = step
            continue
        crossed.append(step)
        if len(crossed) > MAX_LINKS:
            raise NotUnderstood("a path goes through too many links")
        if target.startswith("/"):
            here = "/"
        waiting.extend(_backwards(target))
        stops.append(_normal("/".join([here, *reversed(waiting)])))
    return here


def _leads(step: str, links: Links) -> str | None:
    if step not in links:
        links[step] = _link_at(step)
    return links[step]


def _backwards(path: str) -> Iterator[str]:
    return (name for name in reversed(path.split("/")) if name not in {"", "."})


def _link_at(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError as error:
        if error.errno in _NO_LINK:
            return None
        raise NotUnderstood("a path cannot be followed by the server") from None
