"""A conversation as the page shows it, told from the rows of its stream.

A page that is loaded and a tab that follows take the same way: `take` puts an event to what its turn has told
so far, and each `Item` knows the template that shows it. Loaded, a turn is drawn whole; followed, only the
item that changed is sent again, by its id.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils.dateparse import parse_datetime
from django.utils.functional import SimpleLazyObject

from parachute_site.pages import tools
from parachute_site.pages.markup import Links, markdown
from permissions_app.models import ToolRequest
from permissions_app.rules.tools import REACH
from sessions_app.models import EventType, Session
from sessions_app.models.event import TERMINAL
from sessions_app.storable import visible

Event = Mapping[str, Any]
LEAST_COST = 0.0005  # dollars; what is less would be shown as nothing


@dataclass
class Item:
    """Something that is shown, once; `id` is its element's in the page, `kind` its template's name."""

    id: str
    kind: str
    into: str  # the element that it stands in
    facts: dict[str, Any] = field(default_factory=dict)
    inside: list["Item"] = field(default_factory=list)  # of a tool: what its helper does

    def html(self) -> str:
        """Cheap enough to be done for each row: a part of a millisecond."""
        return render_to_string(f"told/{self.kind}.html", {"item": self, **self.facts}).strip()


@dataclass
class TurnTold:
    id: str
    opened_seq: int = 0
    items: list[Item] = field(default_factory=list)
    tools: dict[str, Item] = field(default_factory=dict)
    asks: dict[str, Item] = field(default_factory=dict)  # by the tool that they are about
    denials: dict[str, str] = field(default_factory=dict)
    last_at: datetime | None = None
    is_over: bool = False
    status: str = ""  # of one that is not over

    @property
    def element(self) -> str:
        return f"turn-{self.id}"


class Telling:
    """What is told of one session. `folder` is its vault: paths are shown from there. Who is no operator is
    offered no answer where only an operator may give one. What others than `reader` said has their name."""

    def __init__(
        self, folder: str, *, to_operator: bool, reader: str = "", links: Links | None = None
    ) -> None:
        self._folder = folder
        self._links = links
        self._reader = reader
        self._to_operator = to_operator
        self.turns: dict[str, TurnTold] = {}
        self._asks: dict[str, Item] = {}  # by the id of their request: an answer may come after its turn

    def turn(self, turn_id: str) -> TurnTold:
        return self.turns.setdefault(turn_id, TurnTold(turn_id))

    def knows(self, request_id: str) -> bool:
        return request_id in self._asks

    def take(self, event: Event) -> list[Item]:
        """What this row adds or changes; nothing where there is nothing to see."""
        if event["type"] in _ANSWERS:
            return _there(_ANSWERS[event["type"]](self._asks.get(event["requestId"]), event))
        if not event.get("turnId"):
            return []
        turn = self.turn(event["turnId"])
        items = [*(_cut_off(turn, event) if _is_cut_by(event) else ()), *_there(self._told(turn, event))]
        turn.last_at = parse_datetime(event["ts"])
        turn.is_over = turn.is_over or event["type"] in TERMINAL
        return items

    def _told(self, turn: TurnTold, event: Event) -> Item | None:
        tell = _TELLS.get(event["type"])
        return tell(self, turn, event) if tell else None

    def _words(self, turn: TurnTold, event: Event) -> Item:
        if wakes := event.get("wakes"):
            return self._add(turn, event, "woken", wakes=wakes)
        return self._add(turn, event, "said", **_said(event, self._reader))

    def _spawned(self, turn: TurnTold, event: Event) -> Item:
        return self._add(turn, event, "spawned", event=event)

    def _shared(self, turn: TurnTold, event: Event) -> Item:
        return self._add(turn, event, "shared", event=event, markup=markdown(event["body"]))

    def _status(self, turn: TurnTold, event: Event) -> Item:
        return self._add(turn, event, "status", event=event)

    def _text(self, turn: TurnTold, event: Event) -> Item:
        was_cut_off = event.get("interrupted", False)
        markup = markdown(event["content"], links=self._links)
        return self._add(turn, event, "text", markup=markup, was_cut_off=was_cut_off)

    def _thinking(self, turn: TurnTold, event: Event) -> Item:
        facts = {"words": visible(event["content"]), "seconds": _seconds(turn, event)}
        return self._add(turn, event, "thinking", **facts)

    def _note(self, turn: TurnTold, event: Event) -> Item:
        return self._add(turn, event, "note", event=event)

    def _end(self, turn: TurnTold, event: Event) -> Item:
        was_never_sent = all(item.kind == "said" for item in turn.items)
        return self._add(turn, event, "end", event=event, cost=_cost(event), was_never_sent=was_never_sent)

    def _add(self, turn: TurnTold, row: Event, template: str, **facts: Any) -> Item:
        item = Item(f"row-{row['seq']}", template, turn.element, facts)
        turn.items.append(item)
        return item

    def _tool(self, turn: TurnTold, event: Event) -> Item:
        tool = event["tool"]
        facts = {"tool": tools.shown(tool["name"], tool["input"], self._folder), "name": tool["name"]}
        item = Item(f"tool-{event['seq']}", "tool", turn.element, facts)
        turn.tools[tool["id"]] = item
        if reason := turn.denials.get(tool["id"]):
            item.facts["reason"] = reason
        helper = turn.tools.get(event.get("parentToolUseId") or "")
        if helper is None:
            turn.items.append(item)
        else:
            item.into = f"inside-{helper.id}"
            helper.inside.append(item)
        return item

    def _result(self, turn: TurnTold, event: Event) -> Item | None:
        item = turn.tools.get(event["toolUseId"])
        if item is None:
            return None
        content, is_cut = tools.result(event["content"])
        ask = turn.asks.get(event["toolUseId"])
        was_stopped = event["isError"] and ask is not None and ask.facts["status"] in ("pending", "given_up")
        item.facts |= {
            "has_result": True,
            "was_stopped": was_stopped,  # while it was asked about: what it says then is for the model
            "content": "" if was_stopped else content,
            "is_cut": is_cut or event["truncated"],
            "is_error": event["isError"] and not was_stopped,
            "at": parse_datetime(event["ts"]),
            "seconds": event["durationMs"] / 1000,
        }
        return item

    def _denied(self, turn: TurnTold, event: Event) -> Item | None:
        """Its reason stands in the line of the tool. The gate may speak before the tool is told of."""
        turn.denials[event["toolUseId"]] = event["reason"]
        item = turn.tools.get(event["toolUseId"])
        if item is not None:
            item.facts["reason"] = event["reason"]
        return item

    def _ask(self, turn: TurnTold, event: Event) -> Item:
        """Below the tool that it is about, in the words of what would happen."""
        facts = ask_facts(event, self._folder, to_operator=self._to_operator)
        item = self._add(turn, event, "ask", **facts)
        self._asks[event["id"]] = turn.asks[event["toolUseId"]] = item
        return item

    def _question(self, turn: TurnTold, event: Event) -> Item:
        facts = question_facts(event, to_operator=self._to_operator)
        item = self._add(turn, event, "question", **facts)
        self._asks[event["requestId"]] = item
        return item

    def _grant(self, turn: TurnTold, event: Event) -> Item:
        item = self._add(turn, event, "grant", ask=event, status="pending")
        self._asks[event["requestId"]] = item
        return item


def _is_cut_by(event: Event) -> bool:
    """No tool that ran until here is answered any more: the turn was stopped or failed, or a worker goes on
    with what another had begun."""
    if event["type"] == EventType.SESSION:
        return event["resumeInfo"] is not None
    return event["type"] in TERMINAL and event["type"] != EventType.DONE


def _cut_off(turn: TurnTold, by: Event) -> list[Item]:
    """What ran, and what failed because it was stopped."""
    running = [item for item in turn.tools.values() if not item.facts.keys() & {"has_result", "reason"}]
    stopped = [*running, *_failed_since(turn, by.get("stoppedAt"))]  # older rows do not have it
    for item in stopped:
        item.facts |= {"has_result": True, "was_stopped": True, "is_error": False}
    return stopped


def _failed_since(turn: TurnTold, stopped_at: str | None) -> list[Item]:
    """Those that were answered with an error after somebody had stopped the turn."""
    since = parse_datetime(stopped_at) if stopped_at else None
    return [
        item
        for item in turn.tools.values()
        if since and item.facts.get("is_error") and item.facts["at"] > since
    ]


def _there(item: Item | None) -> list[Item]:
    return [] if item is None else [item]


def ask_facts(request: Event, folder: str, *, to_operator: bool) -> dict[str, Any]:
    """Of a request as the wire has it."""
    return {
        "ask": request,
        "status": "pending",
        "type": "reach" if request["toolName"] == REACH else request["permissionType"],
        "name": visible(request["toolName"]),
        "tool": tools.shown_whole(request["toolName"], request["input"], folder),
        "wider": [each for each in request["suggestedGrants"] if each["scope"] != "once"],
        "is_operators": not to_operator and request.get("onHost", False),  # older rows do not say
    }


def inbox_item(event: Event, *, to_operator: bool) -> Item:
    """A request by itself, with the chat that it comes from."""
    request = str(event.get("requestId") or event["id"])
    session = Session.objects.only("title", "vault_root").get(pk=event["sessionId"])
    kind, facts = _card(event, session.vault_root, to_operator)
    card = Item(f"card-{request}", kind, "", facts)
    more = {"session": session, "card": card, "agent": event.get("agentName")}
    return Item(f"asked-{request}", "asked", "asked", more)


def _card(event: Event, folder: str, to_operator: bool) -> tuple[str, dict[str, Any]]:
    match event["type"]:
        case "user_question":
            return "question", question_facts(event, to_operator=to_operator)
        case "grant_request":
            return "grant", {"ask": event, "status": "pending"}
    return "ask", ask_facts(event, folder, to_operator=to_operator)


def question_facts(request: Event, *, to_operator: bool) -> dict[str, Any]:
    is_operators = False if to_operator else SimpleLazyObject(lambda: _is_on_host(request["requestId"]))
    return {"ask": request, "questions": request["questions"], "is_operators": is_operators}


def _is_on_host(request_id: str) -> bool:
    """Of a question its event does not say it. It is looked up for one that waits, when it is drawn."""
    return ToolRequest.objects.filter(pk=request_id, on_host=True).exists()


def _resolved(item: Item | None, event: Event) -> Item | None:
    if item is not None:
        was_given_up = event["decision"] == "expired" and not event.get("canStillBeAllowed", True)
        item.facts |= {
            "status": "given_up" if was_given_up else event["decision"],
            "by": event.get("decidedBy"),
            "pattern": event.get("pattern"),  # grants have none
            "why_not": event.get("reason"),  # older rows have neither this nor `canStillBeAllowed`
        }
    return item


def _answered(item: Item | None, event: Event) -> Item | None:
    if item is not None:
        answers = [
            {"question": each["question"], "answer": _answer(event["answers"].get(each["question"]))}
            for each in item.facts["questions"]
        ]
        item.facts |= {
            "is_over": True,
            "timed_out": event["timedOut"],
            "given_up": event.get("givenUp"),  # older rows do not have it
            "answered": answers,
        }
    return item


def _answer(given: str | list[str] | None) -> str:
    return ", ".join(given) if isinstance(given, list) else given or ""


def _said(event: Event, reader: str) -> dict[str, Any]:
    author = event.get("author")  # older rows do not have it
    return {
        "author": visible(author) if author and author != reader else "",
        "words": visible(event["content"]),
        "source": event["source"],
        "from_session": event.get("fromSessionId"),
        "from_agent": visible(event.get("fromAgentSlug") or ""),
        "attachments": event["attachments"],
        "at": parse_datetime(event["ts"]),
    }


def _cost(event: Event) -> dict[str, str]:
    usage = event.get("usage") or {}
    tokens = usage.get("inputTokens", 0) + usage.get("outputTokens", 0)
    dollars = event.get("costUsd") or 0
    return {
        "tokens": f"{tokens:,}" if tokens else "",
        "dollars": f"${dollars:.3f}" if dollars >= LEAST_COST else "",
    }


def _seconds(turn: TurnTold, event: Event) -> int:
    at = parse_datetime(event["ts"])
    return round((at - turn.last_at).total_seconds()) if at and turn.last_at else 0


_TELLS: dict[str, Callable[[Telling, TurnTold, Event], Item | None]] = {
    "user_message": Telling._words,
    "text": Telling._text,
    "thinking": Telling._thinking,
    "tool_use": Telling._tool,
    "tool_result": Telling._result,
    "permission_denied": Telling._denied,
    "permission_request": Telling._ask,
    "user_question": Telling._question,
    "grant_request": Telling._grant,
    "child_spawned": Telling._spawned,
    "agent_share": Telling._shared,
    "agent_status": Telling._status,
    "warning": Telling._note,
    "session_unavailable": Telling._note,
    **dict.fromkeys(TERMINAL, Telling._end),
}
_ANSWERS = {"permission_resolved": _resolved, "question_answered": _answered, "grant_resolved": _resolved}
