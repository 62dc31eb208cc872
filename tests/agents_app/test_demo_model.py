"""The demo model without the CLI: what it speaks on the wire, how it reads a request, what it says."""

import asyncio
import json
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents_app.model.demo import conversation, talk, wire
from agents_app.model.demo.wire import Cut, Failure, Reply, Stall, Text, Thinking, ToolUse, say
from tests.scripted_model import ScriptedModel, calls, in_turn

ROOT = Path(__file__).parents[2]
TOOLS = ["Read", "Write", "Edit", "Bash", "Glob", "Grep"]
PLACE = {
    "role": "system",
    "content": "# Environment\n - Primary working directory: /vault\n - Platform: linux",
}


def request_for(*messages: dict[str, Any], tools: list[str] = TOOLS, **more: Any) -> dict[str, Any]:
    return {
        "model": "sonnet",
        "messages": list(messages),
        "tools": [{"name": name} for name in tools],
        **more,
    }


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def called(tool: str, **given: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": tool, "input": given}]}


def answered(text: str, is_error: bool = False) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": is_error}
    return {"role": "user", "content": [result]}


def spoken(body: dict[str, Any]) -> str:
    reply = talk.answer(conversation.read(body))
    assert isinstance(reply, Reply)
    return "".join(block["text"] for block in reply.content if block["type"] == "text")


def call_made(text: str, *since: dict[str, Any]) -> ToolUse | None:
    reply = talk.answer(conversation.read(request_for(user(text), PLACE, *since)))
    assert isinstance(reply, Reply)
    return next((block for block in reply.blocks if isinstance(block, ToolUse)), None)


async def events(reply: Reply) -> list[dict[str, Any]]:
    frames = [frame async for frame in wire.as_events(reply, {"input_tokens": 1, "output_tokens": 2})]
    return [json.loads(frame.decode().partition("data: ")[2]) for frame in frames]


@pytest.fixture
def model() -> Any:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
async def http(model: ScriptedModel) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=model.url, timeout=20) as client:
        yield client


class TestWire:
    async def test_a_stream_has_the_events_of_the_api_in_order(self) -> None:
        reply = Reply(
            (Thinking("hm"), Text("Hello there, all of you"), ToolUse("Read", {"file_path": "/x"}, "t1"))
        )
        kinds = [event["type"] for event in await events(reply)]
        block = ["content_block_start", "content_block_delta", "content_block_stop"]
        thinking, text = block[:2] + block[1:], block[:2] + block[1:]
        assert kinds == ["message_start", *thinking, *text, *block, "message_delta", "message_stop"]

    async def test_the_deltas_add_up_to_the_message(self) -> None:
        reply = Reply(
            (Text("Hello there, all of you"), ToolUse("Read", {"file_path": "/" + "x" * 500}, "t1"))
        )
        deltas = [event["delta"] for event in await events(reply) if event["type"] == "content_block_delta"]
        text = "".join(delta.get("text", "") for delta in deltas)
        given = json.loads("".join(delta.get("partial_json", "") for delta in deltas))
        assert wire.as_message(reply, {})["content"] == [
            {"type": "text", "text": text},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": given},
        ]

    async def test_what_happens_between_words_stays_within_their_block(self) -> None:
        kinds = [event["type"] for event in await events(say("Half a ", Stall(0), "sentence."))]
        assert kinds.count("content_block_start") == 1

    async def test_a_tool_call_ends_with_that_reason(self) -> None:
        ends = {
            reply.stop_reason: [
                event["delta"] for event in await events(reply) if event["type"] == "message_delta"
            ]
            for reply in (say("ok"), calls("Read", file_path="/x"))
        }
        assert [ends[reason][0]["stop_reason"] for reason in ("end_turn", "tool_use")] == [
            "end_turn",
            "tool_use",
        ]


