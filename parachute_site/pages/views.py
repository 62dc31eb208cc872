from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from agents_app.model import chosen
from agents_app.model.demo.story import CHIPS
from agents_app.rights.allowed import allowed_model
from parachute_site.pages import casting, curator, family, reach
from parachute_site.pages.frame import LISTED, MOST_LISTED, caller_in, in_rail, news
from parachute_site.pages.sharing import sharing
from parachute_site.pages.telling import Telling, TurnTold
from parachute_site.pages.vault import Links
from parachute_site.policy import POLICY_OF_CHATS
from sessions_app import labels, reading
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import NotFound
from sessions_app.files import notes
from sessions_app.history.past import Past, past
from sessions_app.models import Session
from sessions_app.storable import storable

LONGEST_SEARCH = 200
LONGEST_PRIOR = 100_000  # characters of a chat that is gone on with
LONGEST_SAID = 500  # characters that a link may put into the field; they are sent by a person
FILTERS = {"tag": "labels__tag", "agent": "agent_slug", "workspace": "workspace__slug"}
TOLD_AT_ONCE = 20  # turns; older ones come when somebody looks for them


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def chats(request: HttpRequest) -> HttpResponse:
    return _rendered(request, _page(request))


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def chat(request: HttpRequest, session_id: UUID) -> HttpResponse:
    session = _visible(request, session_id)
    open_turns = reading.open_turns(session)
    follow_after = open_turns[0].opened_seq - 2 if open_turns else session.last_seq
    found = past(session, limit=TOLD_AT_ONCE, from_seq=follow_after)
    told = _told(request, session, found)
    opened = [TurnTold(str(turn.pk), turn.opened_seq, status=turn.status) for turn in open_turns]
    more = {
        "session": session,
        "turns": sorted([*told, *opened], key=lambda turn: turn.opened_seq),
        "before": found.before,
        "follow_after": follow_after,
    }
    return _rendered(request, {**_page(request, session), **more})


