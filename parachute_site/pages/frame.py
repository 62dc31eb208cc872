"""The frame of a page beside the chat: the rail with the newest chats, and where one is."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agents_app.orchestration.shares import count_needing
from bots_app import reading as bots
from parachute_site.policy import POLICY_OF_CHATS
from sessions_app import reading
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace
from sessions_app.access.services import caller_of_user

LISTED = 50
MOST_LISTED = 1_000  # as one scrolls; what is older is found by its words


def framed(
    request: HttpRequest, template: str, context: dict[str, Any], *, place: str, status: int = 200
) -> HttpResponse:
    """`place` is the one of the rail's that is shown; `heading` in the context is the page's name."""
    whole = {**in_frame(caller_in(request)), "place": place, **context}
    response = render(request, template, whole, status=status)
    response.headers["Content-Security-Policy"] = POLICY_OF_CHATS
    return response


def in_frame(caller: Caller) -> dict[str, Any]:
    page = reading.page(caller, reading.SessionFilter(exact={}, limit=LISTED))
    may_start = Workspace.objects.filter(caller.within("", MAY_WRITE)).exists()
    return {**in_rail(page), **news(caller), "may_start": may_start}


def news(caller: Caller) -> dict[str, Any]:
    """What waits for somebody at the places of the rail, but for the inbox, which the stream counts."""
    return {"shares_needing": count_needing(caller), "knocking": bots.count(caller)}


def in_rail(page: reading.Page) -> dict[str, Any]:
    listed = len(page.sessions)
    return {"sessions": page.sessions, "more": page.total - listed, "is_all": listed >= MOST_LISTED}


def caller_in(request: HttpRequest) -> Caller:
    assert isinstance(request.user, User)
    return caller_of_user(request.user)
