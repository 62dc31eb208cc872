"""Files over the wire: sent with a message, told of, and served back as downloads that nothing runs."""

import os
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agents_app.runtimes.scripted import ScriptedRuntime
from sessions_app.files import downloads
from sessions_app.models import Attachment, Session, Turn
from tests.api.web import Answer, Web

pytestmark = pytest.mark.django_db(transaction=True)

PNG = b"\x89PNG\r\n\x1a\n\0"
MIB = 1 << 20
NOWAIT = {"prefer": "respond-async"}


def file(name: str, content: bytes, mime_type: str = "") -> dict[str, str]:
    return {"fileName": name, "mimeType": mime_type, "base64Data": b64encode(content).decode()}


async def post(web: Web, *files: dict[str, Any], message: str = "look", **headers: str) -> Answer:
    return await web.post("/api/chat", {"message": message, "attachments": files}, NOWAIT | headers)


async def sent(web: Web, *files: dict[str, Any]) -> list[dict[str, Any]]:
    """The files as the `user_message` tells of them."""
    said = await post(web, *files)
    assert said.status == 202, said.body
    async with web.streaming("GET", f"/api/chat/{said.json['sessionId']}/events") as stream:
        told: list[dict[str, Any]] = (await stream.until("user_message"))[-1].data["attachments"]
    return told


def kept(vault: Path) -> list[Path]:
    return list(vault.glob("Chat/**/*.*"))


async def test_a_file_is_sent_and_served_back(ada_calls: Web) -> None:
    (told,) = await sent(ada_calls, file("pear.png", PNG, "image/png"))
    answer = await ada_calls.get(told["url"])
    assert (answer.status, answer.body) == (200, PNG)
    headers = answer.headers
    assert headers["content-type"] == "image/png"
    assert headers["content-length"] == str(len(PNG))
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''pear.png"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"].startswith("private, max-age=")


async def test_a_file_that_lies_about_its_type_is_what_it_is(ada_calls: Web) -> None:
    script = b"<html><script>alert(1)</script>"
    page, note = await sent(
        ada_calls, file("pear.png", script, "image/png"), file("notes.txt", PNG, "text/html")
    )
    assert (page["mimeType"], note["mimeType"]) == ("text/plain", "image/png")
    assert (await ada_calls.get(page["url"])).headers["content-type"] == "application/octet-stream"
    assert (await ada_calls.get(note["url"])).headers["content-type"] == "image/png"


async def test_a_vector_image_is_never_served_as_one(ada_calls: Web) -> None:
    (told,) = await sent(ada_calls, file("x.svg", b"<svg onload='alert(1)'/>", "image/svg+xml"))
    assert (await ada_calls.get(told["url"])).headers["content-type"] == "application/octet-stream"


async def test_a_name_that_is_a_path_is_a_name(ada_calls: Web, vault: Path) -> None:
    (told,) = await sent(ada_calls, file("../../x", b"text"))
    assert (told["fileName"], told["path"].rpartition("/")[2]) == ("x", "x")
    assert (vault / told["path"]).read_bytes() == b"text"
    assert not (vault / "x").exists() and not (vault.parent / "x").exists()


async def test_a_name_with_tricks_is_seen_and_saved_without(ada_calls: Web) -> None:
    (told,) = await sent(ada_calls, file('a\0b\u202e"\r\nX: ü.md', b"text"))
    assert told["fileName"] == 'ab"X: ü.md'
    disposition = (await ada_calls.get(told["url"])).headers["content-disposition"]
    assert disposition == f"attachment; filename*=UTF-8''{quote(told['fileName'], safe='')}"


