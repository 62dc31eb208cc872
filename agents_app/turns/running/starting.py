"""How a turn is taken up: what of the conversation the agent still has, and what is said to it first.

The ladder, the first that works:

1. `sdk_resume`: its own transcript is whole;
2. `restored`: the copy in the vault is;
3. `context_injection`: what was said is told again, as far as it fits;
4. `new`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from django.utils.translation import gettext as _

from agents_app.turns.running import kept
from agents_app.turns.running.kept import Row
from agents_app.turns.running.retelling import Retold, retell
from agents_app.turns.said import attached
from sessions_app.history import transcripts
from sessions_app.models import EventType, Message, Recovery, Session, SessionEvent, Speaker, Turn
from sessions_app.models.event import WORK

INTERRUPTED = (
    "You were interrupted: the process that ran you ended before you had finished. What a tool was doing at "
    "that moment may have happened or not; look before you repeat it. Go on from where you were."
)
SHOWN = (
    "People have read what you had written of your answer by then, and they still see it. It stands below, "
    "and may be missing in your own record. Do not write it all again: begin with the sentence, or the line, "
    "that was cut off."
)
STARTED = "In this turn you have started these sessions already; they are at work: {children}."
GONE = "Its transcript is not there, or not whole."
CHOSEN = "A new start was asked for."


@dataclass(frozen=True)
class Start:
    method: str
    message: Message
    text: str
    retold: Retold = field(default_factory=Retold)
    rows: tuple[Row, ...] = ()  # what a person is told of it
    begun: str = ""  # what people have read of the answer already

    @property
    def resumes(self) -> bool:
        return self.method in ("sdk_resume", "restored")


def start_of(turn: Turn, vault: Path, directory: Path, *, unresumable: str = "") -> Start:
    """`unresumable`: why the agent could not resume, though its transcript looked as if it could."""
    first, more = _spoken(turn)
    begun = kept.begun(turn) if turn.attempt > 1 else ""
    transcript = _resumable(turn, first, unresumable)
    method = "sdk_resume"
    rows: list[Row] = []
    if transcript is None and not turn.recovery:
        transcript, method = _restored(turn.session, vault, directory, unresumable), "restored"
        rows += [_warning_of_the_copy()] if transcript else []
    if transcript is not None:
        _wait_for(more, transcript)
        message, text = _first_words(turn, first, transcript, vault, begun)
        return Start(method, message, text, rows=tuple(rows), begun=begun)
    _wait_for(more, b"")
    return replace(_anew(turn, first, vault, unresumable, begun), begun=begun)


def _spoken(turn: Turn) -> tuple[Message, list[Message]]:
    """What opened the turn, and what was said to it since. Notes of ours are neither: they come later."""
    first, *later = turn.messages.select_related("author").order_by("created_at")
    return first, [message for message in later if message.source != Speaker.PLATFORM]


def _resumable(turn: Turn, message: Message, unresumable: str) -> bytes | None:
    """Its own transcript, if it is whole. One that holds this turn's message goes far enough."""
    transcript = transcripts.raw(turn.session_id)
    if unresumable or not transcript:
        return None
    is_of_this_turn = transcripts.holds(transcript, message.pk)
    if turn.recovery and not is_of_this_turn:
        return None
    last = "" if is_of_this_turn else turn.session.last_entry
    return transcript if transcripts.is_whole(transcript, last) else None


def _restored(session: Session, vault: Path, directory: Path, unresumable: str) -> bytes | None:
    if not session.last_entry or unresumable:
        return None
    copy = transcripts.published(session.pk, vault)
    if copy is None or not transcripts.is_whole(copy, session.last_entry):
        return None
    transcripts.restore(session.pk, directory, copy)
    return copy


def _anew(turn: Turn, message: Message, vault: Path, unresumable: str, begun: str) -> Start:
    text = _with_note(turn, _with_context(message, vault), begun)
    if not turn.session.message_count:
        transcripts.set_aside(turn.session_id)
        return Start("new", message, text)
    forgets = turn.recovery == Recovery.FRESH_START
    retold = Retold() if forgets else retell(turn.session)
    transcripts.set_aside(turn.session_id)
    lost: Row = (
        EventType.SESSION_UNAVAILABLE,
        {
            "reason": CHOSEN if turn.recovery else unresumable or GONE,
            "hasHistory": bool(retold.text),
            "messageCount": turn.session.message_count,
        },
    )
    method = "context_injection" if retold.text else "new"
    return Start(method, message, retold.before(text), retold, (lost,))


def _first_words(
    turn: Turn, message: Message, transcript: bytes, vault: Path, begun: str
) -> tuple[Message, str]:
    """Without our message, it is said; with it, that the agent was interrupted. The CLI writes its transcript
    a moment late: where it does not know what our rows know, both are said."""
    if not transcripts.holds(transcript, message.pk):
        return message, _with_note(turn, _with_context(message, vault), begun)
    note = Message.objects.create(
        id=uuid4(),
        session=turn.session,
        turn=turn,
        source=Speaker.PLATFORM,
        author=message.author,
        content=_note(turn, begun),
    )
    return note, note.content


def _with_note(turn: Turn, text: str, begun: str) -> str:
    done = (*WORK, EventType.CHILD_SPAWNED)
    has_worked = turn.attempt > 1 and SessionEvent.objects.filter(turn=turn, type__in=done).exists()
    if not has_worked:
        return text
    note = _note(turn, begun)
    return f"{note}\n\n---\n\n{text}" if begun else f"{note}\n\n{text}"


def _note(turn: Turn, begun: str) -> str:
    """A spawn whose answer never came is one that it would repeat."""
    told = SessionEvent.objects.filter(turn=turn, type=EventType.CHILD_SPAWNED).order_by("seq")
    children = ", ".join(f"{row.payload['agentSlug']} ({row.payload['childSessionId']})" for row in told)
    said = f"{INTERRUPTED} {STARTED.format(children=children)}" if children else INTERRUPTED
    return f"{said}\n\n{SHOWN}\n\n---\n\n{begun}" if begun else said


def _wait_for(more: list[Message], transcript: bytes) -> None:
    """What was said while the turn ran waits again, if the agent has not heard it."""
    unheard = [message.pk for message in more if not transcripts.holds(transcript, message.pk)]
    if unheard:
        Message.objects.filter(pk__in=unheard).update(waits=True)


def _with_context(message: Message, vault: Path) -> str:
    """What came with it first, and what is asked last: that is what a model heeds most."""
    files = attached.told(message, vault)
    return "\n\n---\n\n".join(_sections(message, files))


def _sections(message: Message, files: str) -> Iterator[str]:
    if message.prior_conversation:
        yield f"## Prior conversation\n\n{message.prior_conversation}"
    parts = (("Context", message.context), ("Attached files", files), ("Request", message.content))
    said = [(title, text) for title, text in parts if text]
    if len(said) == 1 and not files:
        yield said[0][1]
    else:
        yield from (f"## {title}\n\n{text}" for title, text in said)


def _warning_of_the_copy() -> Row:
    return EventType.WARNING, {
        "code": "restored",
        "title": _("Resumed from the copy in the vault"),
        "message": _(
            "The agent's own record was not there or not whole. The copy in the vault took its place."
        ),
        "details": [],
    }
