"""What is indexed, when it changes, and who finds it."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from agents_app.turns.said.opening import Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.access.services import caller_of_user
from sessions_app.files import closed
from sessions_app.models import Chunk, IndexManifest, Message, Session, SessionTag
from sessions_app.search import finding, indexing
from sessions_app.search.chunking import LONGEST, SIZE, chunks
from sessions_app.search.finding import Hit, Scope, Wish, excerpt, find
from sessions_app.search.querysets import FTS
from sessions_app.search.schemas import SearchResult
from tests.pages.conversations import said_and_answered
from tests.sessions_app.transcripts_written import as_jsonl, prompt, put, said
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)


@pytest.fixture
def write(vault: Path) -> Write:
    def write(path: str, text: str = "They ripen in October.") -> Path:
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(text)
        return vault / path

    return write


def found(caller: Caller, text: str, **more: Any) -> list[Hit]:
    return find(Scope.of_caller(caller), Wish(text, **more))


def paths(hits: list[Hit]) -> list[str]:
    return [hit.path for hit in hits]


def a_chat(caller: Caller, text: str, **more: Any) -> Session:
    session: Session = Session.objects.get(pk=open_turn(caller, Opening(text, **more)).session_id)
    indexing.index_session(session.pk)
    return session


class TestNotes:
    def test_a_note_is_found_by_its_words_until_they_are_others(self, as_ada: Caller, write: Write) -> None:
        write("Garden/Quinces.md", "# Quinces\n\nThey ripen in October, after the first frost.")
        indexing.index_changed()
        for text in ("frost", "OCTOBER", "octob", "first quinces", "frost nowhere"):
            assert paths(found(as_ada, text)) == ["Garden/Quinces.md"], text
        (hit, *_) = found(as_ada, "frost")
        assert (hit.title, hit.content_type, hit.matched) == ("Quinces", "document", "text")
        assert [hit.excerpt[start:end] for start, end in hit.marks] == ["frost"]
        write("Garden/Quinces.md", "Nothing of them any more.")
        indexing.index_changed()
        assert found(as_ada, "frost") == []
        assert paths(found(as_ada, "anymore nothing")) == ["Garden/Quinces.md"]

    def test_what_is_shown_of_it_is_what_it_says_and_not_its_title_again(
        self, as_ada: Caller, write: Write
    ) -> None:
        write("Quinces.md", "# Quinces\n\nQuinces ripen in October, after the first frost.")
        write("Medlars.md", "# Medlars\n\nThey are kept dark.")
        indexing.index_changed()
        assert "ripen" in found(as_ada, "quinces")[0].excerpt
        assert "Medlars" in found(as_ada, "medlars")[0].excerpt

    def test_a_note_that_is_gone_is_found_no_more(self, as_ada: Caller, write: Write) -> None:
        note = write("Quinces.md")
        indexing.index_changed()
        note.unlink()
        assert indexing.index_changed() == 1
        assert not Chunk.objects.filter(text__contains="October").exists()
        assert found(as_ada, "October") == []

    def test_what_has_not_changed_is_not_read(
        self, write: Write, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(30):
            write(f"Notes/{number}.md", f"number {number}")
        assert indexing.index_changed() == 31
        monkeypatch.setattr(indexing, "_note", None)
        assert indexing.index_changed() == 0

    @pytest.mark.parametrize(
        "path",
        [
            ".env",
            "sub/.env",
            ".env.local.md",
            "id_rsa.md",
            ".ssh/notes.md",
            ".claude/skills/x/SKILL.md",
            "Agents/gardener.md",
            "CLAUDE.md",
            "sub/AGENTS.md",
            "agent-sessions/copy.md",
            "Chat/assets/2026-11-20/x.md",
            "chat/Assets/2026-11-20/x.md",
            "Chat/imports/claude/x.md",
            ".obsidian/x.md",
            "picture.png",
        ],
    )
    def test_what_no_agent_reads_and_what_steers_them_is_not_indexed(
        self, as_ada: Caller, write: Write, path: str
    ) -> None:
        write(path)
        indexing.index_changed()
        assert found(as_ada, "October") == []

    def test_without_rules_nothing_is(
        self, as_ada: Caller, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(closed, "rules", [])
        write("Quinces.md")
        indexing.index_changed()
        assert found(as_ada, "October") == []

    def test_links_circles_closed_files_and_foreign_bytes_keep_nothing_from_being_indexed(
        self, as_ada: Caller, write: Write, vault: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "outside.md").write_text("October outside")
        (vault / "link.md").symlink_to(tmp_path / "outside.md")
        (vault / "circle").symlink_to(vault)
        (vault / "bytes.md").write_bytes(b"October \xff\xfe\x00 bytes")
        write("huge.md").write_bytes(b"October " * (1 << 20))
        (vault / "a" / "folder.md").mkdir(parents=True)
        write("deep/" * 60 + "x.md")
        write("Quinces.md")
        indexing.index_changed()
        assert sorted(paths(found(as_ada, "October"))) == ["Quinces.md", "bytes.md"]
        assert IndexManifest.objects.get(path="huge.md").problem == "It is larger than 4 MB."

    def test_any_time_and_any_length_of_path_is_indexed(
        self, as_ada: Caller, write: Write, workspace: Workspace
    ) -> None:
        note = write("Quinces.md")
        os.utime(note, (2**34 - 1, 2**34 - 1))  # in 2514, or as far as the disk counts
        deep = "/".join("d" * 200 for _ in range(4))
        write(f"{deep}/a.md", "medlars")
        write(f"{deep}/b.md", "pears")
        indexing.index_changed()
        assert paths(found(as_ada, "October")) == ["Quinces.md"]
        assert paths(found(as_ada, "medlars")) + paths(found(as_ada, "pears")) == [
            f"{deep}/a.md",
            f"{deep}/b.md",
        ]
        assert indexing.index_changed() == 0

    def test_letters_of_two_signs_end_no_word(self, as_ada: Caller, write: Write) -> None:
        write("Town.md", "We go to İstanbul with Müller.")
        indexing.index_changed()
        for text in ("İstanbul", "Mu\u0308ller", "mülle"):
            assert paths(found(as_ada, text)) == ["Town.md"], text

    def test_long_texts_are_not_written_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(indexing, "LETTERS_TOGETHER", 100)
        contents = [
            indexing.Content(IndexManifest(), {"content": "x" * length}) for length in (90, 5, 90, 300, 1)
        ]
        batches = [[each.length() for each in batch] for batch in indexing._batches(contents)]
        assert batches == [[90, 5], [90], [300], [1]]


class TestChats:
    def test_what_an_agent_writes_into_its_transcript_keeps_no_other_chat_from_being_found(
        self, as_ada: Caller, settings: Any, tmp_path: Path
    ) -> None:
        settings.PARACHUTE_HOME = tmp_path / "home"
        opened = said_and_answered(as_ada, "pears")
        said_by_nobody = said({"type": "text", "text": 5}, of="msg_1")
        put(opened.session_id, as_jsonl(prompt(Message.objects.get().pk, "pears"), said_by_nobody))
        said_and_answered(as_ada, "medlars")
        indexing.index_sessions()
        assert len(found(as_ada, "medlars")) == 1

    def test_of_a_very_long_one_the_newest_is_found(
        self, as_ada: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(indexing, "LONGEST_CHAT", 1_000)
        said_and_answered(as_ada, "hello", answer="pears " + "and so on. " * 1_000 + "medlars")
        indexing.index_sessions()
        assert (len(found(as_ada, "pears")), len(found(as_ada, "medlars"))) == (0, 1)

    def test_a_chat_is_its_authors_to_find_until_it_is_shared(
        self, as_ada: Caller, as_ben: Caller, as_cy: Caller
    ) -> None:
        session = a_chat(as_ada, "When are the medlars ripe?")

        def who() -> list[bool]:
            return [bool(found(each, "medlars")) for each in (as_ada, as_ben, as_cy)]

        assert who() == [True, False, False]
        share(session.pk)
        assert who() == [True, True, False]

    def test_an_agent_finds_what_whoever_reads_its_answers_may_see(
        self, as_ada: Caller, as_ben: Caller, write: Write
    ) -> None:
        own, other = a_chat(as_ada, "medlars of mine"), a_chat(as_ada, "medlars of before")
        bens, shared = a_chat(as_ben, "medlars of ben"), a_chat(as_ben, "medlars of all")
        share(shared.pk)
        write("Medlars.md", "medlars in a note")
        indexing.index_changed()

        def seen(session: Session) -> set[Any]:
            hits = find(Scope.of_session(Session.objects.get(pk=session.pk)), Wish("medlars"))
            return {hit.session_id or hit.path for hit in hits}

        assert seen(own) == {own.pk, other.pk, shared.pk, "Medlars.md"}
        share(own.pk)
        assert seen(own) == {own.pk, shared.pk, "Medlars.md"}
        assert bens.pk in seen(bens)

    def test_those_that_changed_are_indexed_and_no_others(self, as_ada: Caller) -> None:
        session = a_chat(as_ada, "When are the medlars ripe?")
        a_chat(as_ada, "pears")
        assert indexing.index_sessions() == 0
        Session.objects.filter(pk=session.pk).update(title="Services")
        assert indexing.index_sessions() == 1
        assert [hit.title for hit in found(as_ada, "services")] == ["Services"]
        Session.objects.filter(pk=session.pk).update(summary="About medlars.")
        indexing.index_sessions()
        assert [hit.title for hit in found(as_ada, "medlars")] == ["Services"]

    def test_one_that_is_deleted_is_found_no_more(self, as_ada: Caller) -> None:
        a_chat(as_ada, "medlars").delete()
        assert found(as_ada, "medlars") == []
        assert not Chunk.objects.exists()


def test_a_foreign_workspaces_note_is_not_found(
    as_ada: Caller, as_cy: Caller, write: Write, cy: User
) -> None:
    """Though their vault has one of the same name. (As it happens, it is the same folder here.)"""
    write("Quinces.md")
    indexing.index_changed()
    ada, cy_too = found(as_ada, "October"), found(caller_of_user(cy), "October")
    assert (paths(ada), paths(cy_too)) == (["Quinces.md"], ["Quinces.md"])
    assert ada[0].content_id != cy_too[0].content_id


def test_it_is_narrowed_by_kind_tag_workspace_and_time(as_ada: Caller, write: Write) -> None:
    session = a_chat(as_ada, "medlars")
    SessionTag.objects.create(session=session, tag="garden")
    write("Daily/2026-11-20.md", "medlars")
    write("Medlars.md", "medlars")
    indexing.index_changed()
    later = timezone.now() + timedelta(days=1)
    for more, count in (
        ({}, 3),
        ({"kinds": ("session",)}, 1),
        ({"kinds": ("journal", "document")}, 2),
        ({"tag": "Garden"}, 1),
        ({"workspace": "default"}, 3),
        ({"workspace": "nowhere"}, 0),
        ({"since": later}, 0),
        ({"limit": 1}, 1),
    ):
        assert len(found(as_ada, "medlars", **more)) == count, more


def test_what_others_have_does_not_hide_what_one_may_find(
    as_ada: Caller, as_cy: Caller, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though more of theirs fits better than is looked at."""
    monkeypatch.setattr(finding, "WIDER", (2, 4))
    for number in range(8):
        a_chat(as_cy, f"Medlars {number}")
    own = said_and_answered(as_ada, "hello", answer=f"{'Once I said something long. ' * 10} medlars")
    indexing.index_sessions()
    assert [hit.session_id for hit in found(as_ada, "medlars")] == [own.session_id]
    assert [hit.session_id for hit in found(as_ada, "medlars nowhere")] == [own.session_id]