async def test_21_mb_are_413_and_20_are_taken(ada_calls: Web, vault: Path) -> None:
    answer = await post(ada_calls, file("video.bin", b"\0" * 21 * MIB))
    assert answer.refused == (413, "too_large")
    assert "video.bin has 21.0 MB" in answer.json["error"]["message"]
    assert kept(vault) == []
    (told,) = await sent(ada_calls, file("video.bin", b"\0" * 20 * MIB))
    assert len((await ada_calls.get(told["url"])).body) == 20 * MIB


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (file("photo.png", b"\x7fELF\x02\x01\x01\0"), "attachments.0.fileName"),
        (file("photo.exe", b"harmless"), "attachments.0.fileName"),
        (file("", b"x"), "attachments.0.fileName"),
        (file("x.md", b""), "attachments.0.base64Data"),
        ({"fileName": "x.md", "base64Data": "no base64!"}, "attachments.0.base64Data"),
        ({"fileName": "x.md", "base64Data": "eA=="[:3]}, "attachments.0.base64Data"),
        ({"fileName": "x.md", "base64Data": "süß"}, "attachments.0.base64Data"),
        ({"fileName": "x.md", "base64Data": "\ud800"}, "attachments.0.base64Data"),
        ({"fileName": "x.md"}, "attachments.0.base64Data"),
        ({"base64Data": "eA=="}, "attachments.0.fileName"),
        ({**file("x.md", b"x"), "run": True}, "attachments.0.run"),
    ],
    ids=lambda value: ascii(value)[:40],
)
async def test_what_cannot_be_taken_names_its_field(
    wrong: dict[str, Any], field: str, ada_calls: Web, vault: Path
) -> None:
    answer = await post(ada_calls, wrong)
    assert answer.refused == (422, "invalid")
    assert answer.fields == [field]
    assert kept(vault) == []
    assert await Turn.objects.acount() == 0


async def test_eleven_files_are_too_many(ada_calls: Web) -> None:
    answer = await post(ada_calls, *[file("x.md", b"x")] * 11)
    assert (answer.refused, answer.fields) == ((422, "invalid"), ["attachments"])


async def test_files_alone_are_a_message(ada_calls: Web, worker: ScriptedRuntime) -> None:
    answer = await ada_calls.post(
        "/api/chat", {"attachments": [file("pear.png", PNG)]}, {"accept": "application/json"}
    )
    assert answer.status == 200
    session = (await ada_calls.get(f"/api/chat/{answer.json['sessionId']}")).json
    assert session["title"] == "pear.png"
    assert [each["fileName"] for each in session["messages"][0]["attachments"]] == ["pear.png"]


async def test_no_text_and_no_file_is_no_message(ada_calls: Web) -> None:
    assert (await post(ada_calls, message="")).fields == ["message"]


async def test_a_viewer_who_posts_writes_nothing(vi_calls: Web, vault: Path) -> None:
    assert (await post(vi_calls, file("x.md", b"x"))).refused == (403, "forbidden")
    assert kept(vault) == []


async def test_a_viewer_may_look_at_it(ada_calls: Web, vi_calls: Web) -> None:
    (told,) = await sent(ada_calls, file("x.md", b"text"))
    await ada_calls.share(str((await Session.objects.aget()).pk))
    assert (await vi_calls.get(told["url"])).body == b"text"


async def test_a_link_in_the_place_of_chat_is_refused(ada_calls: Web, vault: Path) -> None:
    (vault.parent / "outside").mkdir()
    (vault / "Chat").symlink_to(vault.parent / "outside")
    answer = await post(ada_calls, file("x.md", b"x"))
    assert (answer.refused, answer.fields) == ((422, "invalid"), ["attachments"])
    assert os.listdir(vault.parent / "outside") == []


async def test_the_same_request_twice_leaves_one_copy(ada_calls: Web, vault: Path) -> None:
    headers = {"idempotency-key": "k"}
    first, second = [await post(ada_calls, file("x.md", b"x"), **headers) for _ in range(2)]
    assert first.json == second.json
    assert len(kept(vault)) == 1


async def test_over_the_socket_it_is_the_same(ada_calls: Web, vault: Path) -> None:
    async with ada_calls.socket() as socket:
        await socket.send({"type": "message", "message": "", "attachments": [file("x.md", b"x")]})
        assert (await socket.next())["type"] == "accepted"
        await socket.send({"type": "message", "message": "", "attachments": [file("x.exe", b"x")]})
        refused = await socket.next()
    assert (refused["type"], refused["error"]["code"]) == ("refused", "invalid")
    assert refused["error"]["details"]["fields"][0]["field"] == "attachments.0.fileName"
    assert len(kept(vault)) == 1


async def test_a_message_over_the_socket_is_no_larger_than_a_body(ada_calls: Web) -> None:
    async with ada_calls.socket() as socket:
        await socket.send_raw(text=" " * (30 * MIB + 1))
        assert (await socket.next())["error"]["code"] == "too_large"


