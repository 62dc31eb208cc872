"""Tools of our own: offered by the session, allowed by the gate, answered in the worker."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agents_app.runtimes.scripted import Use
from agents_app.tools import own
from agents_app.tools.own import OwnServer, OwnTool, ToolRefused
from sessions_app.models import Session
from tests.agents_app.engine import Engine

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}

ODD = {"error": {"code": "invalid", "message": "It is odd."}}


async def halve(arguments: Mapping[str, Any], use_id: str) -> Any:
    if arguments["number"] % 2:
        raise ToolRefused("invalid", "It is odd.")
    return {"half": 10 // (arguments["number"] // 2), "use": bool(use_id)}


def _maker(session: Session) -> OwnServer | None:
    return OwnServer("sums", (OwnTool("halve", "Halves.", NUMBER, halve),)) if session.title else None


@pytest.mark.parametrize(
    ("number", "is_error", "said"),
    [
        (4, False, {"half": 5, "use": True}),
        (3, True, {"error": {"code": "invalid", "message": "It is odd."}}),
    ],
)
async def test_it_answers_or_says_why_not(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, number: int, is_error: bool, said: Any
) -> None:
    monkeypatch.setattr(own, "makers", [_maker])
    engine.runtime.scripts["hi"] = [Use("mcp__sums__halve", {"number": number})]
    result = next(event for event in await engine.answer("hi") if event.type == "tool_result").payload
    assert (result["isError"], json.loads(result["content"])) == (is_error, said)


async def test_what_it_did_not_foresee_is_no_traceback(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(own, "makers", [_maker])
    engine.runtime.scripts["hi"] = [Use("mcp__sums__halve", {"number": 0})]
    result = next(event for event in await engine.answer("hi") if event.type == "tool_result").payload
    assert result["isError"] and "ZeroDivisionError" not in result["content"]
    assert "ZeroDivisionError" in caplog.text
