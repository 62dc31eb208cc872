"""Searching all that was said and written, as one types."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from parachute_site.pages.frame import caller_in, framed
from sessions_app.search.finding import Hit, Scope, Wish, find
from sessions_app.search.models import ContentType
from sessions_app.storable import storable

LONGEST = 200
MOST = 40
KINDS: dict[str, tuple[Promise, tuple[str, ...]]] = {
    "all": (_("All"), ()),
    "chats": (_("Chats"), (ContentType.SESSION,)),
    "notes": (_("Notes"), (ContentType.DOCUMENT, ContentType.JOURNAL)),
}


@dataclass(frozen=True)
class Piece:
    """Of an excerpt: a word that was looked for, or what stands between."""

    text: str
    is_marked: bool


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    found = {**_found(request), "kinds": [(name, label) for name, (label, _kinds) in KINDS.items()]}
    return framed(request, "search.html", {"heading": _("Search"), **found}, place="search")


@never_cache
@login_required
@require_safe
def found(request: HttpRequest) -> HttpResponse:
    """What was found, as markup to put in its place."""
    return render(request, "search_found.html", _found(request))


def _found(request: HttpRequest) -> dict[str, object]:
    text = storable(request.GET.get("q", ""))[:LONGEST]
    kind = request.GET.get("kind", "all")
    kind = kind if kind in KINDS else "all"
    hits = find(Scope.of_caller(caller_in(request)), Wish(text, kinds=KINDS[kind][1], limit=MOST))
    return {"q": text, "kind": kind, "hits": [(hit, pieces(hit)) for hit in hits]}


def pieces(hit: Hit) -> list[Piece]:
    cut: list[Piece] = []
    at = 0
    for start, end in hit.marks:
        cut += [Piece(hit.excerpt[at:start], is_marked=False), Piece(hit.excerpt[start:end], is_marked=True)]
        at = end
    return [piece for piece in (*cut, Piece(hit.excerpt[at:], is_marked=False)) if piece.text]
