"""The demo model's server with a script in place of its brain, for tests that drive the real CLI.

with ScriptedModel() as model:
    model.script("read it", [calls("Read", file_path="/v/x.md"), say("It says hello.")])
    gate = model.hold()
    model.script("slowly", [say("Half a ", gate, "sentence.")])
    ...  # point ANTHROPIC_BASE_URL at model.url
    assert gate.reached.wait(20)
    gate.release()
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from agents_app.model.demo import server
from agents_app.model.demo.conversation import Asked, Said
from agents_app.model.demo.wire import Failure, Reply, ToolUse, say

HELD_AT_MOST = 60.0

Answer = Reply | Failure
Step = Answer | Callable[[Asked], Answer]


class Gate:
    """Holds a stream where it stands: `reached` is set when one gets there, `release()` lets all go on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.reached = threading.Event()
        self._loop = loop
        self._open = asyncio.Event()

    def release(self) -> None:
        with contextlib.suppress(RuntimeError):  # the model has ended, and nobody waits
            self._loop.call_soon_threadsafe(self._open.set)

    async def happen(self) -> bytes:
        self.reached.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HELD_AT_MOST):
                await self._open.wait()
        return b""


class ScriptedModel:
    """A model on a free port of the loopback that answers by script.

    The answer follows from the request alone: the newest script whose key stands in the last thing that
    a person said, and of it the step whose number is how often the model has answered since. So a CLI
    that was started again goes on in the middle. What no script covers is answered with `default`.
    """

    def __init__(self, default: Step | None = None) -> None:
        self.url = ""
        self.requests: list[Asked] = []
        self.default = default or say("ok")
        self._scripts: list[tuple[str, Sequence[Step]]] = []
        self._errors: list[Exception] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def script(self, key: str, steps: Sequence[Step]) -> None:
        self._scripts.append((key, steps))

    def hold(self) -> Gate:
        return Gate(self._loop)

    def asked(self, key: str) -> list[Asked]:
        """The requests, so far, whose last words from a person hold the key."""
        return [asked for asked in self.requests if key in asked.text]

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise TimeoutError("The scripted model did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)
        if self._errors and error is None:
            raise self._errors[0]

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        runner = server.runner(self._answer)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        await self._ended.wait()
        await runner.cleanup()

    def _answer(self, asked: Asked) -> Answer:
        self.requests.append(asked)
        step = self._step(asked)
        try:
            return step(asked) if callable(step) else step
        except Exception as error:  # noqa: BLE001  told when the model is left; the CLI would try again for minutes
            self._errors.append(error)
            return Failure(400, "invalid_request_error", f"A step of the script raised {error!r}")

    def _step(self, asked: Asked) -> Step:
        """What was said while the model worked goes first, if there is a script for it."""
        for said in [*reversed(asked.meanwhile), Said(asked.text, asked.rounds)]:
            for key, steps in reversed(self._scripts):
                if key in said.text:
                    return steps[said.rounds] if said.rounds < len(steps) else self.default
        return self.default


def calls(name: str, before: str = "", **given: Any) -> Reply:
    """A reply that uses one tool, after a few words if there are any."""
    use = ToolUse(name, given)
    return Reply((*say(before).blocks, use) if before else (use,))


def in_turn(*answers: Step) -> Step:
    """A step that answers differently each time it is asked, and the last way for good: for retries.

    It counts requests, so unlike a plain step it does not survive a restart of the model.
    """
    waiting = list(answers)

    def step(asked: Asked) -> Answer:
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return answer(asked) if callable(answer) else answer

    return step
