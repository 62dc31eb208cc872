"""The server `orchestration`: for who may start others, and for who was started.

A tool closes over the session's id alone. Which agent that is, what it may start, and whether its turn still
runs is read at each call.
"""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from django.utils.translation import gettext as _

from agents_app.orchestration import cancelling, reading, supervision, talking
from agents_app.orchestration.permitted import holds_any, startable
from agents_app.orchestration.spawning import LONGEST_PROMPT, ONE_EVERY, Order, spawn
from agents_app.tools.own import Arguments, OwnServer, OwnTool, ToolRefused
from permissions_app.grants import request_grant
from permissions_app.models.grants import GrantType
from sessions_app.errors import Invalid, NotFound, ParachuteError, RateLimited
from sessions_app.models import Session, Turn
from sessions_app.threads import in_thread

NAME = "orchestration"
TRIES = 10  # to start one, where several are wanted within a second

Work = Callable[[UUID, Arguments, str], Any]

_ID = {"type": "string", "minLength": 1, "maxLength": 100}
_REASON = {"type": "string", "maxLength": 1_000}


def server(session: Session) -> OwnServer | None:
    tools: list[OwnTool] = []
    if session.parent_id is not None:
        tools.append(_message_caller(session.pk))
    elif supervision.is_kept(session) and holds_any(session):
        tools += _of_parent(session.pk)
    return OwnServer(NAME, (*tools, _expect_quiet(session.pk))) if tools else None


def _of_parent(session_id: UUID) -> list[OwnTool]:
    def tool(name: str, description: str, work: Work, *required: str, **properties: Any) -> OwnTool:
        return _tool(session_id, name, description, work, *required, **properties)

    prompt = {"type": "string", "minLength": 1, "maxLength": LONGEST_PROMPT}
    return [
        tool("list_spawnable_agents", "The agents that you may start.", _list),
        tool(
            "spawn_session",
            "Starts a session of another agent, which works by itself. You are woken when it ends.",
            _spawn,
            "child_agent_id",
            "prompt",
            child_agent_id=_ID,
            prompt=prompt,
            model={"type": "string", "maxLength": 100},
        ),
        tool(
            "read_child_output",
            "The events of a session that you started, oldest first, after `after_seq`.",
            _read,
            "child_session_id",
            child_session_id=_ID,
            after_seq={"type": "integer", "minimum": 0},
            limit={"type": "integer", "minimum": 1, "maximum": reading.MOST_EVENTS},
        ),
        tool(
            "inject_message",
            "Says something to a session that you started.",
            _inject,
            "child_session_id",
            "text",
            child_session_id=_ID,
            text={"type": "string", "minLength": 1, "maxLength": talking.LONGEST_INJECTED},
        ),
        tool(
            "cancel_session",
            "Ends a session that you started. A post-mortem follows, as a share.",
            _cancel,
            "session_id",
            session_id=_ID,
            reason=_REASON,
        ),
        tool(
            "request_grant",
            "Asks a person to let you start another agent. They answer when they come by.",
            _request,
            "grant_type",
            "child_agent_id",
            grant_type={"type": "string", "enum": [str(GrantType.SPAWN)]},
            child_agent_id=_ID,
            reason=_REASON,
        ),
    ]


def _message_caller(session_id: UUID) -> OwnTool:
    return _tool(
        session_id,
        "message_caller",
        "Tells whoever started you something. With `needs_response` the answer comes later: end your turn.",
        _message,
        "summary",
        summary={"type": "string", "minLength": 1, "maxLength": talking.LONGEST_SUMMARY},
        needs_response={"type": "boolean"},
        options={"type": "array", "items": {"type": "string"}, "maxItems": talking.MOST_OPTIONS},
    )


def _expect_quiet(session_id: UUID) -> OwnTool:
    return _tool(
        session_id,
        "expect_quiet_for",
        "Says that nothing will be heard of you for so many seconds, so that nobody takes you for stuck.",
        _quiet,
        "seconds",
        seconds={"type": "integer", "minimum": 1, "maximum": supervision.LONGEST_QUIET},
        reason=_REASON,
    )


