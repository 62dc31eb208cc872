"""A skill that comes as a zip: looked at as a whole before anything of it is written."""

import io
import re
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from agents_app.tools.skills.found import (
    DEEPEST,
    FILE,
    LARGEST,
    MOST_FILES,
    Unusable,
    check_name,
    name_in,
    parsed,
)
from permissions_app.rules.deny_list import is_secret_name
from permissions_app.rules.paths import fold
from sessions_app.storable import is_storable

LARGEST_ZIP = 10 << 20
ENTRY = b"PK\x01\x02"  # how each begins in the list of what is in a zip
ANY_SIZE = 1 << 16
PACKED_BY = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of the others a piece of any size comes out at once
CANNOT_BE_OPENED = (zipfile.BadZipFile, zlib.error, NotImplementedError)
_LEFT_OUT = re.compile(r"(?:^|/)(?:__MACOSX|\.DS_Store|Thumbs\.db)(?:/|$)")  # what systems put in unasked
_ELSEWHERE_NONE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?|.*[. ]", re.IGNORECASE)  # of Windows
_BAD = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')


@dataclass(frozen=True)
class Unpacked:
    name: str
    files: dict[str, tuple[bytes, bool]]  # by path below its folder: content, and whether it is a program


def unpacked(content: bytes) -> Unpacked:
    """Raises Unusable."""
    if len(content) > LARGEST_ZIP:
        raise Unusable(f"The zip has more than {LARGEST_ZIP >> 20} MB.")
    if content.count(ENTRY) > 4 * MOST_FILES:  # each of them is some memory before it is looked at
        raise Unusable(f"It has more than {MOST_FILES} files.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = _files(archive)
    except (*CANNOT_BE_OPENED, RuntimeError, EOFError, OSError, ValueError) as error:
        raise Unusable("This is no zip that can be opened here.") from error
    top, files = _without_top(files)
    if FILE not in files:
        raise Unusable(f"There is no {FILE} in it, neither at its top nor in its one folder.")
    text = files[FILE][0]
    name = name_in(text) or top
    if not name:
        raise Unusable(
            f"{FILE} says no name, and no folder is around it. Write `name:` into its front matter."
        )
    check_name(name)
    parsed(text, name)
    return Unpacked(name, files)


def _files(archive: zipfile.ZipFile) -> dict[str, tuple[bytes, bool]]:
    wanted = [
        each for each in archive.infolist() if not each.is_dir() and not _LEFT_OUT.search(each.filename)
    ]
    if len(archive.infolist()) > 4 * MOST_FILES or len(wanted) > MOST_FILES:
        raise Unusable(f"It has more than {MOST_FILES} files.")
    files: dict[str, tuple[bytes, bool]] = {}
    size = 0
    for each in wanted:
        _check(each)
        content = _content(archive, each, LARGEST - size)
        size += len(content)
        if fold(each.filename) in map(fold, files):
            raise Unusable(f"{each.filename[:100]} is in it twice.")
        files[each.filename] = content, bool((each.external_attr >> 16) & stat.S_IXUSR)
    return files


def _check(each: zipfile.ZipInfo) -> None:
    name, shown = each.filename, each.filename[:100]
    parts = PurePosixPath(name).parts
    if name.startswith("/") or not parts or ".." in parts or _BAD.search(name) or not is_storable(name):
        raise Unusable(f"{shown!r} is no path inside a skill.")
    if any(map(_ELSEWHERE_NONE.fullmatch, parts)):
        raise Unusable(f"{shown!r} is no path inside a skill: some systems have no file of this name.")
    if "/".join(parts) != name:
        raise Unusable(f"{shown!r} is no plain path.")
    if len(parts) > DEEPEST + 1 or any(len(part.encode()) > 200 for part in parts):
        raise Unusable(f"{shown!r} is too deep or too long.")
    if each.compress_type not in PACKED_BY:
        raise Unusable(f"{shown!r} is packed in a way that is not taken. Make a plain zip.")
    mode = each.external_attr >> 16
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        raise Unusable(f"{shown!r} is a link or a special file. Put the file itself there.")
    if any(is_secret_name(fold(part)) for part in parts):
        raise Unusable(f"{shown!r} has the name of a secret, which no agent reads. Take it out.")


def _content(archive: zipfile.ZipFile, each: zipfile.ZipInfo, room: int) -> bytes:
    """By what comes out, and not by what the zip says of itself."""
    found = bytearray()
    with archive.open(each) as file:
        while piece := file.read(ANY_SIZE):
            found += piece
            if len(found) > room:
                raise Unusable(f"Its files have more than {LARGEST >> 20} MB.")
    return bytes(found)


def _without_top(files: dict[str, tuple[bytes, bool]]) -> tuple[str, dict[str, tuple[bytes, bool]]]:
    """Many pack the folder, and not what is in it."""
    tops = {path.partition("/")[0] for path in files}
    if FILE in files or len(tops) != 1 or any("/" not in path for path in files):
        return "", files
    top = tops.pop()
    return top, {path.partition("/")[2]: each for path, each in files.items()}
