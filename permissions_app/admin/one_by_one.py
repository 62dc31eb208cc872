from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import ngettext

from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.errors import ParachuteError

MOST_TOLD = 10


def each_of(
    console: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    rows: QuerySet[Any],
    act: Callable[[Caller, Any], object],
) -> int:
    """Does it for one row after the other, as whoever presses: for how many. Says why not for the others."""
    caller = caller_of_user(request.user)  # type: ignore[arg-type]
    done, refused = 0, list[str]()
    for row in rows:
        try:
            act(caller, row)
            done += 1
        except ParachuteError as error:
            refused.append(f"{row}: {error.message}")
    _tell(console, request, refused)
    return done


def _tell(console: "admin.ModelAdmin[Any]", request: HttpRequest, refused: list[str]) -> None:
    for why in refused[:MOST_TOLD]:
        console.message_user(request, why, messages.WARNING)
    if more := len(refused[MOST_TOLD:]):
        said = ngettext("%d more was refused.", "%d more were refused.", more)
        console.message_user(request, said % more, messages.WARNING)
