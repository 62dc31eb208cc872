"""Transcripts: what is read from a file that an agent can write, and what is published to the vault."""

import errno
import json
import logging
import os
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.files.folders import LARGEST_FILE
from sessions_app.history import transcripts
from sessions_app.history.transcripts import encoded, entries, holds, is_whole, last_entry, publish, raw
from tests.effort import effort
from tests.sessions_app.transcripts_written import (
    HOUSEKEEPING,
    answered,
    as_jsonl,
    prompt,
    put,
    said,
    text,
)


@pytest.fixture
def session_id(tmp_path: Path, settings: object) -> UUID:
    settings.PARACHUTE_HOME = tmp_path / "home"  # type: ignore[attr-defined]
    return uuid4()


def what(transcript: bytes) -> list[object]:
    return [entry["message"]["content"] for entry in entries(transcript)]


# What was said


def test_only_what_was_said_is_an_entry() -> None:
    rows = (*HOUSEKEEPING, prompt(uuid4(), "When?"), *HOUSEKEEPING, said(text("In October.")), *HOUSEKEEPING)
    assert what(as_jsonl(*rows)) == ["When?", [text("In October.")]]


@pytest.mark.parametrize(
    "row",
    [
        said(text("No response requested."), model="<synthetic>"),
        said(text("API Error: overloaded"), model="<synthetic>", isApiErrorMessage=True),
        prompt(uuid4(), "Continue from where you left off.", isMeta=True),
        said(text("a sub-agent"), isSidechain=True),
        {"type": "summary", "message": {"content": "no"}},
        {"type": "user"},
    ],
)
def test_the_housekeeping_of_the_cli_is_no_entry(row: dict[str, object]) -> None:
    assert what(as_jsonl(row, prompt(uuid4(), "When?"))) == ["When?"]