@pytest.mark.parametrize(
    "text", ['"', "* OR -x", "NEAR(a b)", "'; DROP TABLE", "🦆", "a:b^c", "(((", "\\", "x" * 5_000, "", "!"]
)
def test_signs_of_a_query_language_are_only_signs(as_ada: Caller, write: Write, text: str) -> None:
    write("Quinces.md")
    indexing.index_changed()
    assert found(as_ada, text) == []
    assert paths(found(as_ada, f"{text} october"[-60:])) in (["Quinces.md"], [])


@pytest.mark.skipif(connection.vendor != "sqlite", reason="FTS5 is SQLite's")
@pytest.mark.parametrize("all_of_them", [True, False])
@pytest.mark.parametrize("words", [["frost"], ["frost", "quinc"], ["ripe", "late", "o"]])
def test_the_order_is_that_of_the_words_own_index(
    workspace: Workspace, write: Write, words: list[str], all_of_them: bool
) -> None:
    said = ("Quinces ripen late.", "Frost.", "Frost on ripe quinces, frost again.", "Late ripe frost, often.")
    for number in range(40):  # many are as good as others
        write(f"{number}.md", f"{said[number % 4]} {'And so on. ' * (number % 3)}")
    indexing.index_changed()
    by_rank = f"SELECT rowid FROM {FTS} WHERE {FTS} MATCH %s ORDER BY rank LIMIT %s"
    wanted = (" AND " if all_of_them else " OR ").join(words) + "*"
    for most in (7, 200):
        with connection.cursor() as cursor:
            cursor.execute(by_rank, [wanted, most])
            order = [pk for (pk,) in cursor.fetchall()]
        assert len(order) >= 7
        assert Chunk.objects.with_words(words, all_of_them=all_of_them, most=most) == order


