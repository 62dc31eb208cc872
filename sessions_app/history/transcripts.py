"""What was said in turns that are over, read from the JSONL that the SDK writes.

The original lies in the session's own configuration directory, which its agent can write: it is read without
following links, and not at all where it is more than any CLI writes. After each turn a copy is published to
the vault, so that the vault stays portable.
"""

import errno
import io
import json
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings

from sessions_app.files.folders import Folder, remove_all
from sessions_app.storable import storable

log = logging.getLogger(__name__)

Entry = dict[str, Any]
_NOT_SAID = (b'{"type":"api-request', b'{"type":"queue-operation"', b'{"type":"file-history')
_SYNTHETIC = "<synthetic>"
_MAYBE_NO_TEXT = rb"\u"  # the CLI cuts long results between the halves of a pair, and commands write NUL
_ENTRY_ID = re.compile(r"[0-9a-f-]{36}")

# In 480 sessions the CLI wrote 1,168 bytes a line and more, and one sign of a value in 63 bytes. 64 MB of
# that, the most that is read of a file, have 57,000 lines and a million values. Its agent can put 20 million
# of either into as many bytes, and each would cost us a hundred bytes of memory.
MOST_LINES = 250_000
MOST_VALUES = 4_000_000
MOST_VALUES_OF_A_LINE = 500_000  # it is read in one go, and meanwhile no other thread runs
LONGEST_LINE = 32 << 20  # as much as a model is sent at once; with one emoji in it each byte takes four
DEEPEST = 100  # lists in lists; what is much deeper can be read, but not be written as an answer
LAST_LINES = 200  # that no entry may stand in; the CLI writes 4 after its last
_NO_SIGN = bytes(set(range(256)).difference(b"\n[{,"))


def config_folder(session_id: UUID) -> Path:
    """The session's `CLAUDE_CONFIG_DIR`, which no other session's agent can reach."""
    return Path(settings.PARACHUTE_HOME) / "claude" / str(session_id)


def raw(session_id: UUID) -> bytes | None:
    """The transcript as it is, or None where there is none."""
    return _found(config_folder(session_id), ("projects",), session_id)


def published(session_id: UUID, vault: Path) -> bytes | None:
    """The copy in the vault."""
    return _found(vault, (".claude", "projects"), session_id)


def _found(root: Path, below: tuple[str, ...], session_id: UUID) -> bytes | None:
    """Its folder is named after the working directory by a rule of the CLI's own, so it is looked for by the
    session's id."""
    try:
        with Folder.at(root) as top, top.below(*below) as projects:
            for name in projects.names():
                with suppress(OSError), projects.below(name) as project:
                    return _read(project, session_id)
    except OSError:
        return None  # never run yet, or swapped for something that is no folder: either way, no transcript
    return None


def _read(project: Folder, session_id: UUID) -> bytes | None:
    """None for one that no CLI wrote: it would cost us minutes and gigabytes. It counts as lost."""
    try:
        transcript = project.read(f"{session_id}.jsonl")
    except OSError as error:
        if error.errno == errno.EFBIG:
            log.warning("The transcript of %s counts as lost: %s", session_id, error)
        raise
    signs = _signs(transcript)
    lines = signs.count(b"\n")
    if lines > MOST_LINES or len(signs) - lines > MOST_VALUES:
        log.warning("The transcript of %s counts as lost: no CLI writes as many lines or values.", session_id)
        return None
    return transcript


def _signs(text: bytes) -> bytes:
    """At least one for each line and each value. Those that somebody said stand in it too: it is quick."""
    return text.translate(None, _NO_SIGN)


def is_whole(transcript: bytes, last_entry: str) -> bool:
    """Whether a session can be resumed from it: something is said in it, it goes as far as we have seen, and
    no line is damaged. (The CLI resumes a damaged one without a word, and has forgotten what was before.)"""
    return (
        _has_whole_lines(transcript)
        and (not last_entry or _has(transcript, "uuid", last_entry))
        and any(entries(transcript))
    )


def _has_whole_lines(transcript: bytes) -> bool:
    """Each begins and ends with a brace, but for one that is not ended yet. Their joints are counted, and
    they are not taken apart: there may be as many as bytes."""
    lines, end = transcript.count(b"\n"), transcript.rfind(b"\n") + 1
    return not lines or (
        transcript.startswith(b"{")
        and transcript.endswith(b"}\n", 0, end)
        and transcript.count(b"}\n{", 0, end) == lines - 1
    )


def entries(transcript: bytes) -> Iterator[Entry]:
    """Its rows that were said by somebody. A last line that was cut by a crash is passed over, and whatever
    else is not a row. Only LF ends a line: a string may hold U+2028."""
    for line in islice(io.BytesIO(transcript), MOST_LINES):
        row = None if line.startswith(_NOT_SAID) else _row(line)
        if row is not None:
            entry = _said_meanwhile(row) or row
            if _is_said(entry):
                yield entry


