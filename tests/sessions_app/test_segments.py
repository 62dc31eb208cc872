"""A long transcript in its parts."""

import io
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessions_app.errors import Invalid
from sessions_app.history import segments
from sessions_app.history.segments import Chosen, transcript
from sessions_app.models import EventType, Message, Session, SessionEvent, Turn, TurnStatus
from tests.sessions_app.transcripts_written import (
    HOUSEKEEPING,
    answered,
    as_jsonl,
    prompt,
    put,
    said,
    text,
    uses,
)

pytestmark = pytest.mark.django_db

Ask = Callable[[str], Message]
COMPACTED = {"type": "system", "subtype": "compact_boundary", "timestamp": "2026-11-18T11:00:00.000Z"}


def summary() -> dict[str, Any]:
    return prompt(
        "5" * 8 + "-0000-0000-0000-000000000000", "This goes on from before.", isCompactSummary=True
    )


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> None:
    settings.PARACHUTE_HOME = tmp_path / "home"


@pytest.fixture
def ask(session: Session, turn: Callable[..., Turn]) -> Ask:
    def make(content: str) -> Message:
        made: Message = Message.objects.create(session=session, turn=turn(TurnStatus.DONE), content=content)
        return made

    return make


def words(session: Session, **chosen: Any) -> list[str]:
    messages, _parts = transcript(session, Chosen(**chosen))
    return [block.get("text") or str(block.get("id")) for said in messages for block in said["content"]]


def test_without_a_transcript_there_is_nothing(session: Session) -> None:
    messages, parts = transcript(session, Chosen())
    assert (messages, parts.segments) == ([], [])


def test_it_opens_where_it_was_compacted_last_in_the_midst_of_a_turn_too(session: Session, ask: Ask) -> None:
    first, second = ask("When?"), ask("And pears?")
    put(
        session.pk,
        as_jsonl(
            *HOUSEKEEPING,
            prompt(first.pk, "When?"),
            said(text("In October."), of="msg_1"),
            prompt(second.pk, "And pears?"),
            said(text("Let me look."), of="msg_2"),
            COMPACTED,
            {"type": "user", "isCompactSummary": True, "message": {"content": "This goes on from before."}},
            said(text("In September."), of="msg_3"),
            said(text("Some earlier."), of="msg_3"),
        ),
    )
    assert words(session) == ["In September.", "Some earlier."]
    assert words(session, index=0) == ["When?", "In October.", "And pears?", "Let me look."]
    assert words(session, is_full=True)[-2:] == ["In September.", "Some earlier."]
    _, parts = transcript(session, Chosen())
    told = [(part.is_compacted, part.message_count, part.preview) for part in parts.segments]
    assert told == [(True, 4, "When?"), (False, 1, "")]
    with pytest.raises(Invalid):
        words(session, index=2)


def test_a_long_one_is_cut_where_turns_begin_and_its_end_is_read_without_the_rest(
    session: Session, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [ask(f"Question {number}") for number in range(20)]
    long = "quince " * 150_000
    rows = [
        (prompt(one.pk, one.content), said(text(long + one.content), of=f"msg_{one.pk}")) for one in asked
    ]
    file = put(session.pk, as_jsonl(*(row for pair in rows for row in pair)))
    assert file.stat().st_size > 20 << 20
    tracemalloc.start()
    last = words(session)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last[-1].endswith("Question 19")
    assert most < 20 << 20
    _, parts = transcript(session, Chosen())
    assert len(parts.segments) == 5
    assert [part.preview for part in parts.segments][1] == "Question 4"
    assert words(session, is_after_compact=True) == words(session, is_full=True)
    assert len(words(session, is_full=True)) == 40


def test_torn_and_foreign_lines_are_skipped_and_counted(session: Session, ask: Ask) -> None:
    good = as_jsonl(prompt(ask("When?").pk, "When?"), said(text("In October."), of="msg_1"))
    put(session.pk, b"garbage\n" + good + b'{"type":"assist')
    messages, parts = transcript(session, Chosen())
    assert (len(messages), parts.skipped) == (2, 2)


def test_what_a_sub_agent_did_stands_below_the_tool_that_sent_it(session: Session, ask: Ask) -> None:
    message = ask("Look around")
    rows = (prompt(message.pk, "Look around"), said(uses("t1"), of="msg_1"))
    put(session.pk, as_jsonl(*rows, answered("t1", "Half of it."), said(text("Done."), of="msg_2")))
    SessionEvent.objects.create(
        session=session,
        turn=message.turn,
        seq=1,
        type=EventType.TEXT,
        payload={"content": "I look.", "parentToolUseId": "t1"},
    )
    assert words(session)[:3] == ["Look around", "t1", "I look."]


def test_as_many_places_as_lines_cost_no_more_than_the_lines(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "MOST_PARTS", 3)
    put(session.pk, as_jsonl(*[COMPACTED] * 20))
    _, parts = transcript(session, Chosen())
    assert [part.is_compacted for part in parts.segments] == [True, True, False]


def test_one_that_no_cli_writes_is_not_read(session: Session) -> None:
    """Its agent makes it of any length, and of a single line, without writing it."""
    os.truncate(put(session.pk, as_jsonl(said(text("x")))), 1 << 40)
    assert transcript(session, Chosen()) == ([], segments.Parts([], 0))


def test_one_that_grows_while_it_is_read_is_read_as_far_as_any_cli_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "LARGEST_FILE", 100)
    assert segments.parts(io.BytesIO(b"x" * 1_000)).segments[-1].end == 100


def test_a_link_is_no_transcript(session: Session, tmp_path: Path) -> None:
    file = put(session.pk, as_jsonl(said(text("x"))))
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with segments.opened(session.pk) as found:
        assert found is None
