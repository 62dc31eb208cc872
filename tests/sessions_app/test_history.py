"""The messages of turns that are over: of done ones from the transcript, of the others from rows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessions_app.history import conversation, transcripts
from sessions_app.models import EventType, Message, Session, SessionEvent, Speaker, Turn, TurnStatus
from tests.effort import effort
from tests.sessions_app.transcripts_written import answered, as_jsonl, prompt, put, said, text, uses

pytestmark = pytest.mark.django_db

Ask = Callable[..., Message]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> None:
    settings.PARACHUTE_HOME = tmp_path / "home"


@pytest.fixture
def ask(session: Session, turn: Callable[..., Turn]) -> Ask:
    """A message and its turn."""

    def make(content: str, status: TurnStatus = TurnStatus.DONE, **more: Any) -> Message:
        made: Message = Message.objects.create(session=session, turn=turn(status), content=content, **more)
        return made

    return make


def rows(message: Message, *events: tuple[EventType, dict[str, Any]]) -> None:
    start = SessionEvent.objects.filter(session=message.session).count() + 1
    said = (EventType.USER_MESSAGE, {"content": message.content})
    for seq, (kind, payload) in enumerate((said, *events), start):
        SessionEvent.objects.create(
            session=message.session, turn=message.turn, seq=seq, type=kind, payload=payload
        )


def as_read(session: Session) -> list[tuple[str, str]]:
    """Role, and what each block says."""

    def words(block: dict[str, Any]) -> str:
        return str(block.get("text") or block.get("thinking") or block.get("id") or block.get("content"))

    return [(said["role"], "+".join(map(words, said["content"]))) for said in conversation.messages(session)]


def test_a_turn_that_is_done_is_read_from_the_transcript(session: Session, ask: Ask) -> None:
    message = ask("When?")
    put(session.pk, as_jsonl(prompt(message.pk, "with context"), said(text("In October."), of="m1")))
    assert as_read(session) == [("user", "When?"), ("assistant", "In October.")]
    first, second = conversation.messages(session)
    assert (first["id"], first["turnId"], first["source"]) == (str(message.pk), str(message.turn_id), "user")
    assert (second["turnId"], second["timestamp"]) == (str(message.turn_id), "2026-11-18T10:33:27.863Z")


def test_blocks_of_one_assistant_message_are_one_message(session: Session, ask: Ask) -> None:
    thought = {"type": "thinking", "thinking": "Hm."}
    put(
        session.pk,
        as_jsonl(
            prompt(ask("When?").pk, "When?"),
            said(thought, of="m1"),
            said(text("Let me look."), of="m1"),
            said(uses("t1"), of="m1"),
            answered("t1", "none"),
            said(text("In October."), of="m2"),
        ),
    )
    assert as_read(session) == [
        ("user", "When?"),
        ("assistant", "Hm.+Let me look.+t1"),
        ("user", "none"),
        ("assistant", "In October."),
    ]


def test_an_answer_between_two_tools_of_one_message_does_not_split_it(session: Session, ask: Ask) -> None:
    put(
        session.pk,
        as_jsonl(
            prompt(ask("When?").pk, "When?"),
            said(uses("t1"), of="m1"),
            answered("t1", "one"),
            said(uses("t2"), of="m1"),
            answered("t2", "two"),
        ),
    )
    assert as_read(session)[1:] == [("assistant", "t1+t2"), ("user", "one"), ("user", "two")]


def test_what_the_cli_was_refused_and_the_server_made_is_no_error(session: Session, ask: Ask) -> None:
    message = ask("Write it.")
    refused = [answered(each, "Done.") for each in ("t1", "t2")]
    for row in refused:
        row["message"]["content"][0]["is_error"] = True
    put(session.pk, as_jsonl(prompt(message.pk, ""), said(uses("t1"), uses("t2"), of="m1"), *refused))
    results = (({"toolUseId": "t1"}, False), ({"toolUseId": "t2"}, True))
    told = [
        (EventType.TOOL_RESULT, {**each, "content": "Done.", "isError": is_error})
        for each, is_error in results
    ]
    rows(message, *told)
    *_, first, second = conversation.messages(session)
    assert [each["content"][0]["is_error"] for each in (first, second)] == [False, True]


def test_assistant_messages_without_an_id_are_not_joined(session: Session, ask: Ask) -> None:
    put(session.pk, as_jsonl(prompt(ask("When?").pk, ""), said(text("One.")), said(text("Two."))))
    assert as_read(session)[1:] == [("assistant", "One."), ("assistant", "Two.")]


@pytest.mark.parametrize("status", [TurnStatus.ABORTED, TurnStatus.FAILED])
def test_a_turn_that_was_cut_off_is_read_from_its_rows(
    session: Session, ask: Ask, status: TurnStatus
) -> None:
    message = ask("When?", status)
    put(
        session.pk,
        as_jsonl(
            prompt(message.pk, "When?"),
            said(text("half")),
            {**prompt("x", "[Request interrupted by user]"), "promptSource": None},
        ),
    )
    rows(
        message,
        (EventType.MODEL, {"model": "m"}),
        (EventType.THINKING, {"block": 0, "content": "Hm."}),
        (EventType.TEXT, {"block": 1, "content": "In Oct"}),
        (EventType.TOOL_USE, {"tool": {"id": "t1", "name": "Read", "input": {}}, "parentToolUseId": None}),
        (EventType.TOOL_RESULT, {"toolUseId": "t1", "content": "none", "isError": False}),
        (EventType.ABORTED, {"partialResponse": "In Oct"}),
    )
    assert as_read(session) == [
        ("user", "When?"),
        ("assistant", "Hm."),
        ("assistant", "In Oct"),
        ("assistant", "t1"),
        ("user", "none"),
    ]


def test_a_done_turn_that_left_no_transcript_is_read_from_its_rows(session: Session, ask: Ask) -> None:
    rows(ask("When?"), (EventType.TEXT, {"block": 0, "content": "In October."}))
    assert as_read(session) == [("user", "When?"), ("assistant", "In October.")]


@pytest.mark.parametrize("status", [TurnStatus.QUEUED, TurnStatus.RUNNING, TurnStatus.WAITING])
def test_a_turn_in_flight_is_not_there(session: Session, ask: Ask, status: TurnStatus) -> None:
    done, flying = ask("When?"), ask("And the pears?", status)
    put(
        session.pk,
        as_jsonl(
            prompt(done.pk, "When?"),
            said(text("In October."), of="m1"),
            prompt(flying.pk, "And the pears?"),
            said(text("The pe"), of="m2"),
            answered("t1", "none"),
        ),
    )
    rows(flying, (EventType.TEXT, {"block": 0, "content": "The pe"}))
    assert as_read(session) == [("user", "When?"), ("assistant", "In October.")]


def test_turns_come_in_their_order_wherever_they_are_read_from(session: Session, ask: Ask) -> None:
    one, two, three = ask("One?"), ask("Two?", TurnStatus.ABORTED), ask("Three?")
    put(
        session.pk,
        as_jsonl(
            prompt(one.pk, ""),
            said(text("1"), of="m1"),
            prompt(two.pk, ""),
            said(text("2"), of="m2"),
            prompt(three.pk, ""),
            said(text("3"), of="m3"),
        ),
    )
    rows(two, (EventType.TEXT, {"block": 0, "content": "tw"}))
    assert [words for _, words in as_read(session)] == ["One?", "1", "Two?", "tw", "Three?", "3"]


def test_a_turn_that_was_taken_up_again_is_whole(session: Session, ask: Ask) -> None:
    message = ask("When?")
    note = Message.objects.create(
        session=session, turn=message.turn, content="You were interrupted.", source=Speaker.PLATFORM
    )
    put(
        session.pk,
        as_jsonl(
            prompt(message.pk, "When?"),
            said(uses("t1"), of="m1"),
            said(text("No response requested."), model="<synthetic>"),
            prompt("meta", "Continue from where you left off.", isMeta=True),
            prompt(note.pk, note.content),
            said(text("In October."), of="m2"),
        ),
    )
    assert as_read(session) == [
        ("user", "When?"),
        ("assistant", "t1"),
        ("user", "You were interrupted."),
        ("assistant", "In October."),
    ]
    assert [said.get("source") for said in conversation.messages(session)] == ["user", None, "platform", None]


def test_what_was_said_once_is_told_once(session: Session, ask: Ask) -> None:
    """A row of a hundred bytes could be told again for each time, and what was said be a megabyte."""
    message = ask("When?")
    put(session.pk, as_jsonl(prompt(message.pk, "")) * 3 + as_jsonl(said(text("In October."))))
    assert as_read(session) == [("user", "When?"), ("assistant", "In October.")]


@pytest.mark.parametrize("odd", [5, ["x"], {"a": "x"}, "\ud800", "\0"])
def test_an_id_of_another_kind_is_no_obstacle(session: Session, ask: Ask, odd: Any) -> None:
    answer = said(text("In October."), of=odd, uuid=odd, timestamp=odd)
    failed = {**answered(odd, "none"), "uuid": odd}
    failed["message"]["content"][0]["is_error"] = True
    lines = [json.dumps(row).encode() + b"\n" for row in (answer, failed)]
    put(session.pk, as_jsonl(prompt(ask("When?").pk, "")) + b"".join(lines))
    assert as_read(session) == [("user", "When?"), ("assistant", "In October."), ("user", "none")]
    assert json.dumps(conversation.messages(session), ensure_ascii=False).encode()


@pytest.mark.database
def test_more_errors_than_a_query_takes_are_no_obstacle(session: Session, ask: Ask) -> None:
    wrong = answered("t", "no")
    wrong["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": f"t{number}", "content": "", "is_error": True}
        for number in range(260_000)
    ]
    lines = [as_jsonl({**wrong, "message": {**wrong["message"], "content": part}}) for part in parts(wrong)]
    put(session.pk, as_jsonl(prompt(ask("When?").pk, "")) + b"".join(lines))
    assert len(conversation.messages(session)) == 1 + len(lines)


def parts(row: dict[str, Any]) -> list[list[Any]]:
    content = row["message"]["content"]
    return [content[start : start + 10_000] for start in range(0, len(content), 10_000)]


def test_ten_times_as_many_messages_in_a_turn_take_no_more_than_thirty_times_as_long(
    session: Session, ask: Ask
) -> None:
    message = ask("When?")

    def cost(number: int) -> float:
        answers = (said(text("Yes."), of=f"m{each}") for each in range(number))
        put(session.pk, as_jsonl(prompt(message.pk, ""), *answers))
        return effort(lambda: conversation.messages(session))

    assert cost(10_000) <= 30 * cost(1_000)  # with its square it would be a hundred


def test_where_a_bomb_took_the_place_of_the_transcript_the_rows_tell(session: Session, ask: Ask) -> None:
    message = ask("When?")
    put(session.pk, as_jsonl(prompt(message.pk, "")) + b"{}\n" * transcripts.MOST_LINES)
    rows(message, (EventType.TEXT, {"block": 0, "content": "In October."}))
    assert as_read(session) == [("user", "When?"), ("assistant", "In October.")]


def test_what_another_session_said_is_not_there(session: Session, ask: Ask) -> None:
    put(session.pk, as_jsonl(prompt("not-ours", "Hello?"), said(text("Hi."), of="m1")))
    rows(ask("When?"))
    assert as_read(session) == [("user", "When?")]


def test_a_message_of_context_alone_shows_it(session: Session, ask: Ask) -> None:
    message = ask("", context="A journal.")
    put(session.pk, as_jsonl(prompt(message.pk, "A journal.")))
    assert as_read(session) == [("user", "A journal.")]


def test_a_session_without_turns_has_said_nothing(session: Session) -> None:
    assert conversation.messages(session) == []


@pytest.mark.database
@pytest.mark.parametrize("turns", [1, 30])
def test_it_takes_four_queries_however_long_it_is(
    session: Session, ask: Ask, turns: int, django_assert_num_queries: Any
) -> None:
    spoken = [ask(f"{n}?") for n in range(turns)]
    put(session.pk, as_jsonl(*(row for m in spoken for row in (prompt(m.pk, ""), said(text("Yes."))))))
    for _ in range(turns):
        rows(ask("Stop", TurnStatus.ABORTED), (EventType.TEXT, {"block": 0, "content": "half"}))
    with django_assert_num_queries(4):
        assert len(conversation.messages(session)) == turns * 4