def _row(line: bytes) -> Entry | None:
    """What a line holds, or None where it is none that the CLI writes."""
    if len(line) > LONGEST_LINE or len(signs := _signs(line)) > MOST_VALUES_OF_A_LINE:
        return None
    try:
        row = _JSON.decode(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or (len(signs) - signs.count(b",") > DEEPEST and _is_deep(row)):
        return None
    return storable(row) if _MAYBE_NO_TEXT in line else row


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no number of JSON: no browser could read the answer that it stands in")
    return value


_JSON = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _is_deep(value: Any) -> bool:
    """Floor by floor: what calls itself for each would be at its end before."""
    floor = [value]
    for _ in range(DEEPEST):
        floor = [each for held in floor for each in _held_by(held) if isinstance(each, (dict, list))]
        if not floor:
            return False
    return True


def _held_by(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _said_meanwhile(entry: Entry) -> Entry | None:
    """What was said while a tool ran is no row of its own kind: made to look like any other message."""
    attached = entry.get("attachment")
    if not isinstance(attached, dict) or attached.get("type") != "queued_command":
        return None
    message = {"role": "user", "content": attached.get("prompt")}
    return {**entry, "type": "user", "message": message, "uuid": attached.get("source_uuid")}


def _is_said(entry: Entry) -> bool:
    message = entry.get("message")
    return (
        entry.get("type") in ("user", "assistant")
        and isinstance(message, dict)
        and _is_content(message.get("content"))
        and not entry.get("isSidechain")
        and not entry.get("isMeta")
        and not entry.get("isCompactSummary")  # the CLI's own words to its model
        and message.get("model") != _SYNTHETIC
    )


def _is_content(content: Any) -> bool:
    blocks = content if isinstance(content, list) else []
    return isinstance(content, str) or bool(blocks and all(map(_is_block, blocks)))


def _is_block(block: Any) -> bool:
    """A text that is none would stop whoever puts texts together, for every session."""
    return isinstance(block, dict) and (block.get("type") != "text" or isinstance(block.get("text"), str))


def holds(transcript: bytes, message_id: UUID) -> bool:
    """Whether the model ever got this message."""
    return any(_has(transcript, name, str(message_id)) for name in ("uuid", "source_uuid"))


def _has(transcript: bytes, name: str, value: str) -> bool:
    """Looked for in the bytes: a quotation mark in what somebody said stands there with a backslash."""
    return f'"{name}":"{value}"'.encode() in transcript


def last_entry(transcript: bytes) -> str:
    for line in islice(_from_the_end(transcript), LAST_LINES):
        uuid = (_row(line) or {}).get("uuid")
        if isinstance(uuid, str) and _ENTRY_ID.fullmatch(uuid):
            return uuid
    return ""


def _from_the_end(transcript: bytes) -> Iterator[bytes]:
    """Its lines, without taking the whole apart."""
    end = len(transcript)
    while end > 0:
        start = transcript.rfind(b"\n", 0, end) + 1
        yield transcript[start:end]
        end = start - 1


def publish(session_id: UUID, vault: Path, directory: Path) -> str:
    """Puts a copy into the vault, and says how far it goes. A vault that cannot take it costs the copy, not
    the turn."""
    content = raw(session_id)
    if content is None:
        return ""
    try:
        with (
            Folder.at(vault) as root,
            root.below(".claude", "projects", encoded(directory), make=True) as project,
        ):
            project.write(f"{session_id}.jsonl", content)
    except OSError as error:
        log.warning("The transcript of %s was not published to the vault: %s", session_id, error)
    return last_entry(content)


def restore(session_id: UUID, directory: Path, content: bytes) -> None:
    """Puts the published copy where the CLI looks for it. What lay there is set aside."""
    config_folder(session_id).mkdir(mode=0o700, parents=True, exist_ok=True)
    set_aside(session_id)
    with (
        Folder.at(config_folder(session_id)) as config,
        config.below("projects", encoded(directory), make=True) as project,
    ):
        project.write(f"{session_id}.jsonl", content)


def set_aside(session_id: UUID) -> None:
    """A transcript that is not to be resumed would be in the way of a new start ("already in use")."""
    projects = config_folder(session_id) / "projects"
    if os.path.lexists(projects):
        projects.rename(projects.with_name(f"projects-before-{uuid4()}"))


def remove(session_id: UUID, vault: Path | None, *, is_written: bool = False) -> None:
    """All that a session left on this machine, and its copy in the vault: who deletes a chat means the
    copy too. What cannot be removed is named in the log: the rows are gone by now. Where a worker still
    writes there, what comes meanwhile is that one's to remove, when it ends."""
    kept = config_folder(session_id)
    try:
        if os.path.lexists(kept):
            remove_all(kept)
    except OSError as problem:
        level = logging.INFO if is_written else logging.WARNING
        log.log(level, "Not all of %s could be removed: %s", kept, problem)
    if vault is not None:
        _unpublish(session_id, vault)


def _unpublish(session_id: UUID, vault: Path) -> None:
    with suppress(OSError), Folder.at(vault) as top, top.below(".claude", "projects") as projects:
        for name in projects.names():
            with suppress(OSError), projects.below(name) as project:
                project.remove(f"{session_id}.jsonl")


def encoded(directory: Path) -> str:
    """A working directory as the CLI names its folder: `/foo/bar` is `-foo-bar`."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(directory))[:200]
