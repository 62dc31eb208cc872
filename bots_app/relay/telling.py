"""What a turn says, as one text: what it has written so far, and in one quiet line what it does."""

from collections import Counter
from typing import Any

from django.utils.translation import gettext as _

from sessions_app.models import EventType

QUESTION = "AskUserQuestion"


class Telling:
    """Takes the frames of one turn."""

    def __init__(self) -> None:
        self._blocks: dict[int, str] = {}
        self._finished: set[int] = set()
        self._does = ""
        self._tools: Counter[str] = Counter()
        self._asks: set[str] = set()
        self._lost = False
        self._response = ""
        self._end = ""
        self.is_over = False

    def take(self, frame: dict[str, Any]) -> None:
        take = _TAKES.get(frame["type"])
        if take is not None:
            take(self, frame)

    @property
    def words(self) -> str:
        """What it wrote, and nothing of ours."""
        written = "\n\n".join(text for _block, text in sorted(self._blocks.items()) if text.strip())
        return written or self._response

    @property
    def text(self) -> str:
        parts = [self._quiet_lost(), self.words, self._quiet_line(), self._end]
        return "\n\n".join(part for part in parts if part)

    def _quiet_lost(self) -> str:
        return "_" + _("I have lost what was said here before.") + "_" if self._lost else ""

    def _quiet_line(self) -> str:
        if self._asks:
            return "_" + _("Waiting for somebody to decide.") + "_"
        if not self.is_over:
            return f"_{self._does} …_" if self._does else ""
        if not self._tools:
            return ""
        used = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in self._tools.items())
        return f"_{used}_"

    def _session(self, frame: dict[str, Any]) -> None:
        """Where a turn begins again, what was not finished is written anew."""
        self._blocks = {block: self._blocks[block] for block in self._finished}
        self._does = ""

    def _text(self, frame: dict[str, Any]) -> None:
        block = int(frame["block"])
        given_up = {each for each in self._blocks if each < block} - self._finished
        self._blocks = {each: text for each, text in self._blocks.items() if each not in given_up}
        if "content" in frame:
            self._blocks[block] = frame["content"]
            self._finished.add(block)
        else:
            self._blocks[block] = self._blocks.get(block, "")[: frame["offset"]] + frame["delta"]

    def _tool(self, frame: dict[str, Any]) -> None:
        name = _plain(frame["tool"]["name"])
        if frame.get("parentToolUseId") is None and frame["tool"]["name"] != QUESTION:
            self._tools[name] += 1
            self._does = name

    def _result(self, frame: dict[str, Any]) -> None:
        self._does = ""

    def _asked(self, frame: dict[str, Any]) -> None:
        self._asks.add(str(frame.get("requestId") or frame["id"]))

    def _decided(self, frame: dict[str, Any]) -> None:
        self._asks.discard(str(frame["requestId"]))

    def _unavailable(self, frame: dict[str, Any]) -> None:
        self._lost = not frame["hasHistory"]

    def _done(self, frame: dict[str, Any]) -> None:
        self._over()
        self._response = frame["response"]
        if not self.words:
            self._end = "_" + _("Done, without a word.") + "_"

    def _aborted(self, frame: dict[str, Any]) -> None:
        self._over()
        self._end = "_" + _("Stopped.") + "_"

    def _failed(self, frame: dict[str, Any]) -> None:
        self._over()
        error = frame.get("error")
        message = error.get("message", "") if isinstance(error, dict) else str(error or "")
        self._end = f"⚠️ **{frame.get('title') or _('Something failed')}**\n{frame.get('message') or message}"

    def _over(self) -> None:
        self.is_over = True
        self._asks.clear()
        self._does = ""


def _plain(name: str) -> str:
    server, _sep, tool = name.removeprefix("mcp__").partition("__")
    return f"{server}: {tool}" if name.startswith("mcp__") and tool else name


_TAKES = {
    EventType.SESSION: Telling._session,
    EventType.TEXT: Telling._text,
    EventType.TOOL_USE: Telling._tool,
    EventType.TOOL_RESULT: Telling._result,
    EventType.PERMISSION_REQUEST: Telling._asked,
    EventType.USER_QUESTION: Telling._asked,
    EventType.PERMISSION_RESOLVED: Telling._decided,
    EventType.QUESTION_ANSWERED: Telling._decided,
    EventType.SESSION_UNAVAILABLE: Telling._unavailable,
    EventType.DONE: Telling._done,
    EventType.ABORTED: Telling._aborted,
    EventType.ERROR: Telling._failed,
    EventType.TYPED_ERROR: Telling._failed,
}
