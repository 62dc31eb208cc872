"""The messages of a session's turns that are over: from its transcript, and for turns that left nothing or
too little there (stopped, failed) from their event rows."""

from collections import defaultdict
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from sessions_app.files import attachments
from sessions_app.history import transcripts
from sessions_app.models import Attachment, EventType, Message, Session, SessionEvent, Turn, TurnStatus
from sessions_app.models.event import WORK

Said = dict[str, Any]
Begun = dict[tuple[UUID, str], Said]  # by turn, and by what the model calls its message


def messages(session: Session) -> list[Said]:
    turns = Turn.objects.over().filter(session=session).order_by("opened_seq")
    over = {turn: (status, attempt) for turn, status, attempt in turns.values_list("pk", "status", "attempt")}
    done = [turn for turn, (status, _) in over.items() if status == TurnStatus.DONE]
    spoken = {message.pk: message for message in _spoken(session, done)}
    by_turn = _from_transcript(transcripts.raw(session.pk) or b"", spoken, _attached(session))
    _tell_as_rows_do(by_turn)
    _tell_what_was_cut_off(by_turn, [turn for turn in by_turn if over[turn][1] > 1])
    by_turn |= _from_events([turn for turn in over if turn not in by_turn])
    return [said for turn in over for said in by_turn.get(turn, [])]


def of_part(session: Session, part: bytes, within: str) -> list[Said]:
    """What a part of the transcript holds of turns that are over, with what sub-agents did below the tool
    that sent them. `within` is the message whose turn had begun before."""
    over = list(Turn.objects.over().filter(session=session).values_list("pk", flat=True))
    spoken = {str(message.pk): message for message in _spoken(session, over)}
    begun = spoken[within].turn_id if within in spoken else None
    known = {message.pk: message for message in spoken.values()}
    by_turn = _from_transcript(part, known, _attached(session), begun)
    _tell_as_rows_do(by_turn)
    below = _sub_agents(list(by_turn))
    rows = (row for said in by_turn.values() for row in said)
    return [each for row in rows for each in (row, *_below(row, below))]


def _sub_agents(turns: list[UUID]) -> dict[str, list[Said]]:
    """By the use of the tool that sent them. In the transcript they are threads of their own."""
    by_use: defaultdict[str, list[Said]] = defaultdict(list)
    events = SessionEvent.objects.filter(turn_id__in=turns, type__in=WORK).order_by("seq")
    for event in events.filter(payload__parentToolUseId__isnull=False):
        if event.payload["parentToolUseId"]:
            by_use[event.payload["parentToolUseId"]].append(_of_event(event))
    return by_use


def _below(row: Said, sub_agents: dict[str, list[Said]]) -> list[Said]:
    uses = [str(block.get("id")) for block in row["content"] if block.get("type") == "tool_use"]
    return [said for use in uses for said in sub_agents.get(use, [])]


def _spoken(session: Session, turns: list[UUID]) -> QuerySet[Message]:
    return Message.objects.filter(session=session, turn_id__in=turns).select_related("author")


def _attached(session: Session) -> dict[UUID, list[Said]]:
    by_message: defaultdict[UUID, list[Said]] = defaultdict(list)
    for file in Attachment.objects.filter(session=session).order_by("position"):
        by_message[file.message_id].append(attachments.as_json(file))
    return by_message


def _from_transcript(
    transcript: bytes,
    spoken: dict[UUID, Message],
    attached: dict[UUID, list[Said]],
    turn: UUID | None = None,
) -> dict[UUID, list[Said]]:
    by_turn: defaultdict[UUID, list[Said]] = defaultdict(list)
    known = {str(key): message for key, message in spoken.items()}
    told = set[UUID]()  # an agent can repeat a short row, and what was said with it is long
    begun: Begun = {}
    for entry in transcripts.entries(transcript):
        message = known.get(str(entry.get("uuid")))
        if message is not None:
            turn = message.turn_id
            if message.pk not in told:
                told.add(message.pk)
                said = _of_message(message, str(entry.get("timestamp")))
                by_turn[turn].append(said | {"attachments": attached.get(message.pk, [])})
        elif turn is not None and not _is_foreign_prompt(entry):
            _append(by_turn[turn], entry, turn, begun)
        else:
            turn = None  # what another turn said, one that is not over
    return by_turn


