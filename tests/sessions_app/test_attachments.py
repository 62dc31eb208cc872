"""Files that come with a message: which are taken, under which names, and where they lie."""

import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from django.db import transaction
from hypothesis import strategies as st

from sessions_app.errors import Invalid, NotReady, ParachuteError, TooLarge
from sessions_app.files import attachments, file_names
from sessions_app.files.attachments import Given
from sessions_app.files.folders import Folder
from sessions_app.models import Attachment, ContentType, Message, Session, Turn

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
ELF = b"\x7fELF\x02\x01\x01\0"
MIB = 1 << 20


def kept_as(vault: Path, *files: tuple[str, bytes]) -> list[str]:
    taken = attachments.accepted([Given(*file) for file in files])
    with attachments.kept(vault, taken) as rows:
        return [row.path for row in rows]


def files_in(vault: Path) -> list[str]:
    return sorted(str(path.relative_to(vault)) for path in vault.rglob("*") if path.is_file())


def refusal_of(name: str, content: bytes) -> ParachuteError:
    with pytest.raises(ParachuteError) as refused:
        attachments.accepted([Given(name, content)])
    return refused.value


class TestNames:
    @pytest.mark.parametrize(
        ("given", "seen"),
        [
            ("../../x", "x"),
            ("/etc/passwd", "passwd"),
            ("C:\\Users\\ada\\pears.md", "pears.md"),
            ("pe\0ars\n.md", "pears.md"),
            ("invoice\u202egnp.exe.pdf", "invoicegnp.exe.pdf"),
            ("half\ud800.md", "half.md"),
            ("a\u2028b\u200b.md", "ab.md"),
            (" pears.md. . ", "pears.md"),
            ("Quitten im Herbst und süß.md", "Quitten im Herbst und süß.md"),
            ("x" * 300 + ".md", "x" * 117 + ".md"),
            ("x" * 3_000_000, "x" * 120),
            ("..", ""),
            ("Garden/", ""),
            ("\u202e\0", ""),
        ],
        ids=lambda value: ascii(value)[:30],
    )
    def test_people_see_the_base_name_without_tricks(self, given: str, seen: str) -> None:
        assert file_names.shown(given) == seen

    @pytest.mark.parametrize(
        ("name", "kind", "stored"),
        [
            ("photo.PNG", ContentType.PNG, "photo.PNG"),
            ("photo.txt", ContentType.PNG, "photo.txt.png"),
            ("photo.jpeg", ContentType.JPEG, "photo.jpeg"),
            ("photo.png", ContentType.TEXT, "photo.png.txt"),
            ("photo.png", ContentType.OTHER, "photo.png.bin"),
            ("notes.md", ContentType.TEXT, "notes.md"),
            ('a:b"c?.md', ContentType.TEXT, "a_b_c_.md"),
            ("CLAUDE.md", ContentType.TEXT, "attached-CLAUDE.md"),
            (".git", ContentType.TEXT, "attached-.git"),
            (".env", ContentType.TEXT, ".env"),
        ],
    )
    def test_the_name_in_the_vault_says_what_the_file_is(self, name: str, kind: str, stored: str) -> None:
        assert file_names.stored(name, kind) == stored

    @hypothesis.given(st.text(), st.sampled_from(ContentType.values))
    @hypothesis.example("é" * 60, ContentType.WEBP)
    def test_whatever_it_was_it_is_one_name_that_any_file_system_takes(self, given: str, kind: str) -> None:
        seen = file_names.shown(given)
        assert file_names.shown(seen) == seen
        assert len(seen) <= 120
        stored = file_names.stored(seen, kind) if seen else "x"
        assert not set(stored) & set('/\\\0<>:"|?*') and stored not in ("", ".", "..")
        assert len(stored.encode()) <= 120 + len(".webp")

    def test_a_long_name_of_long_characters_is_stored(self, vault: Path) -> None:
        (path,) = kept_as(vault, ("🍐" * 115 + ".png", b"text"))
        assert path.endswith(".png.txt")

    def test_two_of_one_name_are_two_files(self, vault: Path) -> None:
        first, second = kept_as(vault, ("photo.png", PNG + b"1"), ("photo.png", PNG + b"2"))
        (third,) = kept_as(vault, ("photo.png", PNG + b"3"))
        paths = [vault / path for path in (first, second, third)]
        assert [path.name for path in paths] == ["photo.png", "photo-2.png", "photo-3.png"]
        assert [path.read_bytes()[-1:] for path in paths] == [b"1", b"2", b"3"]

    def test_a_path_as_a_name_leaves_the_folder_by_no_step(self, vault: Path) -> None:
        (path,) = kept_as(vault, ("../../x", b"text"))
        assert files_in(vault) == sorted(["Welcome.md", path])
        assert path.startswith("Chat/assets/20")


