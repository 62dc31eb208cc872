"""Captures, and what a vault's page shows: by whom, under which names, and never what is closed."""

from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User

from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.access.services import caller_of_user
from sessions_app.errors import Forbidden, Invalid, NotFound, NotReady, TooLarge
from sessions_app.files import captures, notes
from sessions_app.files.captures import Captured
from sessions_app.search import indexing
from sessions_app.search.models import ContentType, IndexManifest

pytestmark = pytest.mark.django_db


def save(caller: Caller, filename: str, content: str = "Ada called.", **more: str) -> str:
    return captures.save(caller, "", Captured(filename, content, **more))


class TestCaptures:
    def test_one_lies_in_the_vault_with_what_is_known_of_it_above(self, as_ada: Caller, vault: Path) -> None:
        path = save(
            as_ada, "call", title="A: call", context="from\nmy phone", timestamp="2026-11-20T08:00:00"
        )
        assert path == "captures/call.md"
        _, front, body = (vault / path).read_text().split("---\n", 2)
        known = {"title": "A: call", "context": "from\nmy phone", "timestamp": "2026-11-20T08:00:00"}
        assert yaml.safe_load(front) == known
        assert body.strip() == "Ada called."
        assert [each.filename for each in captures.captures(as_ada, "")] == ["call.md"]
        assert b"Ada called." in captures.capture(as_ada, "", "call.md")

    def test_front_matter_of_its_own_stays_and_wins(self, as_ada: Caller, vault: Path) -> None:
        path = save(as_ada, "x.md", "---\ntitle: Mine\n---\nText", title="Theirs", context="phone")
        assert (vault / path).read_text() == "---\ncontext: phone\ntitle: Mine\n---\nText"

    def test_a_name_that_is_taken_gets_a_number_unless_the_content_is_the_same(self, as_ada: Caller) -> None:
        assert save(as_ada, "a.md", "one") == save(as_ada, "a.md", "one") == "captures/a.md"
        assert save(as_ada, "a.md", "two") == "captures/a-2.md"

    @pytest.mark.parametrize(
        "name",
        [
            *("", ".", "..", "../../x", "a/b", "a\\b", "a\0b", "a\nb", "con", "NUL.md", "lpt1.txt", "x. "),
            *("é" * 101, "CLAUDE.md", "claude.MD", "id_rsa.pem", ".env", "a\u202eb"),
        ],
    )
    def test_what_is_no_name_is_refused_in_words(self, as_ada: Caller, vault: Path, name: str) -> None:
        with pytest.raises(Invalid):
            save(as_ada, name)
        assert not list((vault / "captures").glob("*")) if (vault / "captures").exists() else True
        with pytest.raises(NotFound):
            captures.capture(as_ada, "", name)

    def test_what_is_too_large_or_has_no_place_is_said(self, as_ada: Caller, vault: Path) -> None:
        with pytest.raises(TooLarge):
            save(as_ada, "a.md", "x" * ((1 << 20) + 1))
        (vault / "captures").write_text("a file in the way")
        with pytest.raises(NotReady):
            save(as_ada, "a.md")

    def test_nothing_is_written_through_a_link(self, as_ada: Caller, vault: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (vault / "captures").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(NotReady):
            save(as_ada, "a.md")
        assert not list((tmp_path / "elsewhere").iterdir())

    def test_who_only_reads_drops_nothing_and_who_is_not_in_it_sees_nothing(
        self, as_ada: Caller, vi: User, as_cy: Caller
    ) -> None:
        as_vi = caller_of_user(vi)
        save(as_ada, "a.md")
        with pytest.raises(Forbidden):
            save(as_vi, "b.md")
        assert [each.filename for each in captures.captures(as_vi, "")] == ["a.md"]
        with pytest.raises(NotFound):
            captures.captures(as_cy, "default")
        with pytest.raises(NotFound):
            captures.capture(as_cy, "default", "a.md")


class TestTheVault:
    def test_folders_come_first_and_what_is_closed_is_not_there(
        self, workspace: Workspace, vault: Path
    ) -> None:
        for path in (
            "Garden/Quinces.md",
            "CLAUDE.md",
            ".env",
            "id_rsa",
            "a.key",
            ".claude/x",
            "Chat/assets/x",
        ):
            (vault / path).parent.mkdir(parents=True, exist_ok=True)
            (vault / path).write_text("text")
        (vault / "link.md").symlink_to("/etc/passwd")
        names = [entry.name for entry in notes.look(workspace, "").entries]
        assert names == ["Chat", "Garden", "CLAUDE.md", "Welcome.md"]
        assert notes.look(workspace, "Garden/Quinces.md").text == "text"
        assert notes.look(workspace, "Chat").entries == ()

    @pytest.mark.parametrize(
        "path",
        [".env", "link.md", "..", "a/../.env", "Chat/assets/x", "chat/ASSETS/x", "/etc/passwd", "x\0", "no"],
    )
    def test_what_is_not_to_be_seen_is_not_found(self, workspace: Workspace, vault: Path, path: str) -> None:
        (vault / ".env").write_text("KEY=x")
        (vault / "Chat/assets").mkdir(parents=True)
        (vault / "Chat/assets/x").write_text("x")
        (vault / "link.md").symlink_to(vault / "Welcome.md")
        for asked in (notes.look, notes.file):
            with pytest.raises(NotFound):
                asked(workspace, path)

    def test_what_is_no_text_or_long_is_said(self, workspace: Workspace, vault: Path) -> None:
        (vault / "picture.png").write_bytes(b"\x89PNG\0\0")
        (vault / "long.md").write_bytes(b"\xff" + b"x" * (2 << 20))
        assert notes.look(workspace, "picture.png").text is None
        long = notes.look(workspace, "long.md")
        assert (long.is_cut, long.size) == (True, (2 << 20) + 1)

    def test_a_name_is_that_of_the_nearest_note(self, workspace: Workspace, vault: Path) -> None:
        for path in ("Garden/Old/Quinces.md", "Garden/Quinces.md", "Garden/More Quinces.md"):
            (vault / path).parent.mkdir(parents=True, exist_ok=True)
            (vault / path).write_text("text")
        indexing.index_changed()
        assert notes.by_name(workspace, "quinces") == "Garden/Quinces.md"
        assert notes.by_name(workspace, "Old/Quinces.md") == "Garden/Old/Quinces.md"
        assert notes.by_name(workspace, "Medlars") is None

    def test_a_short_name_is_found_among_many_that_end_so(self, workspace: Workspace) -> None:
        paths = [*(f"0/{n:03}a.md" for n in range(120)), "Z/a.md", "Z/Z/a.md"]
        IndexManifest.objects.bulk_create(
            IndexManifest(content_id=path, workspace=workspace, content_type=ContentType.DOCUMENT, path=path)
            for path in paths
        )
        assert notes.by_name(workspace, "a") == "Z/a.md"