def _tool(of: UUID, name: str, description: str, work: Work, *required: str, **properties: Any) -> OwnTool:
    async def call(arguments: Arguments, use_id: str) -> Any:
        use = use_id or uuid4().hex  # without one nobody could ask for the same again
        for _try in range(TRIES):
            try:
                return await in_thread(work)(of, arguments, use)
            except RateLimited as refusal:
                if work is not _spawn:
                    raise _refused(refusal) from refusal
                await asyncio.sleep(ONE_EVERY.total_seconds())
            except ParachuteError as refusal:
                raise _refused(refusal) from refusal
        raise ToolRefused("rate_limited", _("Too many are started at once. Call it again later."))

    schema = {"type": "object", "properties": properties, "required": list(required)}
    return OwnTool(name, description, schema | {"additionalProperties": False}, call)


def _refused(error: ParachuteError) -> ToolRefused:
    code = "invalid" if isinstance(error, NotFound) else error.code
    return ToolRefused("rate_limited" if code == "queue_full" else code, error.message)


def _list(session_id: UUID, given: Arguments, use: str) -> Any:
    session = _session(session_id)
    return [{"id": each.slug, "slug": each.slug, "name": each.definition.name} for each in startable(session)]


def _spawn(session_id: UUID, given: Arguments, use: str) -> Any:
    order = Order(
        _text(given, "child_agent_id"), _text(given, "prompt"), use, model=_text(given, "model", needed=False)
    )
    child = spawn(session_id, order)
    return {"session_id": str(child.pk), "status": child.status}


def _read(session_id: UUID, given: Arguments, use: str) -> Any:
    after, limit = _number(given, "after_seq", 0), _number(given, "limit", reading.USUAL_EVENTS)
    return reading.child_output(session_id, _named(given, "child_session_id"), after, limit)


def _inject(session_id: UUID, given: Arguments, use: str) -> Any:
    return talking.inject(session_id, _named(given, "child_session_id"), _text(given, "text"))


def _cancel(session_id: UUID, given: Arguments, use: str) -> Any:
    reason = _text(given, "reason", needed=False)
    return cancelling.cancel_child(session_id, _named(given, "session_id"), reason)


def _request(session_id: UUID, given: Arguments, use: str) -> Any:
    if given.get("grant_type") != GrantType.SPAWN:
        raise Invalid.field("grant_type", _("Only `spawn` can be asked for."))
    session = _session(session_id)
    turn = Turn.objects.active().filter(session=session_id).values_list("pk", flat=True).first()
    reason = _text(given, "reason", needed=False)
    asked = request_grant(session, _text(given, "child_agent_id"), reason, turn_id=turn)
    return {"request_id": str(asked.pk), "status": asked.status}


def _message(session_id: UUID, given: Arguments, use: str) -> Any:
    options = given.get("options") or []
    if not isinstance(options, list) or not all(isinstance(each, str) for each in options):
        raise Invalid.field("options", _("A list of texts was expected."))
    asks = given.get("needs_response") is True
    said = talking.message_caller(session_id, use, _text(given, "summary"), asks=asks, options=options)
    if said["status"] == talking.REFUSED:
        raise talking.too_many()
    return said


def _quiet(session_id: UUID, given: Arguments, use: str) -> Any:
    return supervision.expect_quiet(
        session_id, _number(given, "seconds", 0), _text(given, "reason", needed=False)
    )


def _session(session_id: UUID) -> Session:
    session: Session | None = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if session is None:
        raise NotFound(_("This session is not there any more."))
    return session


def _text(given: Arguments, name: str, *, needed: bool = True) -> str:
    value = given.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise Invalid.field(name, _("Text was expected."))
    return value


def _number(given: Arguments, name: str, usual: int) -> int:
    value = given.get(name, usual)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Invalid.field(name, _("A whole number was expected."))
    return value


def _named(given: Arguments, name: str) -> UUID:
    try:
        return UUID(_text(given, name))
    except ValueError as error:
        raise Invalid.field(name, _("This is no id of a session.")) from error
