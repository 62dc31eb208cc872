"""What a tool found, in words."""

import re
from collections.abc import Callable

from agents_app.model.demo import words
from agents_app.model.demo.conversation import Asked, ToolResult

LINES_SHOWN = 20

_WRAPPING = re.compile(r"</?tool_use_error>|^PreToolUse:\w+ hook error: |^Error: ")


def tell(result: ToolResult, asked: Asked) -> str:
    if result.name == "Bash":
        return _bash(result)
    if result.is_error:
        return _trouble(result, asked)
    return _TELLERS.get(result.name, _other)(result, asked)


def content(result: ToolResult) -> str:
    """What is in a file that was read, without the numbers of its lines."""
    return "\n".join(re.sub(r"^\s*\d+[\t→]", "", line) for line in result.text.splitlines())


def _read(result: ToolResult, asked: Asked) -> str:
    lines = content(result).rstrip().splitlines()
    quoted = "\n".join(f"> {line}".rstrip() for line in lines[:LINES_SHOWN])
    return f"This is what {_where(result, asked)} says:\n\n{quoted}{_rest(lines)}"


def _glob(result: ToolResult, asked: Asked) -> str:
    paths = result.text.splitlines()
    if result.text.startswith("No files found"):
        return "I looked, and there is nothing there yet. `write a note about pears` would change that."
    listed = "\n".join(f"- {_short(path, asked)}" for path in paths[:LINES_SHOWN])
    return f"I found {_counted(len(paths), 'file')}:\n\n{listed}{_rest(paths)}"


def _grep(result: ToolResult, asked: Asked) -> str:
    sought = "“" + re.sub(r"\\(.)", r"\1", str(result.input.get("pattern", ""))) + "”"
    lines = result.text.splitlines()
    if result.text.startswith("No matches found"):
        return f"I searched all of the notes, and {sought} is in none of them."
    listed = "\n".join(_match(line, asked) for line in lines[:LINES_SHOWN])
    return f"I found {sought} in {_counted(len(lines), 'line')}:\n\n{listed}{_rest(lines)}"


def _match(line: str, asked: Asked) -> str:
    path, number, text = [*line.split(":", 2), "", ""][:3]
    return f"- {_short(path, asked)}, line {number}: {text.strip()}" if text else f"- {line}"


def _write(result: ToolResult, asked: Asked) -> str:
    where = _where(result, asked)
    return f"Done: the note is in {where}. Ask me to `read {where}` to see it."


def _edit(result: ToolResult, asked: Asked) -> str:
    where = _where(result, asked)
    return f"Done: {where} has one line more. What changed is shown with the tool, above."


def _other(result: ToolResult, asked: Asked) -> str:
    return f"The tool {result.name} answered:\n\n{_fenced(result.text)}"


def _bash(result: ToolResult) -> str:
    command = f"`{result.input.get('command', '')}`"
    if result.is_error and not result.text.startswith("Exit code"):
        return f"I tried to run {command}, and it was refused or failed: {_reason(result)}"
    how = " It did not end well:" if result.is_error else " It printed:"
    printed = _fenced(result.text) if result.text.strip() else "nothing."
    return f"I ran {command}.{how}\n\n{printed}"


def _trouble(result: ToolResult, asked: Asked) -> str:
    where = _where(result, asked)
    if where.rpartition("/")[2].startswith(".env"):
        return words.SECRETS.format(path=where) + f"\n\nThe reason that I was given: {_reason(result)}"
    if "does not exist" in result.text:
        return f"There is no {where} here. `list my notes` shows what there is."
    return f"I tried to use {result.name}, and it was refused or failed: {_reason(result)}"


def _reason(result: ToolResult) -> str:
    return _WRAPPING.sub("", result.text).strip()


def _where(result: ToolResult, asked: Asked) -> str:
    return _short(str(result.input.get("file_path", "it")), asked)


def _short(path: str, asked: Asked) -> str:
    return path.removeprefix(f"{asked.directory}/") if asked.directory else path


def _rest(lines: list[str]) -> str:
    more = len(lines) - LINES_SHOWN
    return f"\n\n… and {more} more." if more > 0 else ""


def _counted(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number} {noun}s"


def _fenced(text: str) -> str:
    """The first lines, in a fence that is longer than any in the text."""
    lines = text.splitlines()
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *lines[:LINES_SHOWN], fence]) + _rest(lines)


_TELLERS: dict[str, Callable[[ToolResult, Asked], str]] = {
    "Read": _read,
    "Glob": _glob,
    "Grep": _grep,
    "Write": _write,
    "Edit": _edit,
}
