"""What was said in turns that are over, read from the JSONL that the SDK writes.

The original lies in the session's own configuration directory, which its agent can write: it is read without
following links. After each turn a copy is published to the vault, so that the vault stays portable.
"""

import io
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings

from sessions_app.folders import Folder, remove_all
from sessions_app.storable import storable

log = logging.getLogger(__name__)

Entry = dict[str, Any]
_NOT_SAID = (b'{"type":"api-request', b'{"type":"queue-operation"', b'{"type":"file-history')
_SYNTHETIC = "<synthetic>"
_HALF_A_PAIR = rb"\ud"  # the CLI cuts long results between the halves


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
                    return project.read(f"{session_id}.jsonl")
    except OSError:
        return None  # never run yet, or swapped for something that is no folder: either way, no transcript
    return None


def is_whole(transcript: bytes, last_entry: str) -> bool:
    """Whether a session can be resumed from it: something is said in it, it goes as far as we have seen, and
    no line is damaged. (The CLI resumes a damaged one without a word, and has forgotten what was before.)"""
    *lines, _ = transcript.split(b"\n")
    return (
        any(entries(transcript))
        and (not last_entry or _has(transcript, "uuid", last_entry))
        and all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    )


def entries(transcript: bytes) -> Iterator[Entry]:
    """Its rows that were said by somebody. A last line that was cut by a crash is passed over, and whatever
    else is not a row. Only LF ends a line: a string may hold U+2028."""
    for line in io.BytesIO(transcript):
        if line.startswith(_NOT_SAID):
            continue
        try:
            entry = json.loads(line.decode(errors="replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            entry = _said_meanwhile(entry) or entry
            if _is_said(entry):
                yield storable(entry) if _HALF_A_PAIR in line else entry


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
        and message.get("model") != _SYNTHETIC
    )


def _is_content(content: Any) -> bool:
    blocks = content if isinstance(content, list) else []
    return isinstance(content, str) or bool(blocks and all(isinstance(block, dict) for block in blocks))


def holds(transcript: bytes, message_id: UUID) -> bool:
    """Whether the model ever got this message."""
    return any(_has(transcript, name, str(message_id)) for name in ("uuid", "source_uuid"))


def _has(transcript: bytes, name: str, value: str) -> bool:
    """Looked for in the bytes: a quotation mark in what somebody said stands there with a backslash."""
    return f'"{name}":"{value}"'.encode() in transcript


def last_entry(transcript: bytes) -> str:
    for line in reversed(transcript.splitlines()):
        with suppress(ValueError, RecursionError, AttributeError):
            if uuid := json.loads(line).get("uuid"):
                return str(uuid)
    return ""


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


def remove(session_id: UUID, vault: Path | None) -> None:
    """All that a session left on this machine, and its copy in the vault: who deletes a chat means the
    copy too. What cannot be removed is named in the log: the rows are gone by now."""
    kept = config_folder(session_id)
    try:
        if os.path.lexists(kept):
            remove_all(kept)
    except OSError as problem:
        log.warning("Not all of %s could be removed: %s", kept, problem)
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
