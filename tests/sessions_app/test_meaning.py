"""What is found by its meaning: by whom, until when, and what becomes of the file of vectors."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents_app.turns.said.opening import Opening, open_turn
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.models import Chunk, Session
from sessions_app.search import finding, indexing, meaning
from sessions_app.search.finding import Hit, Scope, Wish, find
from sessions_app.tasks import index_changed
from tests.sharing import share

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

SEES = "The doctor sees me on Tuesday at nine."
CAR = "The mechanic wants 400 euros for fixing the brakes of our car."
PHYSICIAN, REPAIR = "physician appointment", "automobile repair costs"

Write = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def by_meaning(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    monkeypatch.setattr("agents_app.turns.held.ringing.send", lambda args, queue: None)
    settings.PARACHUTE_EMBEDDER = "sessions_app.search.embeddings.words"
    settings.PARACHUTE_HOME = tmp_path / "home"
    settings.PARACHUTE_HOME.mkdir()
    monkeypatch.setattr(meaning, "_quiet", meaning._Quiet())


@pytest.fixture
def write(vault: Path) -> Write:
    def write(path: str, text: str) -> None:
        (vault / path).write_text(text)

    return write


def found(caller: Caller, text: str, **more: Any) -> list[Hit]:
    return find(Scope.of_caller(caller), Wish(text, **more))


def vectors(settings: Any) -> Path:
    (file,) = (settings.PARACHUTE_HOME / "search").glob("*.vectors")
    return Path(file)


def a_chat(caller: Caller, text: str) -> Session:
    session: Session = Session.objects.get(pk=open_turn(caller, Opening(text)).session_id)
    indexing.index_session(session.pk)
    return session


def test_a_note_is_found_by_a_paraphrase_without_a_word_of_it_until_it_is_about_something_else(
    as_ada: Caller, write: Write
) -> None:
    write("week.md", SEES)
    write("car.md", CAR)
    index_changed()
    assert [(hit.path, hit.matched) for hit in found(as_ada, PHYSICIAN)] == [("week.md", "meaning")]
    assert [(hit.path, hit.matched) for hit in found(as_ada, REPAIR)] == [("car.md", "meaning")]
    (hit,) = found(as_ada, "the doctor on Tuesday", limit=1)
    assert (hit.path, hit.matched) == ("week.md", "both")
    write("week.md", "Nothing is to be done.")
    index_changed()
    assert found(as_ada, PHYSICIAN) == []


def test_a_private_chat_is_not_found_by_its_meaning_by_others_until_it_is_shared(
    as_ada: Caller, as_ben: Caller, as_cy: Caller
) -> None:
    session = a_chat(as_ada, SEES)
    meaning.catch_up()
    assert [hit.session_id for hit in found(as_ada, PHYSICIAN)] == [session.pk]
    assert found(as_ben, PHYSICIAN) == found(as_cy, PHYSICIAN) == []
    share(session.pk)
    assert [hit.session_id for hit in found(as_ben, PHYSICIAN)] == [session.pk]
    assert found(as_cy, PHYSICIAN) == []


def test_what_others_said_nearer_does_not_hide_what_one_may_find(
    as_ada: Caller, as_ben: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        a_chat(as_ada, f"Physician appointment number {number}")
    session = a_chat(as_ben, SEES)
    meaning.catch_up()
    monkeypatch.setattr(finding, "WIDER", (5, 100))
    assert [hit.session_id for hit in found(as_ben, PHYSICIAN)] == [session.pk]


def test_a_filter_holds_for_what_is_found_by_meaning(as_ada: Caller, write: Write) -> None:
    write("week.md", SEES)
    session = a_chat(as_ada, SEES)
    index_changed()
    assert [hit.session_id for hit in found(as_ada, PHYSICIAN, kinds=("session",))] == [session.pk]
    assert [hit.path for hit in found(as_ada, PHYSICIAN, kinds=("document",))] == ["week.md"]
    assert found(as_ada, PHYSICIAN, workspace="elsewhere") == []


def test_places_of_what_is_gone_are_used_again(as_ada: Caller, write: Write, settings: Any) -> None:
    for number in range(5):
        write("week.md", "\n\n".join(f"{SEES} {number} {part} {'x' * 500}" for part in range(400)))
        index_changed()
    assert vectors(settings).stat().st_size == 1024 * (8 + 8 + 4 + 4 + 256)
    assert [hit.path for hit in found(as_ada, PHYSICIAN)] == ["week.md"]


def test_vectors_of_another_database_find_nothing_and_are_made_again(as_ada: Caller, write: Write) -> None:
    write("week.md", SEES)
    index_changed()
    Chunk.objects.filter(text__contains="doctor").update(text=CAR)  # as where the database is an older one
    assert found(as_ada, PHYSICIAN) == []
    index_changed()
    assert [hit.path for hit in found(as_ada, REPAIR)] == ["week.md"]


def test_two_passes_at_once_are_one(as_ada: Caller, write: Write) -> None:
    write("week.md", SEES)
    index_changed()
    with meaning._reader()[1].alone() as is_alone:
        assert is_alone
        assert meaning.catch_up() == 0
        write("car.md", CAR)
        index_changed()
    assert found(as_ada, REPAIR) == []
    index_changed()
    assert [hit.path for hit in found(as_ada, REPAIR)] == ["car.md"]


@pytest.mark.parametrize("state", ["garbage", "cut", "folder"])
def test_a_broken_file_of_vectors_keeps_nobody_from_finding_words(
    as_ada: Caller, write: Write, settings: Any, state: str
) -> None:
    write("week.md", SEES)
    index_changed()
    file = vectors(settings)
    size = file.stat().st_size
    match state:
        case "garbage":
            file.write_bytes(b"\xff\x7e" * (size // 2))
        case "cut":
            os.truncate(file, 1_000)
        case "folder":
            file.unlink()
            file.mkdir()
    assert [hit.path for hit in found(as_ada, "doctor")] == ["week.md"]
    index_changed()
    assert [hit.path for hit in found(as_ada, "doctor")] == ["week.md"]


def test_a_place_in_the_file_is_bytes_on_the_disk_and_no_hole(
    as_ada: Caller, write: Write, settings: Any
) -> None:
    """A full disk is then an error, and not the end of the process that writes there."""
    write("week.md", SEES)
    index_changed()
    found = vectors(settings).stat()
    assert found.st_blocks * 512 >= found.st_size


class Answering(BaseHTTPRequestHandler):
    """A server of vectors: who speaks of a doctor or a physician means one thing, who does not another."""

    is_well = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        medical = [any(word in text.lower() for word in ("doctor", "physician")) for text in asked]
        rows = [{"embedding": [3, 0, 0] if is_medical else [0, 2, 1]} for is_medical in medical]
        body = json.dumps({"data": rows if type(self).is_well else None}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not to be said."""


