"""What must be true in the end. Each check gives a sentence for each promise that was broken: which session,
which turn, and what was seen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from pathlib import Path

from tests.processes.program import TERMINAL
from tests.soak import script
from tests.soak.kept import Kept, KeptEvent, KeptTurn
from tests.soak.load import Conversation, is_of_a_run

RESTARTS = 6  # in a row; a turn that was lost once more may fail, visibly


def problems(conversations: Sequence[Conversation], kept: Kept, runs: Path) -> Iterator[str]:
    known = {conversation.session for conversation in conversations}
    for session in sorted({turn.session for turn in kept.turns} - known):
        yield f"{session}: nobody was told of this session"
    for conversation in conversations:
        for problem in _of(conversation, kept):
            yield f"session {conversation.session}: {problem}"
    yield from _ran_once(kept, runs.read_text().split() if runs.exists() else [])


def _of(conversation: Conversation, kept: Kept) -> Iterator[str]:
    turns = kept.turns_of(conversation.session)
    events = kept.events_of(conversation.session)
    yield from _one_turn_a_message(conversation, turns)
    yield from _ended_in_order(conversation, events)
    yield from _no_gaps(conversation, events)
    for turn in turns:
        own = [event for event in events if event.turn == turn.id]
        for problem in (*_ended_once(turn, own), *_held_by_one(turn, own)):
            yield f"turn {turn.id}: {problem}; its row: {turn}"


def _one_turn_a_message(conversation: Conversation, turns: list[KeptTurn]) -> Iterator[str]:
    accepted = [(said.turn, (said.text,)) for said in conversation.said]
    there = [(turn.id, turn.messages) for turn in turns]
    yield from _difference("message accepted, as turn and text", accepted, "row", there)


def _ended_in_order(conversation: Conversation, events: list[KeptEvent]) -> Iterator[str]:
    """And nothing of a turn's run comes before the turn before it has ended."""
    said = [said.turn for said in conversation.said]
    ended = [event.turn for event in events if event.type in TERMINAL]
    yield from _difference("turn accepted", said, "turn ended", ended)
    ran = [event.turn for event in events if event.turn and is_of_a_run(event.type, event.payload)]
    yield from _difference("turn to run", said, "turn that ran", [turn for turn, _ in groupby(ran)])


def _no_gaps(conversation: Conversation, events: list[KeptEvent]) -> Iterator[str]:
    rows = [(event.seq, event.type, event.turn) for event in events]
    replayed = [(row["seq"], row["type"], row["turnId"] or "") for row in conversation.replayed]
    numbers = [seq for seq, _, _ in rows]
    yield from _difference("number", list(range(1, len(rows) + 1)), "number of a row", numbers)
    yield from _difference("row", rows, "row of a replay", replayed)
    yield from _difference(
        "row of a replay", conversation.replayed, "row that a reader got", conversation.rows
    )


def _difference(name: str, expected: Sequence[object], other: str, found: Sequence[object]) -> Iterator[str]:
    """The first place where two lists part."""
    for place, (one, two) in enumerate(zip_longest(expected, found), 1):
        if one != two:
            yield f"{name} {place} of {len(expected)} is {one}, {other} {place} of {len(found)} is {two}"
            return


def _ended_once(turn: KeptTurn, events: list[KeptEvent]) -> Iterator[str]:
    ends = [event for event in events if event.type in TERMINAL]
    if len(ends) != 1:
        yield f"it has {len(ends)} terminal events: {ends}"
    for end in ends:
        if turn.restarts >= RESTARTS and end.payload.get("code") == "worker_lost":
            continue
        if (turn.status, end.type) != ("done", "done"):
            yield f"it ended as {end}"
        elif end.payload["response"].rpartition("\n\n")[2] not in _answers(turn):  # after what was begun
            yield f"it was answered with {end.payload['response']!r}"


def _answers(turn: KeptTurn) -> list[str]:
    crashed = [script.AFTER_A_CRASH] if turn.restarts else []
    return [script.answer(turn.messages[0]), *crashed]


def _held_by_one(turn: KeptTurn, events: list[KeptEvent]) -> Iterator[str]:
    """Who is killed gives nothing back: each attempt after the first follows on one loss."""
    if turn.attempt != turn.restarts + 1 or turn.is_leased:
        yield "its attempts and its losses do not fit"
    begun = [event for event in events if event.type == "session" and is_of_a_run("session", event.payload)]
    if len(begun) > turn.attempt:
        yield f"it was begun {len(begun)} times"


def _ran_once(kept: Kept, ran: list[str]) -> Iterator[str]:
    """What a call leaves is there once where it succeeded, and at most once where it was cut."""
    times = Counter(ran)
    succeeded = {
        event.payload["toolUseId"]
        for event in kept.events
        if event.type == "tool_result" and not event.payload["isError"]
    }
    for event in kept.events:
        if event.type == "tool_use" and event.payload["tool"]["name"] == "Bash":
            tool = event.payload["tool"]
            count = next((times[mark] for mark in times if mark in tool["input"]["command"]), 0)
            if count > 1 or (count == 0 and tool["id"] in succeeded):
                yield f"session {event.session}: turn {event.turn}: {tool} ran {count} times"
    yield from (f"the mark {mark} was left {count} times" for mark, count in times.items() if count > 1)
