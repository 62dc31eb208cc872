"""Each way in which a turn of the real CLI can fail: what a person is told, how soon, and what is left."""

import asyncio
import errno
import json
import os
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web

from agents_app.errors import KINDS, AgentError
from agents_app.model.demo import wire
from agents_app.model.demo.wire import Failure, say
from agents_app.model.door import Door
from agents_app.model.endpoint import ModelEndpoint
from agents_app.runtimes.base import Run, RunFailed
from agents_app.runtimes.claude import options, process
from agents_app.runtimes.claude.runtime import ClaudeRuntime
from agents_app.runtimes.events import Ended, RuntimeEvent, Said, Warned
from agents_app.sandboxes import bubblewrap, vaults
from agents_app.sandboxes.base import CannotConfine, VaultChanged
from agents_app.sandboxes.checks import CHANGED
from permissions_app.rules.setting import Trust
from sessions_app.history import transcripts
from tests.contracts.stage import KEY, PATIENCE, Stage, sandbox_that_runs
from tests.depth import few_of

SOON = 30.0  # seconds, on a busy machine; each of these takes one or two
SILENCE = 0.6

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

USAGE = {"input_tokens": 1, "output_tokens": 1}
START = wire.event("message_start", message=wire.as_message(say(), USAGE) | {"content": []})
TEXT = wire.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
HALF = wire.event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Half a "})
TOOL = wire.event(
    "content_block_start",
    index=0,
    content_block={"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
)
HALF_INPUT = wire.event(
    "content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '{"file_pa'}
)
MID_TEXT, MID_TOOL = START + TEXT + HALF, START + TOOL + HALF_INPUT


async def well(request: web.BaseRequest) -> web.StreamResponse:
    if not json.loads(await request.read()).get("stream"):
        return web.json_response(wire.as_message(say("Well."), USAGE))
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    async for piece in wire.as_events(say("Well."), USAGE):
        await response.write(piece)
    return response


def fails(status: int, kind: str = "api_error", message: str = "It says so.", **headers: str) -> Handler:
    body = wire.error_body(Failure(status, kind, message))
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=named)

    return handle


def answers(body: str, kind: str, status: int = 200) -> Handler:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=body, content_type=kind, status=status)

    return handle


def streams(data: bytes, then: Callable[[web.BaseRequest], Awaitable[Any]] | None = None) -> Handler:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(data)
        if then:
            await then(request)
        return response

    return handle