def _tell_as_rows_do(by_turn: dict[UUID, list[Said]]) -> None:
    """What the server made in the place of an agent is an error in older transcripts, whose CLI was refused
    it, and where that could not even do nothing instead."""
    errors = {
        str(block.get("tool_use_id")): block
        for said in by_turn.values()
        for row in said
        for block in row["content"]
        if block.get("type") == "tool_result" and block.get("is_error")
    }
    if not errors:
        return
    # Asked by turn: the ids are the agent's, who can make more of them than a query takes, and of any kind.
    results = SessionEvent.objects.filter(turn_id__in=list(by_turn), type=EventType.TOOL_RESULT)
    good = results.filter(payload__isError=False).values_list("payload__toolUseId", flat=True)
    for tool_use_id in errors.keys() & set(good):
        errors[tool_use_id]["is_error"] = False


def _tell_what_was_cut_off(by_turn: dict[UUID, list[Said]], interrupted: list[UUID]) -> None:
    """What people had read when a worker was lost is in no transcript. What was said since comes after it."""
    if not interrupted:
        return
    cut_off = SessionEvent.objects.filter(turn_id__in=interrupted, payload__interrupted=True)
    for event in cut_off.order_by("seq"):
        said, row = by_turn[event.turn_id], _of_event(event)
        if not any(_has(each, row["content"][0]) for each in said):
            since = (at for at, each in enumerate(said) if at and str(each["timestamp"]) > row["timestamp"])
            said.insert(next(since, len(said)), row)


def _has(row: Said, begun: dict[str, Any]) -> bool:
    """Then it was said again from its beginning, or its agent had finished it."""
    kind = begun["type"]  # the name, too, of what a block of text or of thinking holds
    blocks = row["content"] if row["role"] == "assistant" else ()
    return any(each.get("type") == kind and str(each.get(kind)).startswith(begun[kind]) for each in blocks)


def _is_foreign_prompt(entry: transcripts.Entry) -> bool:
    """A prompt that is none of our messages that are over: it opens a turn that is still in flight."""
    return entry.get("type") == "user" and entry.get("promptSource") == "sdk"


def _append(said: list[Said], entry: transcripts.Entry, turn: UUID, begun: Begun) -> None:
    """The CLI writes a row for each block of one message, and what a tool answered between two of them."""
    message = entry["message"]
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    role = str(entry["type"])
    of_message = str(message.get("id") or "") if role == "assistant" else ""
    if same := begun.get((turn, of_message)):
        same["content"].extend(blocks)
        return
    row = {
        "id": entry.get("uuid"),
        "role": role,
        "content": blocks,
        "timestamp": entry.get("timestamp"),
        "turnId": str(turn),
        "parentToolUseId": entry.get("parent_tool_use_id"),
    }
    if of_message:
        row["messageId"] = of_message
        begun[turn, of_message] = row
    said.append(row)


def _of_message(message: Message, timestamp: str) -> Said:
    return {
        "id": str(message.pk),
        "role": "user",
        "source": message.source,
        "author": message.author.get_username() if message.author else None,
        "content": [{"type": "text", "text": message.content or message.context}],
        "timestamp": timestamp,
        "turnId": str(message.turn_id),
        "parentToolUseId": None,
    }


def _from_events(turns: list[UUID]) -> dict[UUID, list[Said]]:
    if not turns:
        return {}
    by_turn: defaultdict[UUID, list[Said]] = defaultdict(list)
    shown = (EventType.USER_MESSAGE, *WORK)
    for event in SessionEvent.objects.filter(turn_id__in=turns, type__in=shown).order_by("seq"):
        by_turn[event.turn_id].append(_of_event(event))
    return by_turn


def _of_event(event: SessionEvent) -> Said:
    role, block = _block(EventType(event.type), event.payload)
    said = {
        "id": f"{event.turn_id}:{event.seq}",
        "role": role,
        "content": [block],
        "timestamp": event.created_at.isoformat().replace("+00:00", "Z"),
        "turnId": str(event.turn_id),
        "parentToolUseId": event.payload.get("parentToolUseId"),
    }
    if event.payload.get("interrupted"):
        said["interrupted"] = True
    if event.type == EventType.USER_MESSAGE:
        said["author"] = event.payload.get("author")
        said["attachments"] = event.payload.get("attachments", [])
    return said


def _block(kind: EventType, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    match kind:
        case EventType.USER_MESSAGE:
            return "user", {"type": "text", "text": payload["content"]}
        case EventType.TEXT:
            return "assistant", {"type": "text", "text": payload["content"]}
        case EventType.THINKING:
            return "assistant", {"type": "thinking", "thinking": payload["content"]}
        case EventType.TOOL_USE:
            return "assistant", {"type": "tool_use", **payload["tool"]}
        case _:
            answer = {"tool_use_id": payload["toolUseId"], "content": payload["content"]}
            return "user", {"type": "tool_result", **answer, "is_error": payload["isError"]}
