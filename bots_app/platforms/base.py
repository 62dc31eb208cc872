"""What a platform is to the rest: it hears, says, and changes what it said.

Texts that it says are Markdown of at most `max_length`, as `length` counts; it shows them as well as it can,
and as plain text where it cannot.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class Place:
    chat_id: str
    thread_id: str = ""
    is_group: bool = False
    title: str = ""


@dataclass(frozen=True)
class Who:
    user_id: str
    display: str
    is_person: bool = True  # no bot, no channel, nobody who hides


@dataclass(frozen=True)
class SentFile:
    id: str
    name: str
    size: int


@dataclass(frozen=True)
class Incoming:
    """One update. `press` is the `data` of a button, `message_id` then the message under which it stood."""

    update_id: str
    place: Place
    who: Who
    message_id: str
    at: datetime
    text: str = ""
    is_to_us: bool = True  # in a private chat, by a mention, or as a reply
    files: tuple[SentFile, ...] = ()
    album: str = ""  # of the messages that were sent as one
    press: str = ""
    press_id: str = field(default="", repr=False)


@dataclass(frozen=True)
class Button:
    label: str
    data: str  # at most 64 bytes


Buttons = Sequence[Button]


class PlatformError(Exception):
    """Its text is for a person."""


class TokenRefused(PlatformError):
    """To try again is of no use: a person has to mend it."""


class Unreachable(PlatformError):
    """It may work again, and whether it arrived is not known."""


class SlowDown(PlatformError):
    """Nothing is to be asked for so long."""

    def __init__(self, after: float) -> None:
        super().__init__(f"It asks for {after:g} s of silence.")
        self.after = after


class Undeliverable(PlatformError):
    """It will never arrive there: the chat is gone, or closed to us."""


class Platform(Protocol):
    name: str
    max_length: int
    edits_every: float  # seconds, at most that often
    edits_every_in_groups: float
    typing_lasts: float
    length: Callable[[str], int]

    @property
    def is_away(self) -> bool:
        """It comes back by itself; until then nothing is heard."""

    async def open(self) -> str:
        """Signs in. The name that it has there."""

    def receive(self) -> AsyncGenerator[list[Incoming]]:
        """What comes, until it is closed or raises. What was given counts as taken when more is asked for."""

    async def send(self, place: Place, text: str, *, buttons: Buttons = (), reply_to: str = "") -> str:
        """The id of the message."""

    async def edit(self, place: Place, message_id: str, text: str, *, buttons: Buttons = ()) -> None: ...

    async def delete(self, place: Place, message_id: str) -> None: ...

    async def typing(self, place: Place) -> None: ...

    async def send_file(self, place: Place, name: str, content: bytes) -> str: ...

    async def fetch(self, file: SentFile) -> bytes: ...

    async def answer_press(self, press_id: str, text: str) -> None: ...

    async def close(self) -> None: ...