class TestTypes:
    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (PNG, "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"GIF89a\x01\0", "image/gif"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "application/octet-stream"),
            (b"%PDF-1.7\n%\xe2\xe3", "application/pdf"),
            ("# Süß\n".encode(), "text/plain"),
            (b"<svg onload='alert(1)'/>", "text/plain"),
            (b"<!doctype html><script>alert(1)</script>", "text/plain"),
            (b"MZ is how this note begins", "text/plain"),
            (b"text with \0", "application/octet-stream"),
            ("süß".encode("latin-1"), "application/octet-stream"),
            (b"PK\x03\x04\x14\0", "application/octet-stream"),
        ],
    )
    def test_the_content_decides(self, content: bytes, kind: str) -> None:
        (taken,) = attachments.accepted([Given("photo.gif", content)])
        assert taken.kind == kind

    @pytest.mark.parametrize(
        "content",
        [
            ELF,
            b"MZ\x90\0\x03\0\0\0",
            b"#!/bin/sh\nrm -rf ~",
            b"\xca\xfe\xba\xbe\0\0\0\x34",
            b"\xcf\xfa\xed\xfe\x07\0",
            b"\0asm\x01\0\0\0",
            b"dex\n035\0",
        ],
    )
    def test_a_program_is_refused_whatever_it_is_called(self, content: bytes) -> None:
        refused = refusal_of("photo.png", content)
        assert (refused.status, refused.code) == (422, "invalid")
        assert refused.details["fields"][0]["field"] == "attachments.0.fileName"
        assert "photo.png is a program" in refused.message

    @pytest.mark.parametrize(
        "name", ["x.exe", "x.EXE", "x.exe. ", "a/x.sh", "x.e\u200bxe", "x" * 200 + ".bat"]
    )
    def test_what_a_computer_runs_by_its_name_is_refused(self, name: str) -> None:
        assert isinstance(refusal_of(name, b"harmless"), Invalid)

    @pytest.mark.parametrize("name", ["app.js", "app.py", "Makefile", "notes.exe.md"])
    def test_source_is_text(self, name: str) -> None:
        assert attachments.accepted([Given(name, b"print(1)")])[0].kind == "text/plain"


class TestSizes:
    def test_20_mb_are_taken(self) -> None:
        assert attachments.accepted([Given("x.bin", b"\0" * 20 * MIB)])

    def test_21_mb_are_not_and_the_file_is_named(self) -> None:
        refused = refusal_of("x.bin", b"\0" * 21 * MIB)
        assert isinstance(refused, TooLarge)
        assert refused.message == "x.bin has 21.0 MB; a file may have at most 20 MB."

    def test_nothing_is_no_file(self) -> None:
        assert refusal_of("x.md", b"").details["fields"][0]["field"] == "attachments.0.base64Data"

    def test_no_name_is_no_file(self) -> None:
        assert refusal_of("..", b"x").details["fields"][0]["field"] == "attachments.0.fileName"

    def test_ten_are_taken_and_eleven_are_not(self) -> None:
        ten = [Given("x.md", b"x")] * 10
        assert len(attachments.accepted(ten)) == 10
        with pytest.raises(Invalid, match="at most 10"):
            attachments.accepted([*ten, ten[0]])


class TestTheVault:
    @pytest.mark.parametrize("where", ["Chat", "Chat/assets"])
    def test_a_link_on_the_way_is_refused_with_a_sentence(self, vault: Path, where: str) -> None:
        outside = vault.parent / "outside"
        outside.mkdir()
        (vault / where).parent.mkdir(exist_ok=True)
        (vault / where).symlink_to(outside)
        with pytest.raises(Invalid, match="make it a folder") as refused:
            kept_as(vault, ("x.md", b"x"))
        assert refused.value.details["fields"][0]["field"] == "attachments"
        assert os.listdir(outside) == []

    def test_one_that_is_not_there_is_a_503_with_what_to_do(self, vault: Path) -> None:
        with pytest.raises(NotReady, match="Check that its folder is there"):
            kept_as(vault / "gone", ("x.md", b"x"))

    def test_one_that_is_full_keeps_none_of_several(
        self, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = Folder.write

        def full(self: Folder, name: str, content: bytes) -> None:
            if name == "second.md":
                raise OSError(28, "No space left on device")
            write(self, name, content)

        monkeypatch.setattr(Folder, "write", full)
        with pytest.raises(NotReady, match="No space left"):
            kept_as(vault, ("first.md", b"x"), ("second.md", b"x"))
        assert files_in(vault) == ["Welcome.md"]

    def test_whatever_is_raised_takes_the_files_out_again(self, vault: Path) -> None:
        taken = attachments.accepted([Given("x.md", b"x")])
        with pytest.raises(ZeroDivisionError), attachments.kept(vault, taken) as rows:
            assert files_in(vault) == sorted(["Welcome.md", rows[0].path])
            raise ZeroDivisionError
        assert files_in(vault) == ["Welcome.md"]


@pytest.mark.database
@pytest.mark.django_db
def test_a_file_outlives_its_session(session: Session, turn: Callable[..., Turn], vault: Path) -> None:
    message = Message.objects.create(session=session, turn=turn(), content="x")
    taken = attachments.accepted([Given("x.md", b"x")])
    with attachments.kept(vault, taken) as rows, transaction.atomic():
        attachments.attach(message, rows)
    session.delete()
    assert not Attachment.objects.exists()
    assert (vault / rows[0].path).read_bytes() == b"x"
