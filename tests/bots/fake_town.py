"""The fake platform's world in the words of `Town`."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from bots_app.platforms.base import Incoming, Place, SentFile, SlowDown, Unreachable, Who
from bots_app.platforms.fake import FakePlatform, Shown, World
from tests.bots.town import Town


@dataclass
class FakeTown(Town):
    name: str = "telegram"
    token: str = "good"
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self._ids = itertools.count(1)
        self.account = self.world.account
        self.typed = self.world.typed
        self.pressed = self.world.pressed
        self.sent_files = self.world.sent_files
        self.closed = self.world.closed_chats

    def platform(self, token: str = "good", url: str = "") -> FakePlatform:
        return FakePlatform(self.world, token)

    def says(self, who: str, text: str, *, chat: str = "", **more: Any) -> str:
        number = str(next(self._ids))
        is_group = chat.startswith("-")
        self._last = Incoming(
            update_id=number,
            place=Place(chat or who, is_group=is_group, title="Garden friends" if is_group else ""),
            who=Who(who, f"Person {who}"),
            message_id=f"in{number}",
            at=timezone.now(),
            text=text,
            is_to_us=not is_group or more.get("to_us", False),
        )
        self.world.say(self._last)
        return number

    def sends(self, who: str, name: str, content: bytes, *, caption: str = "", album: str = "") -> str:
        number = str(next(self._ids))
        self.world.files[f"file-{number}"] = content
        file = SentFile(f"file-{number}", name, len(content))
        self._last = Incoming(
            update_id=number,
            place=Place(who),
            who=Who(who, f"Person {who}"),
            message_id=f"in{number}",
            at=timezone.now(),
            text=caption,
            files=(file,),
            album=album,
        )
        self.world.say(self._last)
        return number

    def presses(self, who: str, chat: str, label: str) -> str:
        shown = next(each for each in reversed(self.shown(chat)) if label in str(each.buttons))
        data = next(data for found, data in shown.buttons if label in found)
        number = str(next(self._ids))
        self.world.say(
            Incoming(
                update_id=number,
                place=Place(chat),
                who=Who(who, f"Person {who}"),
                message_id=shown.id,
                at=timezone.now(),
                press=data,
                press_id=f"press-{number}",
            )
        )
        return f"press-{number}"

    def repeat_last(self) -> None:
        self.world.say(self._last)

    def slows_down(self, after: float) -> None:
        self.world.faults.append(SlowDown(after))

    def fails_once(self) -> None:
        self.world.faults.append(Unreachable("It does not answer."))

    def texts(self, chat: str) -> list[str]:
        return [each.text for each in self.shown(chat)]

    def shown(self, chat: str) -> list[Shown]:
        return list(self.world.chats[chat, ""])

    async def begin(self) -> None: ...

    async def end(self) -> None: ...