@never_cache
@login_required
@require_safe
def earlier(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The turns before those that the page has, as markup to put above them."""
    session = _visible(request, session_id)
    before = request.GET.get("before", "")
    if not before.isascii() or not before.isdigit() or len(before) > 9:
        return HttpResponseBadRequest("Say before which row.")
    found = past(session, limit=TOLD_AT_ONCE, before=int(before))
    return render(request, "turns.html", {"turns": _told(request, session, found), "before": found.before})


@never_cache
@login_required
@require_safe
def rail(request: HttpRequest) -> HttpResponse:
    """The list of chats, or of those in the archive, as markup; with words, those that have them, and with a
    tag behind a #, those that have it."""
    search = request.GET.get("search", "")[:LONGEST_SEARCH]
    exact = {column: storable(request.GET.get(name, "")) for name, column in FILTERS.items()}
    archived = "true" if "archived" in request.GET else "false"
    said = storable(search).strip()
    tag = " ".join(said.removeprefix("#").lower().split()) if said.startswith("#") else ""
    exact, words = ({**exact, "labels__tag": tag}, "") if tag else (exact, said)
    wanted = reading.SessionFilter(exact=exact, search=words, archived=archived, limit=_limit(request))
    told = in_rail(reading.page(caller_in(request), wanted))
    chosen = {"search": search, "tag": tag, "archived": archived == "true", "filtered": any(exact.values())}
    return render(request, "rail.html", {**told, **chosen})


def _limit(request: HttpRequest) -> int:
    given = request.GET.get("limit", "")
    is_number = given.isascii() and given.isdigit() and len(given) < 6
    return min(max(int(given), LISTED), MOST_LISTED) if is_number else LISTED


@never_cache
@login_required
@require_safe
def rail_filters(request: HttpRequest) -> HttpResponse:
    """By what the list can be made shorter, as markup: asked for when somebody opens it."""
    caller = caller_in(request)
    agents = Session.objects.visible_to(caller).order_by("agent_slug").values_list("agent_slug", flat=True)
    workspaces = Workspace.objects.visible_to(caller).filter(archived_at=None).order_by("name")
    tags = [(each["tag"], f"{each['tag']} ({each['count']})") for each in labels.tags_with_counts(caller)]
    choices = [
        ("tag", _("Tag"), tags),
        ("agent", _("Agent"), [(slug, slug) for slug in agents.distinct()]),
        ("workspace", _("Workspace"), [(each.slug, each.name) for each in workspaces]),
    ]
    return render(request, "rail_filters.html", {"choices": choices})


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """What waits for a person comes over the socket, and goes with its answer."""
    return _rendered(request, {**_page(request), "place": "inbox"}, "inbox.html")


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render(request, "403_csrf.html", status=403)


def _rendered(request: HttpRequest, context: dict[str, Any], page: str = "chat.html") -> HttpResponse:
    response = render(request, page, context)
    response.headers["Content-Security-Policy"] = POLICY_OF_CHATS
    return response


def _told(request: HttpRequest, session: Session, found: Past) -> list[TurnTold]:
    caller = caller_in(request)
    telling = Telling(
        session.vault_root,
        to_operator=caller.is_operator,
        reader=caller.username,
        links=Links(session.workspace.slug),
    )
    for turn_id, opened_seq in found.turns:
        telling.turn(str(turn_id)).opened_seq = opened_seq
    for event in found.events:
        telling.take(event)
    return [*telling.turns.values()]


def _visible(request: HttpRequest, session_id: UUID) -> Session:
    try:
        return reading.visible(caller_in(request), session_id)
    except NotFound as error:
        raise Http404 from error


def _first(writable: list[Workspace], wanted: str) -> Workspace | None:
    """The one that a link names, else the oldest."""
    named = [each for each in writable if each.slug == wanted]
    return next(iter(named or writable), None)


def _models(workspace: Workspace | None, session: Session | None) -> list[tuple[str, bool]]:
    """Each that may be chosen, and whether it is: one of a family may run that the list has no name for."""
    allowed = [*settings.PARACHUTE_MODELS]
    usual = allowed_model(None, workspace.default_model if workspace else "")
    chosen = session.model if session else usual
    return [(name, name == chosen) for name in dict.fromkeys([*allowed, usual, chosen])]


def _is_archived(caller: Caller, workspace: Workspace | None) -> bool:
    """That of a chat; without one, each in which they might say something."""
    if workspace is not None:
        return workspace.archived_at is not None
    return Workspace.objects.filter(caller.within("", MAY_WRITE)).exists()


def _prior(workspace: Workspace | None, path: str) -> notes.Place | None:
    """A chat in the vault that a new one goes on with: its last words count most."""
    if workspace is None or not path:
        return None
    with suppress(NotFound):
        place = notes.look(workspace, storable(path))
        if notes.is_old_chat(place) and place.text:
            return replace(place, text=place.text[-LONGEST_PRIOR:])
    return None


def _page(request: HttpRequest, session: Session | None = None) -> dict[str, Any]:
    wanted = request.GET
    caller, is_demo = caller_in(request), chosen.current().is_demo
    writable = list(Workspace.objects.filter(caller.within("", MAY_WRITE), archived_at=None).distinct())
    workspace = session.workspace if session else _first(writable, wanted.get("workspace", ""))
    return {
        **in_rail(reading.page(caller, reading.SessionFilter(exact={}, limit=LISTED))),
        "place": "chats",
        **news(caller),
        "is_demo": is_demo,
        "chips": CHIPS if is_demo else (),
        "models": _models(workspace, session),
        "agents": casting.choices(writable, workspace, session, wanted.get("agent", "")),
        "chosen_workspace": workspace,
        "trust_levels": reach.choices(caller, workspace, session) if workspace else [],
        "acting": reach.switch(caller, session),
        "sharing": sharing(caller, session, sorted(writable, key=lambda each: each != workspace)),
        **curator.chip(session),
        "family": family.about(caller, session),
        "workspaces": writable,
        "may_write": workspace in writable,
        "is_archived": _is_archived(caller, workspace),
        "say": storable(wanted.get("say", ""))[:LONGEST_SAID],
        "prior": _prior(workspace, wanted.get("prior", "")) if session is None else None,
        "is_member": bool(workspace) or Workspace.objects.visible_to(caller).exists(),
    }
