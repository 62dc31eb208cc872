"""What was said in turns that are over, read from the JSONL that the SDK writes.

The original lies in the session's own configuration directory, which its agent can write: it is read without
following links. After each turn a copy is published to the vault, so that the vault stays portable.
"""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from sessions_app.folders import Folder
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
    """The transcript as it is, or None where there is none. Its folder is named after the working directory
    by a rule of the CLI's own, so it is looked for by the session's id."""
    try:
        with Folder.at(config_folder(session_id)) as config, config.below("projects") as projects:
            for name in projects.names():
                with suppress(OSError), projects.below(name) as project:
                    return project.read(f"{session_id}.jsonl")
    except OSError:
        return None  # never run yet, or swapped for something that is no folder: either way, no transcript
    return None


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
        if isinstance(entry, dict) and _is_said(entry):
            yield storable(entry) if _HALF_A_PAIR in line else entry


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
    return any(entry.get("uuid") == str(message_id) for entry in entries(transcript))


def publish(session_id: UUID, vault: Path, directory: Path) -> None:
    """Puts a copy into the vault. A vault that cannot take it costs the copy, not the turn."""
    content = raw(session_id)
    if content is None:
        return
    try:
        with (
            Folder.at(vault) as root,
            root.below(".claude", "projects", encoded(directory), make=True) as project,
        ):
            project.write(f"{session_id}.jsonl", content)
    except OSError as error:
        log.warning("The transcript of %s was not published to the vault: %s", session_id, error)


def encoded(directory: Path) -> str:
    """A working directory as the CLI names its folder: `/foo/bar` is `-foo-bar`."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(directory))[:200]
