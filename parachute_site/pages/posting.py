from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

View = Callable[..., HttpResponse]


def posted_from(page: str) -> Callable[[View], View]:
    """For what a form of that page sends to. Whoever comes by another way, such as Enter in the address bar
    or by signing in again in between, gets the page."""

    def only(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            return view(request, *args, **kwargs) if request.method == "POST" else redirect(page)

        return answer

    return only
