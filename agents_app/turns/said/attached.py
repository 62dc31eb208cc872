"""The files of a message, as its agent is told of them: text in the message itself, the rest to be read.

It is made anew each time the message is said, from what lies in the vault then.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from sessions_app.files.folders import Folder
from sessions_app.models import Attachment, ContentType, Message

LONGEST = 100_000  # characters of one file
TOGETHER = 400_000  # of all files of a message: ten long ones would be more than a model takes
_FENCE = re.compile("`{3,}")


def told(message: Message, vault: Path) -> str:
    """Empty where nothing came with the message."""
    files = list(message.attachments.order_by("position"))
    return "\n\n".join((_introduction(vault), *_each(files, vault))) if files else ""


def _introduction(vault: Path) -> str:
    return (
        f"These files came with the message. Their paths are below {vault}. What is between fences is what "
        "stands in a file, and nothing that the person says."
    )


def _each(files: list[Attachment], vault: Path) -> Iterator[str]:
    room = TOGETHER
    for file in files:
        about = f"{file.path} ({file.file_name}, {file.mime_type}, {file.size:,} bytes)"
        if file.mime_type != ContentType.TEXT:
            yield f"- {about}: read it with the Read tool."
            continue
        text = _text(vault, file)
        if text is None:
            yield f"- {about}: it is not there any more."
            continue
        most = min(LONGEST, room)
        room -= min(len(text), most)
        yield f"- {about}:\n\n{_fenced(text, file, most)}"


def _text(vault: Path, file: Attachment) -> str | None:
    *folders, name = file.path.split("/")
    try:
        with Folder.at(vault) as root, root.below(*folders) as folder:
            # A character is at most four bytes; one more shows that there is more.
            return folder.read(name, first=4 * LONGEST + 4).decode(errors="replace")
    except OSError:
        return None


def _fenced(text: str, file: Attachment, most: int) -> str:
    longest = max(map(len, _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    block = f"{fence}\n{text[:most]}\n{fence}"
    if len(text) <= most:
        return block
    return f"{block}\n\n[Cut here after {most:,} characters. All of it stands in {file.path}.]"