def test_what_is_found_is_told_without_asking_for_each(
    as_ada: Caller, write: Write, django_assert_num_queries: Any
) -> None:
    for number in range(15):
        write(f"{number}.md", "Quinces ripen late.")
        a_chat(as_ada, "Do quinces ripen late?")
    indexing.index_changed()
    for text, orders_and_rows in (("quinces", 2), ("late quinces", 2), ("early quinces", 3)):
        with django_assert_num_queries(orders_and_rows):
            hits = found(as_ada, text, limit=30)
            shown = [SearchResult.of(hit).model_dump() for hit in hits]
        assert len(shown) == 30
        assert {each["workspace"] for each in shown} == {"default"}


def test_pieces_end_with_sentences_overlap_and_lose_nothing() -> None:
    text = " ".join(f"Sentence number {n} says that quinces ripen." for n in range(60))
    pieces = chunks(f"# Head\n\n{text}\n\n{'x' * 3_000}")
    assert all(len(piece) <= max(SIZE + LONGEST, LONGEST) for piece in pieces)
    assert all(f"number {n} says" in " ".join(pieces) for n in range(60))
    assert pieces[1].split()[0] in pieces[0]


def test_an_excerpt_is_around_the_word() -> None:
    shown, marks = excerpt("a " * 300 + "Quince " + "b " * 300, ["quin"])
    assert (shown[0], shown[-1]) == ("…", "…")
    assert [shown[start:end] for start, end in marks] == ["Quin"]


def test_an_excerpt_is_read_and_its_marks_are_where_the_words_are() -> None:
    text = "**Quinces** of the [old *quince* tree](Garden/Quinces.md) ripen late."
    shown, marks = excerpt(text, ["Quince"])
    assert shown == "Quinces of the old quince tree ripen late."
    assert marks == [(0, 6), (19, 25)]
