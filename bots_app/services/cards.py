"""What waits for a decision, as buttons in the chat of whoever may decide.

A card is for linked people alone, in their own chat, and each press is looked at as if it came from the
page: by who presses, and by what they may do at that moment.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from bots_app.models import BotUser, ChatType, Delivery, DeliveryKind, DeliveryState
from bots_app.platforms.base import Button, Incoming
from bots_app.services import delivering, people, saying
from permissions_app import services as deciding
from permissions_app.models import RequestStatus, ToolRequest
from permissions_app.reading import pending
from permissions_app.rules.suggestions import PatternScope
from sessions_app.access.caller import Caller
from sessions_app.errors import ParachuteError
from sessions_app.models.session import OF_BOTS
from sessions_app.storable import visible

ELSEWHERE_FIRST = timedelta(seconds=10)  # who sits in the page answers there, and their phone is silent
LONGEST_LABEL = 60
LONGEST_LATE = 1_000  # characters of a call that is shown once more
MOST_OPTIONS = 8
OPEN, OVER, LATE = "open", "over", "late"


@dataclass(frozen=True)
class Shown:
    text: str
    buttons: tuple[Button, ...]
    mark: str


def sync(platform: str) -> list[int]:
    """New cards, and those that are to be shown as something else by now: the chats in which they are."""
    wake = {chat for user in _asked(platform) for chat in _new_cards(user)}
    shown = Delivery.objects.filter(
        kind=DeliveryKind.CARD, state=DeliveryState.SENT, chat__platform=platform, card__mark__in=(OPEN, LATE)
    )
    stale = shown.filter(~Q(request__status=RequestStatus.PENDING), card__mark=OPEN) | shown.filter(
        ~Q(request__status__in=(RequestStatus.PENDING, RequestStatus.EXPIRED)), card__mark=LATE
    )
    for delivery in stale:
        Delivery.objects.filter(pk=delivery.pk).update(state=DeliveryState.WAITING)
        wake.add(delivery.chat_id)
    return sorted(wake)


def _asked(platform: str) -> list[BotUser]:
    linked = BotUser.objects.filter(
        platform=platform, revoked_at=None, user__isnull=False, direct__chat_type=ChatType.PRIVATE
    )
    users = linked.select_related("workspace", "user", "direct")
    return [user for user in users if people.is_let_in(user)]


def _new_cards(user: BotUser) -> Iterator[int]:
    caller, chat = people.person(user), user.direct
    if caller is None or chat is None:
        return
    since = timezone.now() - ELSEWHERE_FIRST
    asked = pending(caller)
    of_bots = set(
        ToolRequest.objects.filter(
            pk__in=[each.pk for each in asked], session__source__in=OF_BOTS
        ).values_list("pk", flat=True)
    )
    for request in asked:
        if request.pk in of_bots or request.created_at <= since:
            _card, made = Delivery.objects.get_or_create(
                key=f"card:{chat.pk}:{request.pk}",
                defaults={"chat": chat, "kind": DeliveryKind.CARD, "request": request},
            )
            if made:
                yield chat.pk


def shown(delivery: Delivery, longest: int) -> Shown:
    """As it is at this moment."""
    request = ToolRequest.objects.select_related("session", "decided_by").get(pk=delivery.request_id or "")
    if request.status == RequestStatus.PENDING:
        ask = _question if request.is_question else _approval
        return ask(delivery, request, longest)
    return _over(delivery, request)


def was_shown(delivery: Delivery, messages: list[dict[str, Any]], as_what: Shown) -> None:
    card = {**Delivery.objects.values_list("card", flat=True).get(pk=delivery.pk), "mark": as_what.mark}
    delivering.stands(delivery, messages, card)


def _approval(delivery: Delivery, request: ToolRequest, longest: int) -> Shown:
    about = visible(json.dumps(request.input, indent=2, ensure_ascii=False))
    head = _("**%(agent)s** wants to use **%(tool)s**.") % {
        "agent": request.agent_name,
        "tool": request.tool_name,
    }
    text = f"{head}\n{visible(request.why)}\n\n```\n{about}\n```"
    deny = Button(_("Do not allow"), _data(delivery, "n"))
    if len(text) > longest // 2 or "```" in about:  # nobody allows what they could not read
        left = _("It is too long to be shown here whole. Look at it in the inbox of the page.")
        return Shown(f"{head}\n{request.why}\n\n_{left}_", (deny,), OPEN)
    wider = [
        Button(f"{_('Allow')}: {each['label']}"[:LONGEST_LABEL], _data(delivery, f"g{number}"))
        for number, each in enumerate(request.suggested_grants)
        if each["scope"] != PatternScope.ONCE
    ]
    once = Button(_("Allow once"), _data(delivery, "y"))
    return Shown(text, (once, *wider[:3], deny), OPEN)


def _question(delivery: Delivery, request: ToolRequest, longest: int) -> Shown:
    """One question after the other."""
    answers: dict[str, Any] = delivery.card.get("answers", {})
    question = next((each for each in request.input["questions"] if each["question"] not in answers), None)
    if question is None:
        return Shown(_("Answered."), (), OPEN)
    options = question.get("options", [])[:MOST_OPTIONS]
    told = [f"- {each.get('label', '')}: {each.get('description', '')}" for each in options]
    text = "\n".join([f"**{request.agent_name}**: {question['question']}", "", *told])
    chosen = delivery.card.get("chosen", [])
    buttons = [
        Button(
            f"{'✓ ' if number in chosen else ''}{each.get('label', '')}"[:LONGEST_LABEL] or "…",
            _data(delivery, f"o{number}"),
        )
        for number, each in enumerate(options)
    ]
    if question.get("multiSelect"):
        buttons.append(Button(_("Done"), _data(delivery, "d")))
    if not options:
        text += "\n" + _("Answer it on the page, in your inbox.")
    return Shown(visible(text)[: longest - 10], tuple(buttons), OPEN)


def _over(delivery: Delivery, request: ToolRequest) -> Shown:
    who = request.decided_by.get_username() if request.decided_by else request.decided_as
    head = _("**%(agent)s**, %(tool)s") % {"agent": request.agent_name, "tool": request.tool_name}
    if request.status == RequestStatus.EXPIRED and not request.is_question:
        late = _("Nobody answered in time. You may still allow it; the agent is told then.")
        about = visible(json.dumps(request.input, indent=2, ensure_ascii=False))[:LONGEST_LATE]
        is_whole = len(about) < LONGEST_LATE and "```" not in about
        button = (Button(_("Allow it now"), _data(delivery, "y")),) if is_whole else ()
        return Shown(f"{head}\n```\n{about}\n```\n_{late}_", button, LATE)
    said = {
        RequestStatus.GRANTED: _("Allowed by %(who)s."),
        RequestStatus.DENIED: _("Not allowed, said %(who)s."),
        RequestStatus.ANSWERED: _("Answered by %(who)s."),
        RequestStatus.EXPIRED: _("Nobody answered in time."),
    }.get(RequestStatus(request.status), _("It is not asked any more."))
    return Shown(f"{head}\n_{said % {'who': who or '…'} if '%' in said else said}_", (), OVER)


def _data(delivery: Delivery, choice: str) -> str:
    return f"c:{delivery.pk}:{choice}"


def press(platform: str, said: Incoming) -> str:
    """What whoever pressed is told, in a word."""
    kind, _sep, rest = said.press.partition(":")
    number, _sep, choice = rest.partition(":")
    user = people.find(platform, said.who.user_id)
    caller = people.person(user) if user is not None else None
    if kind != "c" or not number.isdigit() or user is None or caller is None or user.direct_id is None:
        return _("This is not yours to decide.")
    mine = Delivery.objects.filter(pk=int(number), chat=user.direct_id, kind=DeliveryKind.CARD)
    delivery = mine.select_related("request", "chat").first()
    if delivery is None or delivery.request is None or delivery.chat.chat_id != said.place.chat_id:
        return _("This is not yours to decide.")
    try:
        told = _decide(caller, delivery, delivery.request, choice)
    except ParachuteError as error:
        told = error.message
    Delivery.objects.filter(pk=delivery.pk).update(state=DeliveryState.WAITING)
    saying.ring(chat=delivery.chat_id)
    return told


def _decide(caller: Caller, delivery: Delivery, request: ToolRequest, choice: str) -> str:
    if request.is_question:
        return _choose(caller, delivery, request, choice)
    if choice == "y":
        deciding.grant(caller, request.pk, scope=PatternScope.ONCE)
        return _("Allowed.")
    if choice == "n":
        deciding.deny(caller, request.pk)
        return _("Not allowed.")
    if choice[:1] == "g" and choice[1:].isdigit() and int(choice[1:]) < len(request.suggested_grants):
        wanted = request.suggested_grants[int(choice[1:])]
        scope = PatternScope(wanted["scope"])
        deciding.grant(caller, request.pk, pattern=wanted["pattern"] or None, scope=scope)
        return _("Allowed.")
    return _("This button is too old.")


def _choose(caller: Caller, delivery: Delivery, request: ToolRequest, choice: str) -> str:
    answers: dict[str, Any] = dict(delivery.card.get("answers", {}))
    questions = request.input["questions"]
    question = next((each for each in questions if each["question"] not in answers), None)
    if question is None:
        return _("Answered.")
    labels = [str(each.get("label", "")) for each in question.get("options", [])]
    chosen: list[int] = list(delivery.card.get("chosen", []))
    if choice[:1] == "o" and choice[1:].isdigit() and int(choice[1:]) < len(labels):
        picked = int(choice[1:])
        if question.get("multiSelect"):
            chosen = [each for each in chosen if each != picked] + ([picked] if picked not in chosen else [])
            _keep(delivery, {"answers": answers, "chosen": chosen})
            return ""
        answers[question["question"]] = labels[picked]
    elif choice == "d" and question.get("multiSelect"):
        answers[question["question"]] = [labels[each] for each in sorted(chosen)]
    else:
        return _("This button is too old.")
    if len(answers) == len({each["question"] for each in questions}):
        deciding.answer(caller, request.pk, answers)
    _keep(delivery, {"answers": answers, "chosen": []})
    return _("Noted.")


def _keep(delivery: Delivery, card: dict[str, Any]) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(card={**delivery.card, **card})
