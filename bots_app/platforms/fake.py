"""The fake beside the real ones: a world in memory, in which people speak and read."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from bots_app.platforms.base import (
    Buttons,
    Incoming,
    Place,
    PlatformError,
    SentFile,
    TokenRefused,
    Undeliverable,
)


@dataclass
class Shown:
    """A message as somebody in the chat sees it."""

    id: str
    text: str
    buttons: tuple[tuple[str, str], ...] = ()
    edits: int = 0


@dataclass
class World:
    """What lies beyond the wire. It outlives the platforms that are opened to it."""

    token: str = "good"  # noqa: S105 - of a world that is none
    account: str = "fake_bot"
    untaken: deque[Incoming] = field(default_factory=deque)
    chats: dict[tuple[str, str], list[Shown]] = field(default_factory=lambda: defaultdict(list))
    files: dict[str, bytes] = field(default_factory=dict)
    sent_files: list[tuple[str, str, bytes]] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    pressed: dict[str, str] = field(default_factory=dict)
    faults: deque[PlatformError] = field(default_factory=deque)  # each fails one call that says something
    closed_chats: set[str] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0

    def say(self, incoming: Incoming) -> None:
        self.untaken.append(incoming)
        self.news.set()


class FakePlatform:
    name = "telegram"  # it stands in for it
    max_length = 400
    edits_every = 0.0
    edits_every_in_groups = 0.0
    typing_lasts = 5.0
    is_away = False
    length: Callable[[str], int] = staticmethod(len)

    def __init__(self, world: World, token: str = "good") -> None:  # noqa: S107
        """In a world of its own nobody speaks; tests give one in which somebody does."""
        self._world = world
        self._token = token
        self._is_closed = False

    async def open(self) -> str:
        if self._token != self._world.token:
            raise TokenRefused("The token is not accepted.")
        return self._world.account

    async def receive(self) -> AsyncGenerator[list[Incoming]]:
        world = self._world
        while not self._is_closed:
            batch = list(world.untaken)
            if batch:
                yield batch
                for _ in batch:
                    world.untaken.popleft()
            else:
                world.news.clear()
                await world.news.wait()

    async def send(self, place: Place, text: str, *, buttons: Buttons = (), reply_to: str = "") -> str:
        self._check(place, text)
        chat = self._world.chats[place.chat_id, place.thread_id]
        chat.append(Shown(f"m{self._world.calls}", text, _flat(buttons)))
        return chat[-1].id

    async def edit(self, place: Place, message_id: str, text: str, *, buttons: Buttons = ()) -> None:
        self._check(place, text)
        shown = self._found(place, message_id)
        shown.text, shown.buttons = text, _flat(buttons)
        shown.edits += 1

    async def delete(self, place: Place, message_id: str) -> None:
        self._check(place, "")
        self._world.chats[place.chat_id, place.thread_id].remove(self._found(place, message_id))

    async def typing(self, place: Place) -> None:
        self._world.typed.append(place.chat_id)

    async def send_file(self, place: Place, name: str, content: bytes) -> str:
        self._check(place, "")
        self._world.sent_files.append((place.chat_id, name, content))
        return f"f{self._world.calls}"

    async def fetch(self, file: SentFile) -> bytes:
        return self._world.files[file.id]

    async def answer_press(self, press_id: str, text: str) -> None:
        self._world.pressed[press_id] = text

    async def close(self) -> None:
        self._is_closed = True
        self._world.news.set()

    def _check(self, place: Place, text: str) -> None:
        self._world.calls += 1
        if place.chat_id in self._world.closed_chats:
            raise Undeliverable("The chat is closed.")
        if self._world.faults:
            raise self._world.faults.popleft()
        assert self.length(text) <= self.max_length, "longer than the platform takes"

    def _found(self, place: Place, message_id: str) -> Shown:
        for shown in self._world.chats[place.chat_id, place.thread_id]:
            if shown.id == message_id:
                return shown
        raise Undeliverable("There is no such message.")


def _flat(buttons: Buttons) -> tuple[tuple[str, str], ...]:
    return tuple((each.label, each.data) for each in buttons)