@pytest.mark.parametrize("cut", [1, 10, 40, 200])
def test_a_last_line_that_was_cut_is_passed_over(cut: int) -> None:
    whole = as_jsonl(prompt(uuid4(), "When?"), said(text("In October 🦆.")))
    assert what(whole[: -cut - 1]) == ["When?"]
    assert len(what(whole)) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'"text"',
        b"1" * 5_000,
        b"[" * 100_000,
        b'{"type":"user","message":null}',
        b'{"type":"user","message":[]}',
        b'{"type":"user","message":{"content":5}}',
        b'{"type":"user","message":{"content":null}}',
        b'{"type":"user","message":{"content":[1,"a"]}}',
        b'{"type":"assistant","message":{}}',
        b'{"type":["user"],"message":{"content":"x"}}',
        b'{"type":{"user":1},"message":{"content":"x"}}',
        b'{"type":"user","message":{"content":"x"},"n":' + b"1" * 5_000 + b"}",
        b'{"type":"user","message":{"content":"x"},"n":NaN}',
        b'{"type":"user","message":{"content":"x"},"n":-Infinity}',
        b'{"type":"user","message":{"content":"x"},"n":1e999}',
        b'{"type":"user","message":{"content":"\x00"}}',
        b'{"type":"user","message":{"content":"x"},"a":' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"type":"user","message":{"content":"\\ud800"}' + b',"a":[{"b":0' * 160 + b"}]" * 160 + b"}",
        b'{"type":"user","message":{"content":"x"},"a":['
        + b"[]," * transcripts.MOST_VALUES_OF_A_LINE
        + b"0]}",
        b'{"type":"user","message":{"content":"' + b"x" * transcripts.LONGEST_LINE + b'"}}',
    ],
    ids=lambda line: line[:50],
)
def test_lines_that_are_no_rows_are_passed_over(line: bytes) -> None:
    rows = as_jsonl(prompt(uuid4(), "When?"))
    assert what(rows + line + b"\n" + rows) == ["When?", "When?"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(mark: str) -> None:
    assert what(as_jsonl(prompt(uuid4(), f"one{mark}two"))) == [f"one{mark}two"]


@pytest.mark.parametrize(
    ("written", "told"),
    [(r"a\ud83d b\ud83e\udd86", "a\ufffd b🦆"), (r"a\uD83D b", "a\ufffd b"), (r"a\u0000b", "a\ufffdb")],
)
def test_what_is_no_text_is_marked(written: str, told: str) -> None:
    assert what(b'{"type":"user","message":{"content":"%s"}}' % written.encode()) == [told]


def test_of_a_name_that_is_there_twice_the_last_counts() -> None:
    assert what(b'{"type":"no","type":"user","message":{"content":"one","content":"two"}}') == ["two"]


def test_a_long_line_with_much_in_it_is_an_entry() -> None:
    table = "[1, 2], {3}, " * 10_000
    patch = [f"+{number}," for number in range(20_000)]
    picture = "QUJD" * (1 << 20)
    row = answered("t", table, toolUseResult={"patch": patch, "picture": picture})
    assert what(as_jsonl(row)) == [[{"type": "tool_result", "tool_use_id": "t", "content": table}]]


def test_it_is_known_whether_the_model_got_a_message() -> None:
    ours, other = uuid4(), uuid4()
    transcript = as_jsonl(prompt(ours, "When?"), answered("t", str(other)))
    assert holds(transcript, ours)
    assert not holds(transcript, other)
    assert not holds(b"", ours)


# How far it goes, and whether it is whole


def test_it_goes_as_far_as_the_last_row_with_an_id() -> None:
    first, last = prompt(uuid4(), "When?"), said(text("In October."))
    assert last_entry(as_jsonl(first, last, *HOUSEKEEPING[3:]) + b'{"uuid":"half') == last["uuid"]
    assert last_entry(b"") == ""


@pytest.mark.parametrize(
    "uuid", [5, True, None, ["x"], {"a": "x"}, "", "x" * 37, "\ud800" * 36, "\0" * 36, "x" * 36, 10**4000]
)
def test_an_id_that_is_none_is_not_how_far_it_goes(uuid: object) -> None:
    row = prompt(uuid4(), "When?")
    odd = json.dumps({"uuid": uuid}).encode()
    assert last_entry(as_jsonl(row) + odd + b"\n[]\n") == row["uuid"]


@given(st.text("{}a\n", max_size=12))
def test_each_line_of_a_whole_one_begins_and_ends_with_a_brace(between: str) -> None:
    row = as_jsonl(prompt(uuid4(), "When?"))
    for transcript in (row + between.encode(), between.encode() + row, row + between.encode() + b"\n" + row):
        *lines, _ = transcript.split(b"\n")
        is_said = bool(what(transcript))
        braced = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
        assert is_whole(transcript, "") == (is_said and braced)


# What an agent can put in its place. Each bomb is as long as many an honest one.

BOMBS = {
    "empty lines": b"\n",
    "empty rows": b"{}\n",
    "rows that say nothing": b'{"type":"user"}\n',
    "lists in one line": b"[],",
    "names": b'"uuid":"',
    "long rows of lists": b'{"type":"user","message":{"content":[' + b"{}," * 10_000 + b"{}]}}\n",
}
SIZE = 24 << 20


def bomb(unit: bytes) -> bytes:
    return unit * (SIZE // len(unit))


def copying(content: bytes) -> float:
    """What all is measured by. It is so short that one look may be much too low."""
    return max(effort(lambda: bytes(bytearray(content))) for _ in range(3))


@pytest.mark.parametrize("unit", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize(
    "work",
    [
        last_entry,
        lambda transcript: is_whole(transcript, str(uuid4())),
        lambda transcript: is_whole(transcript, ""),
        lambda transcript: holds(transcript, uuid4()),
        lambda transcript: sum(1 for _ in islice(entries(transcript), 10)),
    ],
    ids=["last_entry", "is_whole", "is_whole of any end", "holds", "entries"],
)
def test_a_bomb_costs_what_it_costs_to_copy_it_a_hundred_times(
    unit: bytes, work: Callable[[bytes], object]
) -> None:
    transcript = bomb(unit)
    assert effort(lambda: work(transcript)) < 100 * copying(transcript)


@pytest.mark.parametrize("name", ["empty lines", "empty rows", "rows that say nothing", "long rows of lists"])
def test_a_bomb_is_read_and_not_published(
    session_id: UUID, vault: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    content = bomb(BOMBS[name])
    put(session_id, content)
    assert effort(lambda: publish(session_id, vault, Path("/v"))) < 30 * copying(content)
    assert raw(session_id) is None
    assert f"The transcript of {session_id} counts as lost" in caplog.text
    assert os.listdir(vault) == ["Welcome.md"]


@pytest.mark.parametrize("work", [last_entry, lambda transcript: is_whole(transcript, "")])
def test_a_bomb_takes_no_more_memory_than_a_few_times_itself(
    work: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "MOST_LINES", 10_000)  # measured, each takes long
    transcript = BOMBS["empty rows"] * 500_000
    tracemalloc.start()
    try:
        work(transcript)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * len(transcript)


def test_one_that_is_too_large_to_be_read_is_named(
    session_id: UUID, caplog: pytest.LogCaptureFixture
) -> None:
    os.truncate(put(session_id, b""), LARGEST_FILE + 1)
    assert raw(session_id) is None
    assert f"The transcript of {session_id} counts as lost" in caplog.text


def test_the_copy_stays_as_it_was_where_a_bomb_took_the_place_of_the_transcript(
    session_id: UUID, vault: Path
) -> None:
    whole = as_jsonl(prompt(uuid4(), "When?"))
    put(session_id, whole)
    publish(session_id, vault, Path("/v"))
    put(session_id, whole + b"{}\n" * transcripts.MOST_LINES)
    assert publish(session_id, vault, Path("/v")) == ""
    assert transcripts.published(session_id, vault) == whole


def test_a_long_one_is_read_whole(session_id: UUID) -> None:
    rows = as_jsonl(*(said(text("In October, [or] {so}. " * 40)) for _ in range(100)))
    transcript = rows * 250
    put(session_id, transcript)
    assert raw(session_id) == transcript
    assert is_whole(transcript, last_entry(rows))
    assert sum(1 for _ in entries(transcript)) == 25_000


# Where it lies


def test_it_is_found_by_its_name_in_whatever_folder(session_id: UUID) -> None:
    put(session_id, b"ours", project="-some-where")
    assert raw(session_id) == b"ours"


def test_a_session_that_never_ran_has_none(session_id: UUID) -> None:
    assert raw(session_id) is None
    transcripts.config_folder(session_id).mkdir(parents=True)
    assert raw(session_id) is None


@pytest.mark.parametrize("place", ["", "projects", "projects/-v", "projects/-v/{}.jsonl"])
def test_a_link_is_followed_nowhere(session_id: UUID, tmp_path: Path, place: str) -> None:
    """But for the folder of the session itself, which lies where no agent can write."""
    real = put(session_id, b"ours")
    swapped = transcripts.config_folder(session_id) / place.format(session_id)
    swapped.rename(tmp_path / "moved")
    swapped.symlink_to(tmp_path / "moved")
    assert real.read_bytes() == b"ours"
    assert raw(session_id) == (None if place else b"ours")


def test_what_is_planted_beside_it_does_not_hide_it(session_id: UUID, tmp_path: Path) -> None:
    put(session_id, b"ours", project="-v")
    projects = transcripts.config_folder(session_id) / "projects"
    (tmp_path / "secret").write_bytes(b"secret")
    for name in ("-a", "-b", "-c", "-d"):
        (projects / name).mkdir()
    planted = f"{session_id}.jsonl"
    (projects / "-a" / planted).symlink_to(tmp_path / "secret")
    os.mkfifo(projects / "-b" / planted)
    (projects / "-c" / planted).mkdir()
    (projects / "-d" / planted).symlink_to(planted)
    (projects / "-e").symlink_to("/etc")
    (projects / "-f").write_text("a file")
    assert raw(session_id) == b"ours"


# What is published


def published(vault: Path, session_id: UUID, project: str = "-v") -> Path:
    return vault / ".claude" / "projects" / project / f"{session_id}.jsonl"


def test_a_copy_lies_in_the_vault(session_id: UUID, vault: Path) -> None:
    put(session_id, b"one")
    publish(session_id, vault, Path("/v"))
    put(session_id, b"two")
    publish(session_id, vault, Path("/v"))
    assert published(vault, session_id).read_bytes() == b"two"
    assert os.listdir(published(vault, session_id).parent) == [f"{session_id}.jsonl"]


def test_a_session_without_a_transcript_publishes_nothing(session_id: UUID, vault: Path) -> None:
    publish(session_id, vault, Path("/v"))
    assert os.listdir(vault) == ["Welcome.md"]


@pytest.mark.parametrize("place", [".claude", ".claude/projects", ".claude/projects/-v"])
@pytest.mark.parametrize("target", ["outside", "dangling"])
def test_a_hostile_link_in_the_vault_lets_nothing_out(
    session_id: UUID,
    vault: Path,
    tmp_path: Path,
    place: str,
    target: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put(session_id, b"ours")
    (tmp_path / "outside").mkdir()
    (vault / place).parent.mkdir(parents=True, exist_ok=True)
    (vault / place).symlink_to(tmp_path / target)
    before = sorted(tmp_path.rglob("*"))
    publish(session_id, vault, Path("/v"))
    assert sorted(tmp_path.rglob("*")) == before
    assert "was not published" in caplog.text


def test_a_link_in_the_place_of_the_copy_is_replaced(session_id: UUID, vault: Path, tmp_path: Path) -> None:
    put(session_id, b"ours")
    victim = tmp_path / "victim"
    victim.write_text("safe")
    copy = published(vault, session_id)
    copy.parent.mkdir(parents=True)
    copy.symlink_to(victim)
    publish(session_id, vault, Path("/v"))
    assert victim.read_text() == "safe"
    assert copy.read_bytes() == b"ours"


@pytest.mark.parametrize("state", ["gone", "a file", "a folder in its place"])
def test_a_vault_that_cannot_take_it_costs_the_copy_alone(
    session_id: UUID, vault: Path, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    put(session_id, b"ours")
    if state == "gone":
        vault = vault / "gone"
    elif state == "a file":
        (vault / ".claude").write_text("a file")
    else:
        published(vault, session_id).mkdir(parents=True)
    publish(session_id, vault, Path("/v"))
    assert "was not published" in caplog.text


@pytest.mark.parametrize(
    ("directory", "name"),
    [("/foo/bar", "-foo-bar"), ("/a b/ä.md", "-a-b---md"), ("/" + "x" * 300, "-" + "x" * 199)],
)
def test_a_directory_is_named_as_the_cli_names_it(directory: str, name: str) -> None:
    assert encoded(Path(directory)) == name


# Removed


def test_nothing_of_a_session_is_left_and_another_keeps_its_own(session_id: UUID, vault: Path) -> None:
    other = uuid4()
    for each in (session_id, other):
        put(each, as_jsonl(prompt(uuid4(), "When?")))
        publish(each, vault, vault)
    transcripts.remove(session_id, vault)
    transcripts.remove(session_id, None)
    assert (raw(session_id), transcripts.published(session_id, vault)) == (None, None)
    assert not transcripts.config_folder(session_id).exists()
    assert raw(other) == transcripts.published(other, vault) is not None


@pytest.mark.parametrize("is_written", [True, False])
def test_what_a_worker_writes_meanwhile_is_no_trouble(
    session_id: UUID, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    transcripts.config_folder(session_id).mkdir(parents=True)
    monkeypatch.setattr(Path, "rmdir", Mock(side_effect=OSError(errno.ENOTEMPTY, "Directory not empty")))
    transcripts.remove(session_id, None, is_written=is_written)
    warned = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert bool(warned) == (not is_written)


def test_a_link_in_the_place_of_its_folder_leads_to_no_removal(
    session_id: UUID, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "note.md").write_text("ours")
    transcripts.config_folder(session_id).parent.mkdir(parents=True)
    transcripts.config_folder(session_id).symlink_to(tmp_path / "precious")
    transcripts.remove(session_id, None)
    assert (tmp_path / "precious" / "note.md").exists()
    assert "could be removed" in caplog.text