async def cut(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport
    request.transport.abort()
    return web.Response()


async def silence(request: web.BaseRequest) -> web.StreamResponse:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def in_turn(*handlers: Handler) -> Handler:
    """Each once, and the last for good."""
    waiting = list(handlers)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(request)

    return handle


@dataclass
class Model:
    """What stands where the model should be."""

    url: str = ""
    answer: Handler = well
    requests: int = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        await request.read()
        return await self.answer(request)


@asynccontextmanager
async def serving() -> AsyncIterator[Model]:
    model = Model()
    server = web.Server(model.handle, handler_cancellation=True, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield model
    finally:
        await runner.cleanup()


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with serving() as model:
        yield model


@dataclass
class Listening:
    """A run of which somebody else hears the first warning too."""

    run: Run
    has_heard_warning: asyncio.Event

    async def events(self) -> AsyncGenerator[RuntimeEvent]:
        async for event in self.run.events():
            if isinstance(event, Warned):
                self.has_heard_warning.set()
            yield event

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)


class Hall(Stage):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.has_heard_warning = asyncio.Event()

    async def _hear(self, run: Run, heard: list[RuntimeEvent]) -> None:
        listening: Any = Listening(run, self.has_heard_warning)
        await super()._hear(listening, heard)


@asynccontextmanager
async def door_to(upstream: ModelEndpoint, **limits: float) -> AsyncIterator[Door]:
    # Not in tmp_path: the path of a unix socket ends at 108 bytes.
    with tempfile.TemporaryDirectory(prefix="door") as folder:
        door = Door(Path(folder) / "door.sock", upstream, **limits)
        await door.open()
        try:
            yield door
        finally:
            await door.close()


@dataclass
class Place:
    vault: Path
    stack: AsyncExitStack
    settings: Any
    url: str
    header: tuple[str, str] | None = field(default=("x-api-key", KEY), repr=False)

    async def hall(self, *, retries: int = 0, sandbox: str = "none", **limits: float) -> Hall:
        """`retries` is how often the CLI itself would try again."""
        self.settings.PARACHUTE_AGENT_ENVIRONMENT |= {"CLAUDE_CODE_MAX_RETRIES": str(retries)}
        door = await self.stack.enter_async_context(door_to(ModelEndpoint(self.url, self.header), **limits))
        wall = sandbox_that_runs(sandbox)
        trust = Trust.VAULT if wall.is_wall else Trust.FULL
        runtime: Any = ClaudeRuntime(door, most_warm=0)
        return Hall(runtime, wall, self.vault, Path(self.settings.PARACHUTE_HOME), trust)


@pytest.fixture
async def place(vault: Path, settings: Any, model: Model) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        yield Place(vault, stack, settings, model.url)


Case = Callable[[Place, Model], Awaitable[None]]
BesideEachOther = Callable[..., Awaitable[None]]


@pytest.fixture
def beside_each_other(tmp_path: Path, settings: Any, subtests: pytest.Subtests) -> BesideEachOther:
    """Runs cases that mostly wait, each in a place of its own, and reports each. How often the CLI tries
    again is a setting, so all of them want the same."""

    async def alone(case: Case) -> None:
        vault = tmp_path / case.__name__
        vault.mkdir()
        async with serving() as model, AsyncExitStack() as stack:
            await case(Place(vault, stack, settings, model.url), model)

    async def run(*cases: Case) -> None:
        ends = await asyncio.gather(*map(alone, cases), return_exceptions=True)
        for case, error in zip(cases, ends, strict=True):
            with subtests.test(case.__name__):
                if error is not None:
                    raise error

    return run


async def failure(hall: Hall, **more: Any) -> AgentError:
    """How the turn fails: soon, in words for a person, and leaving nothing behind."""
    began = time.monotonic()
    with pytest.raises(AgentError) as raised:
        await hall.play("Please answer.", **more)
    assert time.monotonic() - began < SOON
    said = raised.value.as_payload()
    kind = KINDS[said["code"]]
    assert (said["title"], said["canRetry"]) == (kind.title, kind.can_retry)
    assert said["message"].endswith(kind.remedy)
    assert len(raised.value.message.split()) > 4
    assert len(said["message"]) < 700
    door = hall.runtime._door  # type: ignore[attr-defined]
    secrets = ("door.invalid", str(door.socket), KEY, "Traceback", "sk-")
    assert not [word for word in secrets if word in str(said)]
    assert processes_in(hall.vault) == []
    assert door._issued == {}
    return raised.value


async def answer(hall: Hall) -> str:
    """The next message of the same session, which goes on where its transcript ends."""
    written = transcripts.raw(hall.session_id) or b""
    heard = await hall.play("And now?", resume=transcripts.holds(written, hall.requests[0].message_id))
    assert isinstance(heard[-1], Ended)
    return heard[-1].response


def processes_in(vault: Path) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            inside = Path(f"/proc/{name}/cwd").readlink().is_relative_to(vault)
            state = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
        if inside and state not in "ZX":
            found.append(int(name))
    return found


CREDIT = "Your credit balance is too low to access the API. Please go to Plans & Billing."
TOO_LONG = "prompt is too long: 212345 tokens > 200000 maximum"

REFUSALS = {
    "a wrong key": (fails(401, "authentication_error", "invalid x-api-key"), "invalid_api_key"),
    "a key without the right": (fails(403, "permission_error", "Not for you."), "invalid_api_key"),
    "no plan": (fails(402, "billing_error", "Pay first."), "billing_error"),
    "no credit": (fails(400, "invalid_request_error", CREDIT), "billing_error"),
    "an unknown model": (fails(404, "not_found_error", "model: sonnet"), "model_not_allowed"),
    "a long prompt": (fails(400, "invalid_request_error", TOO_LONG), "context_exceeded"),
    "a large request": (fails(413, "request_too_large", "Too large."), "context_exceeded"),
    "another 400": (fails(400, "invalid_request_error", f"messages.0: no ({KEY})"), "unknown_error"),
    "too many requests": (fails(429, "rate_limit_error"), "rate_limited"),
    "500": (fails(500), "unknown_error"),
    "502": (answers("<html>Bad gateway</html>", "text/html", 502), "network_error"),
    "503": (fails(503), "overloaded"),
    "529": (fails(529, "overloaded_error", "Overloaded"), "overloaded"),
    "a redirect": (fails(307, location="/elsewhere"), "network_error"),
}

GARBAGE = {
    "words": answers("hello", "text/plain"),
    "a page": answers("<html><body>Please log in to the Wi-Fi.</body></html>", "text/html"),
    "an empty stream": streams(b""),
    "other JSON": answers(json.dumps({"hello": "there"}), "application/json"),
    "a stream of something else": streams(b'event: chat\ndata: {"a": 1}\n\n'),
    "half JSON in a stream": streams(MID_TEXT + b"event: content_block_delta\ndata: {not json\n\n"),
    "a stream without an end": streams(MID_TEXT),
}

BROKEN = {
    "before the first byte": cut,
    "at the start": streams(START, cut),
    "in mid text": streams(MID_TEXT, cut),
    "in mid input of a tool": streams(MID_TOOL, cut),
}


class TestTheModel:
    @pytest.mark.parametrize("why", few_of(REFUSALS, "a wrong key", "529"))
    async def test_each_refusal_has_its_code(self, place: Place, model: Model, why: str) -> None:
        hall = await place.hall()
        model.answer, code = REFUSALS[why]
        assert (await failure(hall)).code == code
        model.answer = well
        assert await answer(hall) == "Well."

    @pytest.mark.parametrize("what", few_of(GARBAGE, "a page"))
    async def test_garbage_is_not_taken_for_an_answer(self, place: Place, model: Model, what: str) -> None:
        hall = await place.hall()
        model.answer = GARBAGE[what]
        failed = await failure(hall)
        assert (failed.code, "ANTHROPIC_BASE_URL" in failed.message) == ("network_error", True)

    @pytest.mark.parametrize("where", few_of(BROKEN, "in mid text"))
    async def test_an_answer_that_breaks_off_is_the_network(
        self, place: Place, model: Model, where: str
    ) -> None:
        hall = await place.hall()
        model.answer = BROKEN[where]
        assert (await failure(hall)).code == "network_error"
        model.answer = well
        assert await answer(hall) == "Well."

    async def test_what_broke_off_is_asked_for_again(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=2)
        model.answer = in_turn(BROKEN["in mid text"], GARBAGE["half JSON in a stream"], well)
        heard = await hall.play("Please answer.")
        assert [event.content for event in heard if isinstance(event, Said)][-1] == "Well."

    async def test_an_overload_in_a_stream_is_one(self, place: Place, model: Model) -> None:
        hall = await place.hall()
        error = wire.event("error", error={"type": "overloaded_error", "message": "Overloaded"})
        model.answer = in_turn(streams(MID_TEXT + error), fails(529, "overloaded_error", "Overloaded"))
        assert (await failure(hall)).code == "overloaded"

    async def test_a_stored_key_that_cannot_be_read_is_told_with_what_to_do(self, place: Place) -> None:
        hall = await place.hall()
        door = hall.runtime._door  # type: ignore[attr-defined]
        await door.lead_to(replace(door.upstream, problem="SECRET_KEY is another one. Enter it again."))
        failed = await failure(hall)
        assert failed.code == "no_credentials"
        assert "SECRET_KEY is another one." in failed.message

    async def test_without_a_key_it_says_that_there_is_none(self, place: Place, model: Model) -> None:
        place.header = None
        model.answer = REFUSALS["a wrong key"][0]
        failed = await failure(await place.hall())
        assert (failed.code, "enters one under Settings" in failed.as_payload()["message"]) == (
            "no_credentials",
            True,
        )
        assert model.requests == 1

    async def test_a_key_that_is_repeated_is_told_to_nobody(self, place: Place, model: Model) -> None:
        hall = await place.hall()
        model.answer = fails(403, "permission_error", f"The key {KEY} is known here, and is not good.")
        assert KEY not in (await failure(hall)).message
        written = [file.read_text() for file in hall.config.rglob("*.jsonl")]
        assert any("is known here" in text for text in written)
        assert not any(KEY in text for text in written)


class TestTooManyRequests:
    async def test_each_wait(self, beside_each_other: BesideEachOther) -> None:
        await beside_each_other(
            self.a_short_one_is_waited_for_and_told,
            self.a_long_one_ends_the_turn_and_is_told,
            self.one_until_an_hour_is_one_too,
            self.short_ones_end_too,
        )

    async def a_short_one_is_waited_for_and_told(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10)
        model.answer = in_turn(fails(429, "rate_limit_error", retry_after="1"), well)
        heard = await hall.play("Please answer.")
        (warned,) = [event for event in heard if isinstance(event, Warned)]
        assert (warned.code, "no more requests" in warned.message) == ("api_retry", True)
        assert model.requests == 2
        assert isinstance(heard[-1], Ended)

    async def a_long_one_ends_the_turn_and_is_told(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10)
        model.answer = fails(429, "rate_limit_error", retry_after="3600")
        failed = await failure(hall)
        assert (failed.code, failed.as_payload()["retryDelayMs"]) == ("rate_limited", 3_600_000)
        assert "again in 60 minutes" in failed.message
        model.answer = well
        assert await answer(hall) == "Well."

    async def one_until_an_hour_is_one_too(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10)
        later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        model.answer = fails(429, "rate_limit_error", retry_after=later)
        delay = (await failure(hall)).as_payload()["retryDelayMs"]
        assert 3_500_000 < delay <= 3_600_000

    async def short_ones_end_too(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10, patience=3.9)
        model.answer = fails(429, "rate_limit_error", retry_after="2")
        failed = await failure(hall)
        assert (failed.code, failed.as_payload()["retryDelayMs"]) == ("rate_limited", 2000)
        assert model.requests == 2


class TestSilence:
    async def test_each_silence(self, beside_each_other: BesideEachOther) -> None:
        await beside_each_other(
            self.a_model_that_never_answers_is_overloaded,
            self.one_that_stops_in_mid_text_is_the_network,
            self.one_that_stops_in_mid_input_of_a_tool_is_the_network,
            self.one_that_comes_to_itself_is_waited_for,
            self.it_can_be_stopped_meanwhile,
        )

    async def a_model_that_never_answers_is_overloaded(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10, silence=SILENCE, patience=SILENCE * 2)
        model.answer = silence
        assert (await failure(hall)).code == "overloaded"
        assert model.requests < 4
        model.answer = well
        assert await answer(hall) == "Well."

    async def one_that_stops_in_mid_text_is_the_network(self, place: Place, model: Model) -> None:
        await self.stops_after(MID_TEXT, place, model)

    async def one_that_stops_in_mid_input_of_a_tool_is_the_network(self, place: Place, model: Model) -> None:
        await self.stops_after(MID_TOOL, place, model)

    async def stops_after(self, begun: bytes, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10, silence=SILENCE, patience=SILENCE * 2)
        model.answer = streams(begun, silence)
        assert (await failure(hall)).code == "network_error"
        model.answer = well
        assert await answer(hall) == "Well."

    async def one_that_comes_to_itself_is_waited_for(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10, silence=SILENCE)
        model.answer = in_turn(silence, streams(MID_TEXT, silence), well)
        heard = await hall.play("Please answer.")
        assert isinstance(heard[-1], Ended)
        assert len([event for event in heard if isinstance(event, Warned)]) >= 2

    async def it_can_be_stopped_meanwhile(self, place: Place, model: Model) -> None:
        hall = await place.hall(retries=10)
        model.answer = streams(MID_TEXT, silence)

        async def interrupt(run: Run) -> None:
            await hall.has_heard_text.wait()
            await run.interrupt()

        heard = await hall.play("Please answer.", interrupt)
        assert isinstance(heard[-1], Ended)
        assert heard[-1].interrupted


class TestNoNetwork:
    @pytest.fixture(autouse=True)
    def down(self, place: Place) -> None:
        place.url = "http://127.0.0.1:1"

    async def test_it_is_told_at_once_and_ends(self, place: Place) -> None:
        hall = await place.hall(retries=10, patience=1)
        heard: list[Warned] = []

        async def listens(run: Run) -> None:
            await hall.has_heard_warning.wait()
            heard.append(Warned("heard", "", ""))

        failed = await failure(hall, meanwhile=listens)
        assert (failed.code, len(heard)) == ("network_error", 1)

    async def test_it_can_be_stopped_while_the_cli_tries_again(self, place: Place) -> None:
        hall = await place.hall(retries=10)

        async def interrupt(run: Run) -> None:
            await hall.has_heard_warning.wait()
            await run.interrupt()

        began = time.monotonic()
        heard = await hall.play("Please answer.", interrupt)
        assert isinstance(heard[-1], Ended)
        assert heard[-1].interrupted
        assert time.monotonic() - began < SOON
        warned = next(event for event in heard if isinstance(event, Warned))
        assert "connection to the model" in warned.message

    async def test_a_name_that_nobody_knows_is_the_same(self, place: Place) -> None:
        place.url = "http://model.invalid"
        assert (await failure(await place.hall())).code == "network_error"

    async def test_the_session_goes_on_when_it_is_back(self, place: Place, model: Model) -> None:
        hall = await place.hall()
        await failure(hall)
        place.url = model.url
        hall.runtime = (await place.hall()).runtime
        assert await answer(hall) == "Well."


class TestTheProgram:
    BROKEN = {
        "missing": (None, "cli_missing"),
        "not to be run": ("", "cli_missing"),
        "crashing at its start": ("echo Traceback: sk-ant-1 at once >&2; exit 3", "cli_crashed"),
        "talking nonsense": ("echo nonsense; echo '{half of'; cat > /dev/null", "cli_crashed"),
        "ending without a word": ("exit 0", "cli_crashed"),
        "without a word": ("cat > /dev/null", "cli_crashed"),
    }

    @pytest.mark.parametrize("how", few_of(BROKEN, "missing", "crashing at its start"))
    async def test_each_way_to_be_broken_has_its_code(
        self, place: Place, model: Model, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script, code = self.BROKEN[how]
        program = tmp_path / "program"
        if script is not None:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755 if script else 0o644)
        hall = await place.hall()
        with monkeypatch.context() as patch:
            patch.setattr(options, "CLI", program)
            patch.setattr(process, "STARTS_WITHIN", 1.0)
            assert (await failure(hall)).code == code
        assert await answer(hall) == "Well."

    async def test_behind_a_wall_a_missing_one_is_missing_too(
        self, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(options, "CLI", tmp_path / "program")
        assert (await failure(await place.hall(sandbox="bubblewrap"))).code == "cli_missing"

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
    async def test_one_that_is_killed_in_mid_turn_is_a_crash(
        self, place: Place, model: Model, number: signal.Signals
    ) -> None:
        hall = await place.hall()
        model.answer = streams(MID_TEXT, silence)

        async def kill(run: Run) -> None:
            async with asyncio.timeout(PATIENCE):
                await hall.has_heard_text.wait()
            for pid in processes_in(hall.vault):
                os.kill(pid, number)

        failed = await failure(hall, meanwhile=kill)
        assert isinstance(failed, RunFailed)
        assert failed.code == "cli_crashed"
        model.answer = well
        assert await answer(hall) == "Well."

    async def test_a_place_that_cannot_be_walled_is_said(self, place: Place) -> None:
        place.vault = Path("/usr")
        with pytest.raises(AgentError) as raised:
            await (await place.hall(sandbox="bubblewrap")).play("hi")
        assert raised.value.code == "sandbox_unavailable"

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (OSError(errno.EIO, "the disk says no"), "sandbox_unavailable"),
            (CannotConfine("Not here: the disk says no."), "sandbox_unavailable"),
            (VaultChanged("Not now: the disk says no."), "cli_crashed"),
        ],
    )
    async def test_what_happens_while_a_wall_is_built_is_said(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
    ) -> None:
        hall = await place.hall(sandbox="bubblewrap")
        with monkeypatch.context() as patch:
            patch.setattr(vaults, "look_through", Mock(side_effect=error))
            failed = await failure(hall)
        assert failed.code == code
        assert "the disk says no" in failed.message
        assert await answer(hall) == "Well."

    @pytest.mark.parametrize("where", ["while it is looked through", "when it is walled"])
    async def test_a_vault_that_changed_in_the_moment_of_a_start_is_tried_again(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, where: str
    ) -> None:
        hall = await place.hall(sandbox="bubblewrap")
        first: list[Any] = ["not yet"]

        def changed_once(real: Callable[..., Any], *given: Any, **more: Any) -> Any:
            if not first:
                return real(*given, **more)
            first.clear()
            if where == "when it is walled":
                return ("/bin/sh", "-c", f"echo '{CHANGED}' >&2; exit 1")
            raise VaultChanged("Not now.")

        module, name = (bubblewrap, "checked") if where == "when it is walled" else (vaults, "look_through")
        monkeypatch.setattr(module, name, partial(changed_once, getattr(module, name)))
        heard = await hall.play("Please answer.")
        assert isinstance(heard[-1], Ended) and heard[-1].response == "Well."
        assert first == []
