"""What is measured, ours beside the SDK alone, against one scripted model, in one run."""

import asyncio
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import monotonic, perf_counter

from agents_app.model.demo.wire import Reply, Stall, Text, say
from tests.bench.alone import Alone
from tests.bench.ours import Ours, events
from tests.scripted_model import ScriptedModel, calls

TIMES = 7  # of what is quick; the median counts
PIECES = 150
PACE = 0.02  # seconds between two pieces: 50 a second


@dataclass(frozen=True)
class Row:
    """One line of the table. `aim` is the most that ours may be; a promise that is broken fails the run."""

    name: str
    ours: float = 0.0
    alone: float | None = None
    aim: float | None = None
    unit: str = "ms"
    is_promise: bool = False
    why_not: str = ""  # it was not measured

    @property
    def holds(self) -> bool:
        return self.aim is None or self.ours <= self.aim

    def __str__(self) -> str:
        if self.why_not:
            return f"{self.name:44}not measured: {self.why_not}"
        alone = f"{_shown(self.alone)} ({self.ours / self.alone:4.2f} x)" if self.alone else " " * 18
        aim = "" if self.aim is None else f"at most {self.aim:.1f}: {'holds' if self.holds else 'MISSED'}"
        return f"{self.name:44}{_shown(self.ours)} {self.unit}   alone {alone}   {aim}"


def _shown(number: float) -> str:
    return f"{number:9.{2 if number < 1 else 1}f}"


@dataclass
class Stamp:
    """Stands between two pieces of text and notes when the model got there."""

    times: list[float] = field(default_factory=list)

    async def happen(self) -> bytes:
        self.times.append(monotonic())
        return b""


def script(model: ScriptedModel, note: str) -> None:
    model.script("in words", [say("A few words, and no more than that.")])
    model.script("with a tool", [calls("Read", file_path=note), say("It says what it says.")])


async def first_texts(ours: Ours, alone: Alone) -> list[Row]:
    rows = []
    for way in ("in words", "with a tool"):
        theirs = median([await alone.new_chat(way) for _ in range(TIMES)])
        mine = median([await ours.new_chat(way) for _ in range(TIMES)])
        rows.append(Row(f"new chat, {way}", mine * 1e3, theirs * 1e3, theirs * 1e3 + 40))
        theirs = median(await alone.next_messages(way, TIMES))
        mine = median(await ours.next_messages(way, TIMES))
        rows.append(Row(f"next message, {way}", mine * 1e3, theirs * 1e3, theirs * 1e3 + 12))
    return rows


async def chats_at_once(ours: Ours, alone: Alone) -> list[Row]:
    rows = []
    for count in (8, 32):
        theirs = median(await alone.at_once("in words", count)) * 1e3
        mine = median(await ours.at_once("in words", count)) * 1e3
        rows.append(
            Row(f"{count} new chats at once, median", mine, theirs, theirs / 2 if count == 32 else None)
        )
    return rows


def paced(model: ScriptedModel, key: str) -> Stamp:
    """Scripts an answer of small pieces at an even pace, each of them stamped as it leaves the model."""
    stamp = Stamp()
    parts = [part for number in range(PIECES) for part in (stamp, f"w{number:04} ", Stall(PACE))]
    model.script(key, [Reply((Text(*parts),))])
    return stamp


async def abort(ours: Ours, model: ScriptedModel) -> Row:
    """From the button to the event, while the model speaks."""
    paced(model, "on and on")
    took: list[float] = []
    async with ours.web() as web:
        for _ in range(TIMES):
            async with web.post("/api/chat", json={"message": "on and on"}) as answer:
                async for event in events(answer):
                    if event["type"] == "text" and "delta" in event and len(took) % 2 == 0:
                        took.append(perf_counter())
                        path = f"/api/chat/{event['sessionId']}/abort"
                        await (await web.post(path, json={})).read()
                    if event["type"] == "aborted":
                        took.append(perf_counter())
    return Row("abort, until it has ended", median(delays_of(took)) * 1e3, aim=1_000)


def delays_of(moments: list[float]) -> list[float]:
    """Of moments in pairs: asked, answered."""
    return [answered - asked for asked, answered in zip(moments[::2], moments[1::2], strict=True)]


async def delay_of_a_delta(ours: Ours, model: ScriptedModel) -> list[Row]:
    stamp = paced(model, "evenly")
    heard: list[float] = []
    async with ours.web() as web, web.post("/api/chat", json={"message": "evenly"}) as answer:
        async for event in events(answer):
            if event["type"] == "text" and "delta" in event:
                heard += [monotonic()] * event["delta"].count("w")
    return delays("a delta at 50 a second", [pairs(stamp.times, heard)], median_aim=5, p99_aim=25)


async def many_readers(ours: Ours, model: ScriptedModel, readers: int, streams: int) -> list[Row]:
    stamps = [paced(model, f"stream {number}.") for number in range(streams)]
    async with ours.web() as web:
        sessions = [await ours.accepted(web, f"stream {number}.") for number in range(streams)]

        async def read(number: int) -> list[float]:
            stamp, heard = stamps[number % streams], list[float]()
            async with web.get(f"/api/chat/{sessions[number % streams]}/events") as answer:
                async for event in events(answer):
                    if event["type"] == "text" and event.get("offset", 0) and "delta" in event:
                        heard += [monotonic()] * event["delta"].count("w")
                    if event["type"] == "done":
                        return pairs(stamp.times[-len(heard) :], heard)
            raise AssertionError("a stream ended early")

        found = await asyncio.gather(*(read(number) for number in range(readers)))
    return delays(f"a delta, {readers} readers of {streams} streams", found)


def pairs(sent: list[float], heard: list[float]) -> list[float]:
    return [there - here for here, there in zip(sent, heard, strict=False)]


def delays(
    name: str, found: list[list[float]], *, median_aim: float | None = None, p99_aim: float | None = None
) -> list[Row]:
    every = [delay * 1e3 for each in found for delay in each]
    return [
        Row(f"{name}, median", median(every), aim=median_aim),
        Row(f"{name}, p99", quantiles(every, n=100)[98], aim=p99_aim),
    ]
