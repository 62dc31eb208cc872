"""Transcripts: what is read from a file that an agent can write, and what is published to the vault."""

import os
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from sessions_app import transcripts
from sessions_app.transcripts import encoded, entries, holds, publish, raw
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
    ],
)
def test_lines_that_are_no_rows_are_passed_over(line: bytes) -> None:
    rows = as_jsonl(prompt(uuid4(), "When?"))
    assert what(rows + line + b"\n" + rows) == ["When?", "When?"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(mark: str) -> None:
    assert what(as_jsonl(prompt(uuid4(), f"one{mark}two"))) == [f"one{mark}two"]


def test_half_of_a_pair_is_marked() -> None:
    line = rb'{"type":"user","message":{"content":"a\ud83d b\ud83e\udd86"}}'
    assert what(line) == ["a\ufffd b🦆"]


def test_it_is_known_whether_the_model_got_a_message() -> None:
    ours, other = uuid4(), uuid4()
    transcript = as_jsonl(prompt(ours, "When?"), answered("t", str(other)))
    assert holds(transcript, ours)
    assert not holds(transcript, other)
    assert not holds(b"", ours)


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
