"""A program that uses the API of a running `up` with a key, as somebody's script would."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.processes.running import RunningUp

PATIENCE = 60.0
TERMINAL = {"done", "aborted", "error", "typed_error"}

Event = dict[str, Any]


class Program:
    def __init__(self, up: RunningUp) -> None:
        self.key = _key(up)
        self.http = httpx.Client(
            base_url=up.address, headers={"Authorization": f"Bearer {self.key}"}, timeout=PATIENCE
        )

    def post(self, message: str, **more: Any) -> dict[str, Any]:
        """Says something and does not wait: what was accepted."""
        answer = self.http.post(
            "/api/chat", json={"message": message, **more}, headers={"Prefer": "respond-async"}
        )
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def session(self, session_id: str) -> dict[str, Any]:
        return dict(self.http.get(f"/api/chat/{session_id}").raise_for_status().json())

    @contextmanager
    def following(self, session_id: str, after: int = 0) -> Iterator[Iterator[Event]]:
        path = f"/api/chat/{session_id}/events"
        with self.http.stream("GET", path, params={"after": after}) as answer:
            assert answer.status_code == 200
            yield (json.loads(line[5:]) for line in answer.iter_lines() if line.startswith("data:"))

    def until(self, session_id: str, wanted: Callable[[Event], bool], after: int = 0) -> list[Event]:
        """The events up to the first one that is wanted."""
        seen: list[Event] = []
        with self.following(session_id, after) as events:
            for event in events:
                seen.append(event)
                if wanted(event):
                    return seen
        raise AssertionError(f"The stream ended: {[event['type'] for event in seen]}")

    def finished(self, accepted: dict[str, Any]) -> list[Event]:
        """All events of a session up to the terminal one of this turn."""
        turn = accepted["turnId"]
        return self.until(accepted["sessionId"], lambda e: e["turnId"] == turn and e["type"] in TERMINAL)


def _key(up: RunningUp) -> str:
    """One that the first person makes, as in the page."""
    made = httpx.post(
        f"{up.address}/api/auth/keys",
        json={"name": "program"},
        cookies=up.cookies,
        headers={"X-CSRFToken": up.cookies["csrftoken"]},
        timeout=PATIENCE,
    )
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


def rows(events: list[Event]) -> list[Event]:
    return [event for event in events if event["seq"] is not None]


def of_type(events: list[Event], kind: str) -> list[Event]:
    return [event for event in rows(events) if event["type"] == kind]


def assert_no_gaps(events: list[Event]) -> None:
    assert [event["seq"] for event in rows(events)] == list(range(1, len(rows(events)) + 1))


def all_at_once(calls: list[Callable[[], None]]) -> None:
    """Runs each in a thread of its own; the first error is raised."""
    errors: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread of the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE * 2)
    if errors:
        raise errors[0]