class TestHttp:
    async def test_answers_as_json_without_stream(self, http: httpx.AsyncClient) -> None:
        answer = (await http.post("/v1/messages?beta=true", json=request_for(user("hi")))).json()
        assert (answer["model"], answer["content"]) == ("demo", [{"type": "text", "text": "ok"}])

    async def test_answers_as_events_with_stream(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/v1/messages", json=request_for(user("hi"), stream=True))
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.text.startswith("event: message_start\ndata: {")
        assert answer.text.endswith('event: message_stop\ndata: {"type": "message_stop"}\n\n')

    async def test_counts_more_tokens_for_more_words(self, http: httpx.AsyncClient) -> None:
        few, many = [
            (await http.post("/v1/messages/count_tokens", json=request_for(user(text)))).json()[
                "input_tokens"
            ]
            for text in ("pears", "pears and quinces " * 20)
        ]
        assert 0 < few < many

    async def test_it_names_itself_among_the_models(self, http: httpx.AsyncClient) -> None:
        assert (await http.get("/v1/models")).json()["data"][0]["id"] == "demo"

    @pytest.mark.parametrize("body", ["{", "[]", '"hi"', '{"messages": 1}'])
    async def test_a_malformed_body_is_refused(self, http: httpx.AsyncClient, body: str) -> None:
        answer = await http.post("/v1/messages", content=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")

    async def test_a_failure_has_the_shape_and_the_headers_of_the_api(
        self, model: ScriptedModel, http: httpx.AsyncClient
    ) -> None:
        model.script("hi", [in_turn(wire.rate_limited(7), wire.OVERLOADED, wire.WRONG_KEY)])
        limited, *others = [await http.post("/v1/messages", json=request_for(user("hi"))) for _ in range(3)]
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")
        assert limited.json() == {
            "type": "error",
            "error": {"type": "rate_limit_error", "message": "Rate limited"},
        }
        assert [other.status_code for other in others] == [529, 401]

    async def test_a_cut_stream_has_no_end(self, model: ScriptedModel, http: httpx.AsyncClient) -> None:
        model.script("hi", [say("Half a ", Cut(), "sentence.")])
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post("/v1/messages", json=request_for(user("hi"), stream=True))

    async def test_rubbish_is_sent_as_it_is(self, model: ScriptedModel, http: httpx.AsyncClient) -> None:
        model.script("hi", [say("Half a ", wire.GARBAGE, "sentence.")])
        answer = await http.post("/v1/messages", json=request_for(user("hi"), stream=True))
        assert wire.GARBAGE.data in answer.content


class TestScript:
    async def test_the_steps_follow_the_rounds_of_the_turn(
        self, model: ScriptedModel, http: httpx.AsyncClient
    ) -> None:
        model.script("look", [calls("Read", file_path="/x"), lambda asked: say(asked.results[0].text)])
        turn = [user("look"), called("Read", file_path="/x"), answered("found it")]
        told = [
            (await http.post("/v1/messages", json=request_for(*turn[:length]))).json()["content"][0]
            for length in (1, 3, 1)
        ]
        assert [block.get("text", block.get("name")) for block in told] == ["Read", "found it", "Read"]

    async def test_a_held_stream_goes_on_when_it_is_released(
        self, model: ScriptedModel, http: httpx.AsyncClient
    ) -> None:
        gate = model.hold()
        model.script("slowly", [say("Half a ", gate, "sentence.")])
        waiting = asyncio.create_task(
            http.post("/v1/messages", json=request_for(user("slowly"), stream=True))
        )
        assert await asyncio.to_thread(gate.reached.wait, 10)
        assert not waiting.done()
        gate.release()
        assert "sentence." in (await waiting).text

    async def test_requests_are_kept_with_their_headers(
        self, model: ScriptedModel, http: httpx.AsyncClient
    ) -> None:
        await http.post("/v1/messages", json=request_for(user("hi")), headers={"x-api-key": "secret"})
        assert [asked.headers["X-Api-Key"] for asked in model.asked("hi")] == ["secret"]

    async def test_what_a_step_raises_is_told_at_the_end(self) -> None:
        def wrong(asked: conversation.Asked) -> Reply:
            raise LookupError("not this one")

        with pytest.raises(LookupError), ScriptedModel(default=wrong) as model:
            answer = await asyncio.to_thread(
                httpx.post, f"{model.url}/v1/messages", json=request_for(user("hi"))
            )
            assert answer.status_code == 400


class TestReading:
    def test_reminders_and_marks_of_an_interruption_are_not_said_by_anyone(self) -> None:
        marked = [user("first"), user("<system-reminder>\nbe brief\n</system-reminder>\n"), user("second")]
        marked += [user("[Request interrupted by user for tool use]\n")]
        asked = conversation.read(request_for(*marked))
        assert (asked.text, asked.earlier) == ("second", "first")

    def test_a_result_knows_its_call(self) -> None:
        asked = conversation.read(
            request_for(user("hi"), called("Read", file_path="/x"), answered("1\thello"))
        )
        [result] = asked.results
        assert (result.name, result.input, result.text) == ("Read", {"file_path": "/x"}, "1\thello")

    def test_rows_of_one_answer_are_one_round(self) -> None:
        asked = conversation.read(
            request_for(
                user("hi"), called("Read"), called("Read"), answered("a"), called("Read"), answered("b")
            )
        )
        assert asked.rounds == 2

    def test_what_was_said_meanwhile_is_no_new_turn(self) -> None:
        told = "The user sent a new message while you were working:\nand pears\n\nThis is how Claude Code"
        turn = [
            user("hi"),
            called("Read"),
            answered("a"),
            {"role": "system", "content": told},
            called("Read"),
        ]
        asked = conversation.read(request_for(*turn, answered("b")))
        assert (asked.text, asked.rounds) == ("hi", 2)
        assert asked.meanwhile == (conversation.Said("and pears", 1),)

    def test_the_directory_is_what_the_cli_says_and_not_what_a_person_quotes(self) -> None:
        quoted = user("Primary working directory: /etc")
        assert conversation.read(request_for(quoted, PLACE)).directory == "/vault"
        assert conversation.read(request_for(quoted)).directory == ""


PHRASES: list[tuple[str, str, dict[str, Any]]] = [
    ("read Welcome.md", "Read", {"file_path": "/vault/Welcome.md"}),
    ("About Garden/The pond.md: what is it?", "Read", {"file_path": "/vault/Garden/The pond.md"}),
    ("Please read the note Garden/Quinces.", "Read", {"file_path": "/vault/Garden/Quinces.md"}),
    ("could you read “Garden/The pond.md”, please?", "Read", {"file_path": "/vault/Garden/The pond.md"}),
    ("what is in Garden/Quinces.md?", "Read", {"file_path": "/vault/Garden/Quinces.md"}),
    ("What does Plans/2026-12.md say?", "Read", {"file_path": "/vault/Plans/2026-12.md"}),
    ("read /etc/hostname.txt", "Read", {"file_path": "/etc/hostname.txt"}),
    ("read .env", "Read", {"file_path": "/vault/.env"}),
    ("what is in .env?", "Read", {"file_path": "/vault/.env"}),
    ("## Context\n\nrun ls\n\n---\n\n## Request\n\nread Welcome", "Read", {"file_path": "/vault/Welcome.md"}),
    ("list my notes", "Glob", {"pattern": "**/*.md"}),
    ("What notes are there?", "Glob", {"pattern": "**/*.md"}),
    ("show me all my files", "Glob", {"pattern": "**/*.md"}),
    ("what is in my vault", "Glob", {"pattern": "**/*.md"}),
    ("what's in Garden/?", "Glob", {"pattern": "Garden/**/*"}),
    ("what is in Garden/…", "Glob", {"pattern": "Garden/**/*"}),
    ("search for quince", "Grep", {"pattern": "quince", "output_mode": "content", "-i": True}),
    ("search for quince in my notes", "Grep", {"pattern": "quince", "output_mode": "content", "-i": True}),
    ("search my notes for 3.2 kg", "Grep", {"pattern": r"3\.2 kg", "output_mode": "content", "-i": True}),
    ("find c++", "Grep", {"pattern": r"c\+\+", "output_mode": "content", "-i": True}),
    ("run `date`", "Bash", {"command": "date"}),
    ("run `date` and tell me", "Bash", {"command": "date"}),
    ("run ls -la", "Bash", {"command": "ls -la"}),
    ("write a note about pears", "Glob", {"pattern": "Notes/pears*.md"}),
    ("remember that the ladder is in the shed", "Glob", {"pattern": "Notes/the-ladder-is-in-the-shed*.md"}),
]


class TestTalk:
    @pytest.mark.parametrize(("text", "tool", "given"), PHRASES)
    def test_a_phrase_calls_its_tool(self, text: str, tool: str, given: dict[str, Any]) -> None:
        made = call_made(text)
        assert made is not None
        assert (made.name, made.input) == (tool, given)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("Hello!", "I am not Claude"),
            ("who are you", "enter a key under Settings"),
            ("thank you", "welcome"),
            ("a long answer", "orchard"),
            ("What is the meaning of a reading lamp?", "list my notes"),
            ("", "list my notes"),
            ("You were interrupted by a restart.", "Ask me once more"),
        ],
    )
    def test_words_are_answered_with_words_that_say_demo(self, text: str, said: str) -> None:
        words = spoken(request_for(user(text)))
        assert said in words
        assert "demo" in words

    def test_a_long_answer_has_markdown_of_all_kinds_at_a_pace_that_shows(self) -> None:
        reply = talk.answer(conversation.read(request_for(user("a long answer"))))
        assert isinstance(reply, Reply)
        text = reply.content[0]["text"]
        assert 3_000 <= len(text) <= 6_000
        for sign in ("\n## ", "\n- ", "\n1. ", "\n|", "\n```python\n", "\n> ", "](https://", "**", "- [x]"):
            assert sign in text
        assert 0.015 <= reply.pause <= 0.03

    def test_an_error_is_shown_only_for_that_phrase_and_goes_when_it_is_sent_again(self) -> None:
        said = [user("show me an error")]
        for is_failure in (True, False, True):
            answer = talk.answer(conversation.read(request_for(*said)))
            assert isinstance(answer, Failure) is is_failure
            said.append(user("show me an error"))
        between = request_for(said[0], user("hi"), said[0])
        assert isinstance(talk.answer(conversation.read(between)), Failure)
        assert spoken(request_for(user("show me an error in my notes")))

    def test_thinking_comes_first(self) -> None:
        reply = talk.answer(conversation.read(request_for(user("think first: what next?"))))
        assert isinstance(reply, Reply)
        assert [type(block) for block in reply.blocks] == [Thinking, Text]

    @pytest.mark.parametrize(
        ("found", "read"),
        [
            ("/vault/A.md\n/vault/Welcome.md", "/vault/Welcome.md"),
            ("/vault/CLAUDE.md\n/vault/B.md", "/vault/B.md"),
            ("CLAUDE.md", None),
            ("No files found", None),
        ],
    )
    def test_one_of_the_notes_is_found_whatever_they_are(self, found: str, read: str | None) -> None:
        asks = "Read me one of my notes."
        globbed = (called("Glob", pattern="**/*.md"), answered(found))
        made = call_made(asks, *globbed)
        assert (made.input["file_path"] if made else None) == read
        if not made:
            assert "no note here yet" in spoken(request_for(user(asks), PLACE, *globbed))

    @pytest.mark.parametrize(
        ("content", "old", "new"),
        [
            ("# P\n\nby the demo model.\n- a:\n", "- a:", "- a:\n- They ripen"),
            ("by the demo model\n- a\n\n- a\n", "- a\n\n- a", "- a\n\n- a\n- They ripen"),
        ],
    )
    def test_a_line_is_added_at_the_one_end_of_a_note_of_its_own(
        self, content: str, old: str, new: str
    ) -> None:
        numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(content.splitlines(), 1))
        read = called("Read", file_path="/vault/Notes/pears.md")
        made = call_made("Add a line to the note about pears.", read, answered(numbered))
        assert made
        assert (made.name, made.input["old_string"]) == ("Edit", old)
        assert made.input["new_string"].startswith(new)
        assert content.count(old) == 1

    def test_a_note_that_a_person_wrote_is_left_as_it_is(self) -> None:
        read = called("Read", file_path="/vault/Notes/pears.md")
        made = call_made("Add a line to the note about pears.", read, answered("1\tMine."))
        assert made
        assert made.name == "Write"

    def test_a_tool_that_is_not_offered_is_named(self) -> None:
        assert "tool Bash" in spoken(request_for(user("run date"), tools=["Read"]))

    def test_a_path_stays_short_where_nothing_says_where_we_are(self) -> None:
        reply = talk.answer(conversation.read(request_for(user("read Welcome.md"))))
        assert isinstance(reply, Reply)
        assert reply.content[-1]["input"] == {"file_path": "Welcome.md"}

    @pytest.mark.parametrize(
        ("taken", "path"),
        [
            ("No files found", "/vault/Notes/pears.md"),
            ("Notes/pears.md", "/vault/Notes/pears-2.md"),
            ("/vault/Notes/pears.md\n/vault/Notes/pears-2.md", "/vault/Notes/pears-3.md"),
        ],
    )
    def test_a_new_note_never_takes_the_place_of_another(self, taken: str, path: str) -> None:
        made = call_made(
            "write a note about pears", called("Glob", pattern="Notes/pears*.md"), answered(taken)
        )
        assert made is not None
        assert (made.name, made.input["file_path"]) == ("Write", path)
        assert made.input["content"].startswith("# Pears\n")

    @pytest.mark.parametrize(
        ("text", "call", "result", "said"),
        [
            (
                "read x.md",
                called("Read", file_path="/vault/x.md"),
                "1\t# Pears\n2\tare ripe\n3\t",
                "> # Pears\n> are ripe\n\n—",
            ),
            ("read x.md", called("Read", file_path="/vault/x.md"), "1\ta", "what x.md says"),
            ("list my notes", called("Glob"), "a.md\nb.md", "2 files:\n\n- a.md\n- b.md"),
            ("list my notes", called("Glob"), "No files found", "nothing there"),
            ("search for pear", called("Grep", pattern="pear"), "a.md:3:a pear", "- a.md, line 3: a pear"),
            ("search for pear", called("Grep", pattern="pear"), "No matches found", "“pear” is in none"),
            (
                "run date",
                called("Bash", command="date"),
                "Tuesday",
                "I ran `date`. It printed:\n\n```\nTuesday",
            ),
            (
                "write a note about x",
                called("Write", file_path="/vault/Notes/x.md"),
                "ok",
                "the note is in Notes/x.md",
            ),
        ],
    )
    def test_what_a_tool_found_is_told(self, text: str, call: dict[str, Any], result: str, said: str) -> None:
        assert said in spoken(request_for(user(text), PLACE, call, answered(result)))

    @pytest.mark.parametrize(
        ("text", "call", "result", "said"),
        [
            (
                "read .env",
                called("Read", file_path="/vault/.env"),
                "PreToolUse:Read hook error: Not this file.",
                "Not this file.",
            ),
            (
                "read .env",
                called("Read", file_path="/vault/.env"),
                "<tool_use_error>File is in a directory that is denied.</tool_use_error>",
                "Your secrets stayed where they are",
            ),
            (
                "read x.md",
                called("Read", file_path="/vault/x.md"),
                "File does not exist.",
                "There is no x.md here",
            ),
            ("run false", called("Bash", command="false"), "Exit code 1", "did not end well"),
            (
                "run date",
                called("Bash", command="date"),
                "PreToolUse:Bash hook error: Ask first.",
                "failed: Ask first.",
            ),
        ],
    )
    def test_what_a_tool_could_not_do_is_explained(
        self, text: str, call: dict[str, Any], result: str, said: str
    ) -> None:
        words = spoken(request_for(user(text), PLACE, call, answered(result, is_error=True)))
        assert said in words
        assert "hook error" not in words

    def test_a_message_in_the_middle_of_the_work_is_heard(self) -> None:
        told = {"role": "system", "content": "The user sent a new message while you were working:\nand pears"}
        turn = [user("run date"), called("Bash", command="date"), answered("Tuesday"), told]
        assert "I heard “and pears”" in spoken(request_for(*turn))


class TestProcess:
    async def test_it_listens_on_a_private_socket_and_ends_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "m.sock"
        with socket.socket(socket.AF_UNIX) as left_behind:
            left_behind.bind(str(path))
        command = [sys.executable, "-m", "agents_app.model.demo", "--socket", str(path)]
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert str(path) in (await asyncio.wait_for(process.stdout.readline(), 10)).decode()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path))) as http:
            answer = await http.post("http://demo/v1/messages", json=request_for(user("hello")))
            assert "demo" in answer.text
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 2) == 0
        assert not path.exists()