@pytest.fixture
def served(settings: Any) -> Iterator[type[Answering]]:
    server = HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings.PARACHUTE_EMBEDDER = "sessions_app.search.embeddings.served"
    settings.PARACHUTE_EMBEDDINGS_URL = f"http://127.0.0.1:{server.server_port}/v1/embeddings"
    Answering.is_well = True
    yield Answering
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_of_vectors_is_asked_and_without_it_words_are_looked_for(
    as_ada: Caller,
    write: Write,
    served: type[Answering],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meaning, "QUIET", 0.0)
    write("week.md", SEES)
    write("car.md", CAR)
    index_changed()
    assert [(hit.path, hit.matched) for hit in found(as_ada, PHYSICIAN)] == [("week.md", "meaning")]
    served.is_well = False
    assert [(hit.path, hit.matched) for hit in found(as_ada, "doctor")] == [("week.md", "text")]
    write("more.md", "Another doctor.")
    index_changed()
    assert "What is new is found by its words alone" in caplog.text
    served.is_well = True
    index_changed()
    assert "more.md" in [hit.path for hit in found(as_ada, PHYSICIAN)]


def test_a_server_that_is_away_from_the_first_is_not_asked_again_at_once(
    as_ada: Caller, write: Write, served: type[Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("week.md", SEES)
    served.is_well = False
    index_changed()
    assert [hit.path for hit in found(as_ada, "doctor")] == ["week.md"]
    asked = list[str]()
    monkeypatch.setattr(meaning, "_reader", lambda: asked.append("again"))
    assert [hit.path for hit in found(as_ada, "doctor")] == ["week.md"]
    assert asked == []


def test_who_waits_for_a_server_does_not_hold_all_others(
    as_ada: Caller, write: Write, served: type[Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("week.md", SEES)
    index_changed()
    monkeypatch.setattr(meaning, "IN_LINE", 0.0)
    for _ in range(meaning.ASK_AT_ONCE):
        meaning._asking.acquire()
    try:
        assert found(as_ada, PHYSICIAN) == []
        assert [hit.path for hit in found(as_ada, "doctor")] == ["week.md"]
    finally:
        for _ in range(meaning.ASK_AT_ONCE):
            meaning._asking.release()
    assert [hit.path for hit in found(as_ada, PHYSICIAN)] == ["week.md"]


def test_another_workspace_is_not_searched(
    as_ada: Caller, ada: User, vault: Path, tmp_path: Path, write: Write
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "week.md").write_text(SEES)
    Workspace.objects.create(slug="other", name="Other", vault_path=str(other))
    index_changed()
    assert Chunk.objects.filter(text=SEES).exists()
    assert found(as_ada, PHYSICIAN) == []
