"""Opening a turn: one transaction that makes the session (if it is new) and says something to it. What is
known to fail is refused here, before anything is written."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from agents_app.definitions.agents import Agent
from agents_app.definitions.choosing import agent_for, cast_of
from agents_app.prompts import chosen
from agents_app.rights.allowed import allowed_directory, allowed_model, check_trust
from agents_app.rights.trust import most_for, narrowest
from agents_app.turns.said import receipts
from agents_app.turns.said.saying import locked, say
from sessions_app.access.caller import MAY_WRITE, Caller, OnPhone
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    QueueFull,
    SessionEnded,
    SessionNotRunning,
    TooLarge,
)
from sessions_app.files import attachments, file_names
from sessions_app.files.attachments import Accepted, Given
from sessions_app.metadata import PERMISSIONS
from sessions_app.models import (
    Attachment,
    Message,
    Receipt,
    Session,
    SessionContext,
    SessionKind,
    SessionStatus,
    Turn,
    TurnStatus,
)
from sessions_app.models.session import LIVE, Visibility
from sessions_app.reading import visible
from sessions_app.storable import is_storable, seen

LONGEST_MESSAGE = 102_400
MOST_WAITING = 20
LONGEST_DEFAULT_TITLE = 60
LONGEST_TYPE = 100


@dataclass(frozen=True)
class Opening:
    """What somebody says, and to whom. Without a session a new one is made."""

    message: str
    session_id: UUID | None = None
    workspace: str | None = None
    agent: str | None = None  # a slug
    agent_path: str | None = None
    agent_type: str = ""
    model: str | None = None
    module: str = "chat"
    system_prompt: str = ""
    working_directory: str = ""
    initial_context: str = ""
    prior_conversation: str = ""
    continued_from: UUID | None = None
    trust_level: str | None = None
    recovery: str = ""
    contexts: tuple[str, ...] = ()
    attachments: tuple[Given, ...] = ()

    @property
    def digest(self) -> str:
        """Of all that was said: two with the same are the same request."""
        said = hashlib.sha256(repr(self).encode())  # without what is in the files
        for file in self.attachments:
            said.update(hashlib.sha256(file.content).digest())
        return said.hexdigest()


@dataclass(frozen=True)
class Opened:
    session_id: UUID
    turn_id: UUID
    seq: int  # of the `user_message`; the `session` event is the one before

    @classmethod
    def of(cls, turn: Turn) -> "Opened":
        return cls(turn.session_id, turn.pk, turn.opened_seq)


def open_turn(caller: Caller, opening: Opening, *, key: str = "") -> Opened:
    """Accepts what was said. With an idempotency key the same words are accepted once. Never called inside a
    transaction: its files are kept or taken away by how its own one ends."""
    check_text(opening, key)
    files = attachments.accepted(opening.attachments)
    if not key:
        with _kept(caller, opening, files) as kept, transaction.atomic():
            return _open(caller, opening, kept)
    digest = opening.digest
    if files and (known := receipts.turn_of(caller, key, digest)):  # before a second copy of them is made
        return Opened.of(known)
    try:
        with _kept(caller, opening, files) as kept, transaction.atomic():
            receipt = receipts.new(caller, key, digest)
            opened = _open(caller, opening, kept)
            Receipt.objects.filter(pk=receipt.pk).update(turn=opened.turn_id)
            return opened
    except IntegrityError:
        known = receipts.turn_of(caller, key, digest)
    if known is None:
        raise Conflict(_("Two requests met. Send it again."))
    return Opened.of(known)


@contextmanager
def _kept(caller: Caller, opening: Opening, files: list[Accepted]) -> Iterator[list[Attachment]]:
    """Its files in the vault. Whoever may not write there is refused before anything is written."""
    if not files:
        yield []
        return
    if opening.session_id is None:
        workspace = workspace_for(caller, opening.workspace)
    else:
        workspace = visible(caller, opening.session_id).workspace
        _check_role(caller, workspace)
    with attachments.kept(Path(workspace.vault_path), files) as kept:
        yield kept


def _open(caller: Caller, opening: Opening, kept: list[Attachment]) -> Opened:
    known = opening.session_id
    session = existing(caller, known, opening) if known else _begun(caller, opening)
    message = as_message(caller, opening)
    if not session.last_seq:  # what comes before the first message
        message.context = opening.initial_context
        message.prior_conversation = opening.prior_conversation
    return Opened.of(say(session, message, kept=kept, recovery=opening.recovery, author=caller.username))


def as_message(caller: Caller, opening: Opening) -> Message:
    content = opening.message if seen(opening.message) else ""
    return Message(source=caller.source, author_id=caller.account_id, content=content)


def check_text(opening: Opening, key: str) -> None:
    for field in fields(opening):
        text = getattr(opening, field.name)
        if isinstance(text, str):
            _check_one(_wire_name(field.name), text)
    for path in opening.contexts:
        _check_one("contexts", path)
    _check_one("Idempotency-Key", key)
    # Context comes with a session's first message only: there it may stand alone.
    context = "" if opening.session_id else opening.initial_context
    if not (seen(opening.message) or seen(context) or opening.attachments):
        raise Invalid.field("message", _("Say something: the message is empty."))


def _check_one(name: str, text: str) -> None:
    if not is_storable(text):
        raise Invalid.field(
            name, _("%(name)s holds a character that is no text (NUL or half of a pair).") % {"name": name}
        )
    if len(text) > LONGEST_MESSAGE:
        raise TooLarge(
            _("%(name)s has %(length)s characters; at most %(most)s are taken.")
            % {"name": name, "length": f"{len(text):,}", "most": f"{LONGEST_MESSAGE:,}"}
        )


def _wire_name(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def existing(caller: Caller, session_id: UUID, opening: Opening) -> Session:
    """The session that the message goes to, locked until it is said, so that messages keep their order."""
    visible = Session.objects.visible_to(caller)
    session = locked(Session.objects.filter(pk=session_id, pk__in=visible.values("pk")))
    if session is None:
        raise NotFound(_("There is no such session, or you may not see it."))
    _check_role(caller, session.workspace)
    _check_takes_messages(session)
    check_queue(Turn.objects.filter(session=session, status=TurnStatus.QUEUED).count())
    _check_unchanged(session, opening)
    on_phone = caller.on_phone.trust if caller.on_phone else None
    check_trust(caller, session.trust_level, most_for(session, cast_of(session).rights.trust, on_phone))
    model = allowed_model(opening.model or session.model, session.workspace.default_model)
    if model != session.model:
        session.model = model
        Session.objects.filter(pk=session.pk).update(model=model)
    return session


def _check_takes_messages(session: Session) -> None:
    """An orchestrator that came to its end is no more: the next one is another session."""
    if session.parent_id and session.status == SessionStatus.FAILED:
        raise SessionNotRunning(_("This session has failed and takes no more messages."))
    if session.kind == SessionKind.ORCHESTRATOR and session.status not in LIVE:
        live = live_session(session.workspace, session.agent_slug)
        raise SessionEnded(
            _("This session has ended. Speak to the agent itself: without a session's id."),
            liveSessionId=str(live) if live else None,
        )


def live_session(workspace: Workspace, slug: str) -> UUID | None:
    """The one session of an orchestrator that takes messages."""
    rows = Session.objects.filter(workspace=workspace, agent_slug=slug, kind=SessionKind.ORCHESTRATOR)
    found: UUID | None = rows.filter(status__in=LIVE).values_list("pk", flat=True).first()
    return found


def _check_unchanged(session: Session, opening: Opening) -> None:
    """What belongs to a session is said when it is made. Another value later would be ignored: refused."""
    directory = allowed_directory(session.workspace, session.trust_level, opening.working_directory)
    for name, given, held in (
        ("workspace", opening.workspace, session.workspace.slug),
        ("agent", opening.agent, session.agent_slug),
        ("trustLevel", opening.trust_level, session.trust_level),
        ("workingDirectory", directory, session.working_directory),
        ("systemPrompt", opening.system_prompt, session.system_prompt),
    ):
        if given and given != held:
            raise Invalid.field(
                name,
                _("This session has its own %(name)s already. Start a new one to choose.") % {"name": name},
            )


def _begun(caller: Caller, opening: Opening) -> Session:
    """A session of its own; of an orchestrator, which has one at a time, the one that lives."""
    workspace = workspace_for(caller, opening.workspace)
    agent = agent_for(workspace, slug=opening.agent, path=opening.agent_path)
    if agent.rights.kind != SessionKind.ORCHESTRATOR:
        return new_session(caller, opening, workspace, agent)
    if caller.on_phone is not None:
        raise Invalid.field("agent", _("This agent runs by itself and takes no chat. Choose another one."))
    live = live_session(workspace, agent.slug)
    try:
        if live is None:
            with transaction.atomic():
                return new_session(caller, opening, workspace, agent)
    except IntegrityError:
        live = live_session(workspace, agent.slug)  # somebody else has begun it just now
    if live is None:
        raise Conflict(_("Two requests met. Send it again."))
    return existing(caller, live, replace(opening, agent=None, model=None, system_prompt=""))


def new_session(caller: Caller, opening: Opening, workspace: Workspace, agent: Agent) -> Session:
    is_orchestrator = agent.rights.kind == SessionKind.ORCHESTRATOR
    trust = _trust(caller, workspace, opening.trust_level, agent)
    text = seen(opening.message) or seen(opening.initial_context)
    title = seen(text.splitlines()[0]) if text else file_names.shown(opening.attachments[0].file_name)
    before = _continued(caller, opening.continued_from)
    contexts = chosen.checked_all(workspace, opening.contexts)
    session = Session(
        workspace=workspace,
        created_by_id=caller.account_id,
        visibility=Visibility.WORKSPACE if is_orchestrator else Visibility.PRIVATE,
        title=title[:LONGEST_DEFAULT_TITLE],
        module=opening.module,
        agent_slug=agent.slug,
        agent_type=opening.agent_type[:LONGEST_TYPE] or agent.rights.kind,
        # What is said to one that runs on a schedule is a chat like any other: a person sits there.
        kind=SessionKind.ORCHESTRATOR if is_orchestrator else SessionKind.WORKER,
        model=allowed_model(opening.model or agent.definition.model, workspace.default_model),
        system_prompt=opening.system_prompt,
        trust_level=trust,
        working_directory=allowed_directory(workspace, trust, opening.working_directory),
        vault_root=workspace.vault_path,
        continued_from=before,
        has_read_strangers=before is not None and before.has_read_strangers,  # it goes on from what that read
    )
    if caller.on_phone is not None:
        _hold_on_phone(session, caller.on_phone)
    session.save(force_insert=True)
    SessionContext.objects.bulk_create(SessionContext(session=session, path=path) for path in contexts)
    return session


def _hold_on_phone(session: Session, there: OnPhone) -> None:
    """Its workspace's, where it is nobody's own; it never acts without asking, and what is said in it was
    said by a stranger."""
    session.source = there.platform
    session.bot_chat, session.bot_chat_type = there.chat, there.chat_type
    session.visibility = Visibility.PRIVATE if there.is_private else Visibility.WORKSPACE
    session.has_read_strangers = True
    session.metadata[PERMISSIONS]["trustMode"] = False


def workspace_for(caller: Caller, slug: str | None) -> Workspace:
    visible = Workspace.objects.visible_to(caller)
    workspace = visible.filter(slug=slug).first() if slug else visible.filter(archived_at=None).first()
    if workspace is None:
        raise NotFound(_("There is no such workspace, or you are no member of it."))
    _check_role(caller, workspace)
    return workspace  # type: ignore[no-any-return]


def check_queue(waiting: int) -> None:
    if waiting >= MOST_WAITING:
        raise QueueFull(
            _("%(count)s messages wait already. Let it catch up, or stop it.") % {"count": MOST_WAITING}
        )


def _check_role(caller: Caller, workspace: Workspace) -> None:
    if not Workspace.objects.filter(caller.within("", MAY_WRITE), pk=workspace.pk).exists():
        raise Forbidden(_("You may read here, and not write. An owner of the workspace can change that."))
    if workspace.archived_at is not None:
        raise Conflict(_("This workspace is archived. An owner of it can take it out of the archive."))


def _trust(caller: Caller, workspace: Workspace, wanted: str | None, agent: Agent) -> str:
    driven = TrustLevel.VAULT if agent.rights.kind == SessionKind.ORCHESTRATOR else None
    if (there := caller.on_phone) is not None:
        most = narrowest(workspace.trust_floor, agent.rights.trust, TrustLevel.VAULT, there.trust)
        check_trust(caller, most, most)
        return most
    most = narrowest(workspace.trust_floor, agent.rights.trust, driven)
    trust = wanted or narrowest(workspace.default_trust, most)
    check_trust(caller, trust, most)
    return trust


def _continued(caller: Caller, session_id: UUID | None) -> Session | None:
    if session_id is None:
        return None
    session = Session.objects.visible_to(caller).filter(pk=session_id).first()
    if session is None:
        raise NotFound(_("The session to continue from does not exist, or you may not see it."))
    return session  # type: ignore[no-any-return]
