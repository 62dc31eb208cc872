"""What somebody who was let in can say to the bot itself. None of it reaches a model, but for /journal with
words behind it."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.definitions.agents import offered
from agents_app.turns.said.abort import abort
from bots_app.models import BotChat, Delivery, DeliveryKind, DeliveryState, Heard
from bots_app.services import people, saying
from bots_app.services.opening import Said
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.errors import NotFound
from sessions_app.files.folders import Folder
from sessions_app.models import SessionKind, Turn, TurnStatus

HELP = """Say something, and I answer. What I can do besides:

- /new: begin anew; I forget what was said here
- /stop: stop what I am doing
- /status: what I am doing, and for whom
- /agent: who answers here; /agent NAME chooses another one
- /journal: the journal of today; /journal WORDS adds to it
- /help: this"""
LONGEST_JOURNAL = 12_000
TO_JOURNAL = "Add this to the journal of today, {path}. Make the file if it is not there:\n\n{words}"


def run(said: Said) -> bool:
    """Whether it was a command, and is done. What nobody knows is for the agent: paths begin with / too."""
    name, _sep, words = said.lead.text[1:].partition(" ")
    command = _COMMANDS.get(name.partition("@")[0].lower())
    if command is None:
        return False
    if not people.is_let_in(said.lead.bot_user):
        return True
    told = command(said, words.strip())
    if told is None:
        return False
    saying.notice(said.lead.chat, f"command:{said.lead.pk}", told)
    return True


def _help(said: Said, words: str) -> str:
    return _(HELP)


def _new(said: Said, words: str) -> str:
    BotChat.objects.filter(pk=said.lead.chat_id).update(session=None, recent=[])
    return _("A new chat begins with what you say next.")


def _stop(said: Said, words: str) -> str:
    """What runs here, and what waits behind it."""
    caller = people.caller_in(said.lead.bot_user, said.lead.chat)
    stopped = 0
    for turn in reversed(_open_turns(said.lead.chat)):  # what waits would begin when the one before it ends
        with suppress(NotFound):  # it ended by itself
            abort(caller, turn.session_id, turn.pk)
            stopped += 1
    return _("Stopped.") if stopped else _("I am not doing anything.")


def _status(said: Said, words: str) -> str:
    chat, user = said.lead.chat, said.lead.bot_user
    turns = _open_turns(chat)
    running = [turn for turn in turns if turn.status != TurnStatus.QUEUED]
    does = _("working on an answer") if running else _("waiting for you")
    if any(turn.status == TurnStatus.WAITING for turn in running):
        does = _("waiting for somebody to decide something")
    caller = people.caller_in(user, chat)
    assert caller.on_phone is not None
    lines = [
        _("I am %(does)s.") % {"does": does},
        _("Agent: %(agent)s") % {"agent": _agent(chat, said)},
        _("Workspace: %(name)s") % {"name": user.workspace.name or user.workspace.slug},
        _("Reaches: %(trust)s") % {"trust": TrustLevel(caller.on_phone.trust).label},
    ]
    if waits := len(turns) - len(running):
        lines.append(_("Messages that wait: %(n)d") % {"n": waits})
    if failed := Delivery.objects.filter(chat=chat, state=DeliveryState.FAILED).count():
        lines.append(_("Answers that could not be sent: %(n)d") % {"n": failed})
    if user.messages_per_day is not None:
        left = max(user.messages_per_day - user.said, 0) if user.day == timezone.localdate() else None
        lines.append(_("Messages left today: %(n)d") % {"n": user.messages_per_day if left is None else left})
    return "\n".join(lines)


def _choose_agent(said: Said, words: str) -> str:
    """Whoever was let in to one agent speaks to that one."""
    chat, user = said.lead.chat, said.lead.bot_user
    if user.agent:
        return _("%(agent)s answers here, and no other.") % {"agent": user.agent}
    offers = [each for each in offered(user.workspace) if each.rights.kind != SessionKind.ORCHESTRATOR]
    slugs = [each.slug for each in offers]
    if not words:
        known = ", ".join(f"`{slug}`" for slug in slugs)
        return _("%(agent)s answers here. Choose with /agent NAME: %(known)s") % {
            "agent": _agent(chat, said),
            "known": known,
        }
    if words not in slugs:
        return _("There is no agent of that name here. /agent lists them.")
    BotChat.objects.filter(pk=chat.pk).update(agent=words, session=None)
    return _("%(agent)s answers from now on, in a new chat.") % {"agent": words}


def _journal(said: Said, words: str) -> str | None:
    if said.lead.chat.is_group:
        return _("The journal is read in a chat with me alone.")
    workspace = said.lead.bot_user.workspace
    name = f"{_today(workspace)}.md"
    if words:
        whole = TO_JOURNAL.format(path=f"Daily/{name}", words=words)
        with transaction.atomic():
            Heard.objects.filter(pk=said.lead.pk).update(whole=whole)
        said.lead.whole = whole
        return None
    try:
        with Folder.at(Path(workspace.vault_path)) as root, root.below("Daily") as folder:
            text = folder.read(name, first=LONGEST_JOURNAL).decode(errors="replace")
    except OSError:
        return _("There is nothing in the journal of today yet.")
    return text.strip() or _("There is nothing in the journal of today yet.")


def _today(workspace: Workspace) -> str:
    zone = ZoneInfo(workspace.time_zone) if workspace.time_zone else None
    return datetime.now(zone).astimezone(zone).date().isoformat()


def _agent(chat: BotChat, said: Said) -> str:
    user, session = said.lead.bot_user, chat.session
    if user.agent:
        return user.agent
    return session.agent_slug if session else chat.agent or user.workspace.default_agent


def _open_turns(chat: BotChat) -> list[Turn]:
    answers = Delivery.objects.filter(chat=chat, kind=DeliveryKind.ANSWER, state=DeliveryState.WAITING)
    return list(Turn.objects.open().filter(pk__in=answers.values("turn")).order_by("opened_seq"))


_COMMANDS = {
    "help": _help,
    "start": _help,
    "new": _new,
    "stop": _stop,
    "status": _status,
    "agent": _choose_agent,
    "journal": _journal,
}
