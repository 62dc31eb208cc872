"""How the pages keep to the limits on wrong passwords and links."""

from datetime import datetime
from math import ceil
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import ngettext

from sessions_app.access.services import Limit, give_back, take_try
from sessions_app.errors import RateLimited


class Tries:
    def __init__(self, taken: list[tuple[Limit, str]]) -> None:
        self._taken = taken

    def were_right(self) -> None:
        for limit, what in self._taken:
            give_back(limit, what)


def take_tries(request: HttpRequest, limit: Limit, what: str) -> Tries:
    """One try of this subject and one of the address are gone, unless they were right.

    The address comes first: who has used up its tries can not use up those of a name as well.
    """
    taken: list[tuple[Limit, str]] = []
    for each in ((Limit.ADDRESS, request.META.get("REMOTE_ADDR") or ""), (limit, what)):
        if (until := take_try(*each)) is not None:
            raise is_over(until)
        taken.append(each)
    return Tries(taken)


def is_over(until: datetime) -> RateLimited:
    seconds = max(1, ceil((until - timezone.now()).total_seconds()))
    minutes = ceil(seconds / 60)
    said = ngettext(
        "There were too many wrong tries. Try again in %(n)d minute, or make a link with “make signin”.",
        "There were too many wrong tries. Try again in %(n)d minutes, or make a link with “make signin”.",
        minutes,
    )
    return RateLimited(said % {"n": minutes}, retryAfter=seconds)


def too_many(
    request: HttpRequest, template: str, error: RateLimited, more: dict[str, Any] | None = None
) -> HttpResponse:
    answer = render(request, template, {**(more or {}), "error": error.message}, status=error.status)
    return until_then(answer, error)


def until_then(answer: HttpResponse, error: RateLimited) -> HttpResponse:
    answer["Retry-After"] = str(error.details["retryAfter"])
    return answer
