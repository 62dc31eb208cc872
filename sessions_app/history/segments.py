"""A long transcript in parts: cut where its model's context was compacted, and where a part would be too
long, at the beginning of a turn.

The places are looked for in one pass that takes no row apart and keeps none; only the part that is wanted is
read.
"""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO
from uuid import UUID

from django.utils.translation import gettext as _

from sessions_app.errors import Invalid
from sessions_app.files.folders import LARGEST_FILE, Folder
from sessions_app.history import conversation, transcripts
from sessions_app.models import Session

LONG = 4 << 20  # bytes
# A model reads half a megabyte and more before its context is compacted. Its agent can write as many places
# as lines, and each would be a part of every answer.
MOST_PARTS = 1_000
PREVIEW = 100  # characters
# Quotation marks in what somebody said stand in the file with a backslash, so these are keys of rows.
_COMPACTED = b'"subtype":"compact_boundary"'
_PROMPT = b'"promptSource":"sdk"'
_ANSWER = b'"type":"assistant"'
_ASIDE = b'"isSidechain":true'
_MESSAGE = re.compile(rb'"id":"(msg_[^"]{1,100})"')
_UUID = re.compile(rb'"uuid":"([0-9a-f-]{36})"')
_TIME = re.compile(rb'"timestamp":"([^"]{1,40})"')


@dataclass
class Segment:
    index: int
    begin: int  # bytes of the file
    within: str = ""  # the message whose turn had begun before
    end: int = 0
    started: str = ""  # times of its first row and of its last
    ended: str = ""
    prompts: int = 0
    answers: set[bytes] = field(default_factory=set)
    preview: str = ""
    is_compacted: bool = False  # its model has read a summary of it since, and no more

    @property
    def message_count(self) -> int:
        return self.prompts + len(self.answers)


@dataclass
class Parts:
    segments: list[Segment]
    skipped: int  # lines that are no rows


@dataclass(frozen=True)
class Chosen:
    """Which parts: one, all, those since the last compaction; else the last."""

    index: int | None = None
    is_full: bool = False
    is_after_compact: bool = False

    def of(self, segments: list[Segment]) -> list[Segment]:
        if self.index is not None:
            if self.index >= len(segments):
                raise Invalid.field(
                    "segment", _("There are {count} of them, from 0 on.").format(count=len(segments))
                )
            return [segments[self.index]]
        if self.is_full:
            return segments
        if self.is_after_compact:
            return [segment for segment in segments if not segment.is_compacted]
        return segments[-1:]


def transcript(session: Session, chosen: Chosen) -> tuple[list[dict[str, Any]], Parts]:
    with opened(session.pk) as file:
        if file is None:
            return [], Parts([], 0)
        found = parts(file)
        wanted = chosen.of(found.segments)
        return conversation.of_part(session, read(file, wanted), wanted[0].within), found


@contextmanager
def opened(session_id: UUID) -> Iterator[BinaryIO | None]:
    """The session's own transcript, if there is one."""
    try:
        with Folder.at(transcripts.config_folder(session_id)) as top, top.below("projects") as projects:
            file = _found(projects, session_id)
    except OSError:
        file = None
    if file is None:
        yield None
        return
    with file:
        yield file


def _found(projects: Folder, session_id: UUID) -> BinaryIO | None:
    for name in projects.names():
        with suppress(OSError), projects.below(name) as project:
            return _of_a_cli(project.open(f"{session_id}.jsonl"))
    return None


def _of_a_cli(file: BinaryIO) -> BinaryIO | None:
    """None for one that is larger than any CLI writes, and has maybe one line that fills our memory."""
    if os.fstat(file.fileno()).st_size <= LARGEST_FILE:
        return file
    file.close()
    return None


def parts(file: BinaryIO) -> Parts:
    segments = [Segment(0, 0)]
    at, prompt, skipped, compacted = 0, "", 0, 0
    for line in islice(_lines(file), transcripts.MOST_LINES):
        last = segments[-1]
        is_prompt = _PROMPT in line
        is_place = _COMPACTED in line or (is_prompt and at - last.begin > LONG)
        if is_place and len(segments) < MOST_PARTS:
            last.end = at
            segments.append(Segment(last.index + 1, at, within=prompt))
            compacted = len(segments) - 1 if _COMPACTED in line else compacted
        if is_prompt and (uuid := _UUID.search(line)):
            prompt = uuid[1].decode()
        skipped += not (line.startswith(b"{") and line.rstrip().endswith(b"}"))
        _count(segments[-1], line, at, is_prompt=is_prompt)
        at += len(line)
    segments[-1].end = at
    for before in segments[:compacted]:
        before.is_compacted = True
    return Parts(segments, skipped)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Its agent may make it longer meanwhile: what is read stays within what any CLI writes."""
    read = 0
    while read < LARGEST_FILE and (line := file.readline(LARGEST_FILE - read)):
        read += len(line)
        yield line


def _count(segment: Segment, line: bytes, at: int, *, is_prompt: bool) -> None:
    if time := _TIME.search(line):
        segment.ended = time[1].decode(errors="replace")
        segment.started = segment.started or segment.ended
    if _ASIDE in line:
        return
    if is_prompt:
        segment.prompts += 1
        segment.preview = segment.preview or _said(line)
    elif _ANSWER in line:
        name = _MESSAGE.search(line)
        segment.answers.add(name[1] if name else str(at).encode())


def _said(line: bytes) -> str:
    for entry in transcripts.entries(line):
        content = entry["message"]["content"]
        text = content if isinstance(content, str) else str(content[0].get("text", ""))
        return " ".join(text.split())[:PREVIEW]
    return ""


def read(file: BinaryIO, wanted: list[Segment]) -> bytes:
    """Of segments that follow one another."""
    file.seek(wanted[0].begin, io.SEEK_SET)
    return file.read(wanted[-1].end - wanted[0].begin)