class TestServing:
    @pytest.fixture
    async def told(self, ada_calls: Web) -> dict[str, Any]:
        return (await sent(ada_calls, file("x.md", b"text")))[0]

    async def test_an_outsider_gets_what_an_unknown_one_gets(
        self, told: dict[str, Any], cy_calls: Web, nobody: Web
    ) -> None:
        unknown = told["url"].replace(told["id"], "00000000-0000-4000-8000-000000000000")
        foreign = await cy_calls.get(told["url"])
        assert foreign.refused == (404, "not_found")
        assert foreign.body == (await cy_calls.get(unknown)).body
        assert (await nobody.get(told["url"])).refused == (401, "unauthenticated")

    async def test_the_file_of_one_session_is_not_in_another(
        self, told: dict[str, Any], ada_calls: Web
    ) -> None:
        other = (await ada_calls.say("hi"))["sessionId"]
        answer = await ada_calls.get(f"/api/chat/{other}/attachments/{told['id']}")
        assert answer.refused == (404, "not_found")

    async def test_one_that_is_gone_is_404_with_a_sentence(
        self, told: dict[str, Any], ada_calls: Web, vault: Path
    ) -> None:
        (vault / told["path"]).unlink()
        answer = await ada_calls.get(told["url"])
        assert answer.refused == (404, "not_found")
        assert "not in the vault any more" in answer.json["error"]["message"]

    async def test_a_link_in_its_place_is_not_followed(
        self, told: dict[str, Any], ada_calls: Web, vault: Path
    ) -> None:
        (vault / told["path"]).unlink()
        (vault / told["path"]).symlink_to(vault / "Welcome.md")
        assert (await ada_calls.get(told["url"])).refused == (404, "not_found")

    async def test_it_comes_in_pieces(
        self, told: dict[str, Any], ada_calls: Web, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(downloads, "PIECE", 3)
        async with ada_calls.streaming("GET", told["url"]) as stream:
            assert [await stream.piece() for _ in range(2)] == [b"tex", b"t"]

    async def test_one_that_grows_keeps_the_length_that_was_said(
        self, told: dict[str, Any], ada_calls: Web, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = downloads.Download.response

        def grows(self: downloads.Download) -> Any:
            with (vault / told["path"]).open("ab") as file:
                file.write(b" and more")
            return opened(self)

        monkeypatch.setattr(downloads.Download, "response", grows)
        answer = await ada_calls.get(told["url"])
        assert (answer.body, answer.headers["content-length"]) == (b"text", "4")

    @pytest.mark.parametrize("reads", [True, False])
    async def test_no_file_stays_open(self, told: dict[str, Any], ada_calls: Web, reads: bool) -> None:
        async with ada_calls.streaming("GET", told["url"]) as stream:
            if reads:
                await stream.whole()
        assert [link for link in open_files() if link.endswith(told["path"])] == []

    async def test_it_costs_few_queries(self, told: dict[str, Any], ada_calls: Web, queries: Any) -> None:
        await ada_calls.get(told["url"])
        with queries() as asked:
            await ada_calls.get(told["url"])
        assert len(asked) <= 3, asked

    async def test_its_operation_is_described(self, nobody: Web) -> None:
        document = (await nobody.get("/api/openapi.json")).json
        described = document["paths"]["/api/chat/{session_id}/attachments/{attachment_id}"]["get"]
        assert set(described["responses"]["200"]["content"]) >= {"image/png", "application/octet-stream"}
        schema = document["components"]["schemas"]["AttachmentIn"]["properties"]
        assert all("examples" in schema[name] for name in ("fileName", "mimeType", "base64Data"))


async def test_two_messages_with_files_each_have_their_own(ada_calls: Web) -> None:
    (one,) = await sent(ada_calls, file("photo.png", PNG + b"1"))
    (other,) = await sent(ada_calls, file("photo.png", PNG + b"2"))
    assert [(await ada_calls.get(each["url"])).body[-1:] for each in (one, other)] == [b"1", b"2"]
    assert await Attachment.objects.acount() == 2


def open_files() -> list[str]:
    links = []
    for handle in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(handle.readlink()))
        except OSError:
            continue
    return links
