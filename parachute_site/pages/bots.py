"""Bots: how they are, who knocks, who is let in, and one's own account."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bots_app import reading
from bots_app.models import Bot, BotState, BotUser, PairingRequest, PairingStatus, PlatformName
from bots_app.services import bots, changing, linking, pairing, revoking, saying
from bots_app.services.owners import owned_by
from bots_app.services.places import usual_trust
from bots_app.suspicion import looks_like_orders
from parachute_site.pages.bot_forms import LEVELS, ApproveForm, ChangeForm
from parachute_site.pages.frame import caller_in, framed
from parachute_site.pages.reach import NAMES
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.errors import NotFound, ParachuteError

DOTS = {BotState.RUNNING: "good", BotState.FAILED: "bad", BotState.RECONNECTING: "need"}
ORDERS = {"start": bots.start, "stop": bots.stop, "test": bots.ask_for_test}


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    return framed(request, "bots/list.html", _listed(caller_in(request), "", ""), place="bots")


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def platform(request: HttpRequest, platform: str) -> HttpResponse:
    return _platform_page(request, platform)


@sensitive_post_parameters("token")
@never_cache
@login_required
@require_POST
def token(request: HttpRequest, platform: str) -> HttpResponse:
    given = "" if "remove" in request.POST else request.POST.get("token", "")
    if not given and "remove" not in request.POST:
        return _platform_page(request, platform, status=422, error=_("Enter the token first."))
    said = _("The token is kept. It is tried now.") if given else _("The token is removed.")
    return _done(
        request,
        lambda: bots.save_token(caller_in(request), platform, given),
        said,
        lambda **how: _platform_page(request, platform, **how),
    )


@never_cache
@login_required
@require_POST
def order(request: HttpRequest, platform: str, order: str) -> HttpResponse:
    if order not in ORDERS:
        raise Http404(order)
    said = {"start": _("It is started."), "stop": _("It is stopped."), "test": ""}[order]
    return _done(
        request,
        lambda: ORDERS[order](caller_in(request), platform),
        said,
        lambda **how: _platform_page(request, platform, **how),
    )


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def knocking(request: HttpRequest, request_id: UUID) -> HttpResponse:
    return _request_page(request, request_id)


@never_cache
@login_required
@require_POST
def approve(request: HttpRequest, request_id: UUID) -> HttpResponse:
    caller = caller_in(request)
    form = ApproveForm(request.POST, own=list(owned_by(caller)))
    if not form.is_valid():
        return _request_page(request, request_id, status=422, form=form)
    return _done(
        request,
        lambda: pairing.approve(caller, request_id, form.approval()),
        _("They are let in, and are being answered."),
        lambda **how: _request_page(request, request_id, form=form, **how),
    )


@never_cache
@login_required
@require_POST
def deny(request: HttpRequest, request_id: UUID) -> HttpResponse:
    return _done(
        request,
        lambda: pairing.deny(caller_in(request), request_id),
        _("They are turned away."),
        lambda **how: _request_page(request, request_id, **how),
    )


@never_cache
@login_required
@require_safe
def person(request: HttpRequest, user_id: int) -> HttpResponse:
    return _person_page(request, user_id)


@never_cache
@login_required
@require_POST
def change(request: HttpRequest, user_id: int) -> HttpResponse:
    caller = caller_in(request)
    user = _found(caller, user_id)
    form = ChangeForm(request.POST, user=user)
    if not form.is_valid():
        return _person_page(request, user_id, status=422, form=form)
    return _done(
        request,
        lambda: changing.change(caller, user.platform, user.platform_user_id, form.wanted()),
        _("It counts from what they say next."),
        lambda **how: _person_page(request, user_id, form=form, **how),
        after=("bots-person", user_id),
    )


@never_cache
@login_required
@require_POST
def revoke(request: HttpRequest, user_id: int) -> HttpResponse:
    caller = caller_in(request)
    user = _found(caller, user_id)
    return _done(
        request,
        lambda: revoking.revoke(caller, user.platform, user.platform_user_id),
        _("They are out, and what ran for them is stopped."),
        lambda **how: _person_page(request, user_id, **how),
    )


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def group(request: HttpRequest, chat_id: int) -> HttpResponse:
    caller = caller_in(request)
    if request.method != "POST":
        return _group_page(request, chat_id)
    level = request.POST.get("trust_level", "")
    if level not in dict(LEVELS):
        return _group_page(request, chat_id, status=422, error=_("Choose what the group reaches."))
    return _done(
        request,
        lambda: pairing.change_group(caller, chat_id, level),
        _("It counts from what is said next."),
        lambda **how: _group_page(request, chat_id, **how),
        after=("bots-group", chat_id),
    )


@never_cache
@login_required
@require_POST
def link(request: HttpRequest) -> HttpResponse:
    """Answers with the page itself: the word would have to be kept on the way."""
    caller = caller_in(request)
    try:
        made = linking.make(caller)
    except ParachuteError as error:
        context = {**_listed(caller, "", ""), "error": error.message}
        return framed(request, "bots/list.html", context, place="bots", status=error.status)
    context = {**_listed(caller, "", ""), "made": made}
    return framed(request, "bots/list.html", context, place="bots", status=201)


@never_cache
@login_required
@require_POST
def unlink(request: HttpRequest, user_id: int) -> HttpResponse:
    caller = caller_in(request)
    for user in reading.linked(caller):
        if user.pk == user_id:
            revoking.put_out(user, caller_in(request))
            messages.success(request, _("The account is not yours here any more, and is not let in."))
    return redirect("bots")


@never_cache
@login_required
@require_POST
def again(request: HttpRequest, delivery_id: int) -> HttpResponse:
    for delivery in reading.undelivered(caller_in(request)):
        if delivery.pk == delivery_id and saying.again(delivery):
            messages.success(request, _("It is being sent again."))
    return redirect("bots")


def parts(caller: Caller, part: str, kind: str, chosen: str) -> tuple[str, dict[str, Any]]:
    """For the socket. What was chosen there and is gone is an empty place."""
    listed = _listed(caller, kind, chosen)
    if part == "bots":
        return "bots/rows.html", listed
    if part == "bot":
        return "bots/platform_sheets.html", {**listed, **_about_platform(caller, chosen)}
    try:
        return "bots/request_sheets.html", {**listed, **_about_request(caller, UUID(chosen), None)}
    except Http404 as error:
        raise NotFound from error


def _platform_page(request: HttpRequest, platform: str, status: int = 200, error: str = "") -> HttpResponse:
    if platform not in PlatformName.values:
        raise Http404(platform)
    caller = caller_in(request)
    context = {**_listed(caller, "platform", platform), **_about_platform(caller, platform), "error": error}
    return framed(request, "bots/platform.html", context, place="bots", status=status)


def _about_platform(caller: Caller, platform: str) -> dict[str, Any]:
    bot = bots.of(platform)
    state, problem = bots.state_of(bot)
    return {
        "bot": bot,
        "state": state,
        "problem": problem,
        "has_token": bots.has_token(bot),
        "set_by": bots.set_by(bot),
        "url": bots.url_of(bot),
        "is_testing": bot.test_asked is not None and bot.test_asked != bot.test_done,
    }


def _request_page(
    request: HttpRequest,
    request_id: UUID,
    status: int = 200,
    error: str = "",
    form: ApproveForm | None = None,
) -> HttpResponse:
    caller = caller_in(request)
    about = _about_request(caller, request_id, form)
    context = {**_listed(caller, "request", str(request_id)), **about, "error": error}
    return framed(request, "bots/request.html", context, place="bots", status=status)


def _about_request(caller: Caller, request_id: UUID, form: ApproveForm | None) -> dict[str, Any]:
    found = PairingRequest.objects.select_related("resolved_by", "chat").filter(pk=request_id).first()
    if found is None or not reading.may_decide(caller):
        raise Http404(request_id)
    own = list(owned_by(caller))
    first = {"trust_level": usual_trust(own[0]), "seen": max(len(found.messages), 1)}
    return {
        "asks": found,
        "is_pending": found.status == PairingStatus.PENDING,
        "said": [(each["text"], looks_like_orders(each["text"])) for each in found.messages],
        "form": form or ApproveForm(own=own, initial=first),
    }


def _person_page(
    request: HttpRequest, user_id: int, status: int = 200, error: str = "", form: ChangeForm | None = None
) -> HttpResponse:
    caller = caller_in(request)
    user = _found(caller, user_id)
    is_owner = owned_by(caller).filter(pk=user.workspace_id).exists()
    context = {
        **_listed(caller, "person", str(user_id)),
        "let_in": user,
        "trust": NAMES[TrustLevel(user.trust_level)],
        "form": (form or ChangeForm(user=user)) if is_owner else None,
        "error": error,
    }
    return framed(request, "bots/person.html", context, place="bots", status=status)


def _group_page(request: HttpRequest, chat_id: int, status: int = 200, error: str = "") -> HttpResponse:
    caller = caller_in(request)
    chat = next((each for each in reading.groups(caller) if each.pk == chat_id), None)
    if chat is None:
        raise Http404(chat_id)
    context = {**_listed(caller, "group", str(chat_id)), "group": chat, "levels": LEVELS, "error": error}
    return framed(request, "bots/group.html", context, place="bots", status=status)


def _found(caller: Caller, user_id: int) -> BotUser:
    user = reading.people(caller).filter(pk=user_id).first()
    if user is None:
        raise Http404(user_id)
    return user


def _listed(caller: Caller, kind: str, chosen: str) -> dict[str, Any]:
    may_decide = reading.may_decide(caller)
    platforms = reading.statuses(caller)
    return {
        "heading": _("Bots"),
        "kind": kind,
        "chosen": chosen,
        "platforms": [_row(bot) for bot in platforms],
        "has_bot": any(bots.has_token(bot) for bot in platforms),
        "requests": reading.requests(caller) if may_decide else [],
        "people": list(reading.people(caller)),
        "groups": reading.groups(caller),
        "unsent": reading.undelivered(caller),
        "linked": reading.linked(caller),
        "may_decide": may_decide,
        "may_link": Workspace.objects.filter(caller.within(roles=MAY_WRITE), archived_at=None).exists(),
        "is_operator": caller.is_operator,
    }


def _row(bot: Bot) -> dict[str, Any]:
    state, problem = bots.state_of(bot)
    about = problem or (f"@{bot.account}" if bot.account else "")
    return {"bot": bot, "dot": DOTS.get(state, ""), "word": state.label, "about": about}


def _done(
    request: HttpRequest,
    act: Callable[[], object],
    said: str,
    show_again: Callable[..., HttpResponse],
    after: tuple[Any, ...] | None = None,
) -> HttpResponse:
    """Does it and says so; or says on the same page why not."""
    try:
        act()
    except NotFound as error:
        raise Http404 from error
    except ParachuteError as error:
        return show_again(status=error.status, error=error.message)
    if said:
        messages.success(request, said)
    if after is not None:
        return redirect(*after)
    name = request.resolver_match.url_name if request.resolver_match else ""
    if name in ("bot-token", "bot-order"):
        return redirect("bot", request.resolver_match.kwargs["platform"] if request.resolver_match else "")
    return redirect("bots")
