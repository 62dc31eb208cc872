"""From a claimed turn to all that its run needs: directory, wall, prompt, and how to take it up."""

import os
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents_app.definitions.agents import offered
from agents_app.definitions.choosing import Cast, Warned, cast_of
from agents_app.definitions.rights import Rights
from agents_app.errors import AgentError
from agents_app.orchestration import supervision
from agents_app.prompts.assembled import Prompt, assembled
from agents_app.rights.acting import is_somebodys
from agents_app.rights.allowed import too_high
from agents_app.rights.trust import is_above, most_for
from agents_app.runtimes.base import RunRequest
from agents_app.sandboxes.base import Sandbox
from agents_app.sandboxes.placeholders import is_ours
from agents_app.sandboxes.walls import wall_for
from agents_app.tools.equipment import equipment_of
from agents_app.tools.own import servers_for
from agents_app.turns.running.kept import Row
from agents_app.turns.running.starting import Start, start_of
from agents_app.turns.running.watching import deadline_of
from agents_app.turns.said.saying import about
from permissions_app.audit import PLATFORM
from permissions_app.audit.decisions import TurnAudit
from permissions_app.rules.control_files import control_files_in
from permissions_app.rules.setting import Patterns, Setting, Trust
from permissions_app.session_permissions import acts_unwalled, acts_without_asking, patterns_of
from sessions_app.access.models import TrustLevel
from sessions_app.files import attachments
from sessions_app.history import transcripts
from sessions_app.metadata import Metadata
from sessions_app.models import EventType, Message, Session, Speaker, Turn


@dataclass(frozen=True)
class Prepared:
    request: RunRequest
    setting: Setting
    start: Start
    rows: list[Row]  # how it is announced
    previous_messages: int
    resume_failed: bool
    audit: TurnAudit
    deadline: timedelta | None


def prepare(turn: Turn, unresumable: str = "") -> Prepared:
    session: Session = turn.session
    vault = _vault(session)
    cast = cast_of(session)
    warnings: list[Row] = [as_row(each) for each in cast.warned]
    _check_floor(session, cast.rights)
    directory = _directory(session, vault, warnings)
    wall = wall_for(session.trust_level, session.workspace)
    if wall.warning:
        warnings.append(_warning("no_wall", "No wall here", wall.warning))
    start = start_of(turn, vault, directory, unresumable=unresumable)
    chosen = list(session.contexts.values_list("path", flat=True))
    block = supervision.at_turn(session, cast.definition)
    prompt = assembled(
        cast.definition,
        own=session.system_prompt,
        vault=vault,
        directory=directory,
        chosen=chosen,
        block=block,
    )
    request = _as_its_agent(_request(turn, start, prompt, vault, directory, wall.sandbox), session, cast)
    tools = equipment_of(session, cast, wall.sandbox)
    warnings += [as_row(each) for each in tools.warned]
    request = replace(request, given=tools.servers, skills=tools.skills)
    request = replace(request, skills_at=_scratch(session, request) / "skills")
    setting = _with_servers(_setting(session, request, start.message, cast.rights), request, tools.hosts)
    if closed := _closed(session, vault):
        request, setting = _without_others(closed, request, setting)
    rows = _announcement(session, start, warnings, _about_prompt(cast, request, prompt, setting, session))
    return Prepared(
        request,
        setting,
        start,
        rows,
        previous_messages=session.message_count,
        resume_failed=bool(unresumable),
        audit=_audit(turn, start.message),
        deadline=deadline_of(session, cast.definition.fields.timeout_seconds),
    )


def _request(
    turn: Turn, start: Start, prompt: Prompt, vault: Path, directory: Path, sandbox: Sandbox
) -> RunRequest:
    session = turn.session
    config = transcripts.config_folder(session.pk)
    is_box = session.trust_level == TrustLevel.SANDBOXED
    system, append = prompt.sent()
    return RunRequest(
        session_id=session.pk,
        turn_id=turn.pk,
        message_id=start.message.pk,
        text=start.text,
        resume=start.resumes,
        model=session.model,
        system_prompt=system,
        append=append,
        directory=directory,
        vault=vault,
        config=config,
        sandbox=sandbox,
        web=sandbox.is_wall and session.trust_level == TrustLevel.VAULT,
        masked=(Path(settings.PARACHUTE_HOME), vault / ".claude" / "projects"),
        read_only=_control_files(vault, directory),
        scratch=_own_folder(session, config, directory) / "scratch" if is_box else None,
        servers=servers_for(session),
        is_fresh=is_box,
    )


def _as_its_agent(request: RunRequest, session: Session, cast: Cast) -> RunRequest:
    """With the rights and limits of its agent: a process that rests with others does not fit."""
    writable = _writable(session, cast.rights)
    most = cast.definition.fields.max_turns
    return replace(request, tools=cast.rights.tools, writable=writable, max_turns=most)


def _closed(session: Session, vault: Path) -> attachments.Closed | None:
    try:
        return attachments.closed_to(session, vault)
    except OSError as error:  # what cannot be hidden is no reason to show it
        why = _("The files of other chats in %(vault)s could not be hidden (%(error)s).")
        raise AgentError("sandbox_unavailable", why % {"vault": vault, "error": error.strerror}) from error


def _without_others(
    closed: attachments.Closed, request: RunRequest, setting: Setting
) -> tuple[RunRequest, Setting]:
    masked = (*request.masked, closed.folder)
    closed_files, opened = frozenset(closed.files), frozenset(closed.opened)
    return replace(request, masked=masked, opened=closed.opened), replace(
        setting, closed=closed.folder, opened=opened, closed_files=closed_files
    )


def _control_files(*folders: Path) -> tuple[Path, ...]:
    """Without names of ours: a process that rests holds them, and would not fit because of them."""
    return tuple(path for folder in folders for path in control_files_in(folder) if not is_ours(path))


def _audit(turn: Turn, message: Message) -> TurnAudit:
    nobody = "bot" if message.source == Speaker.BOT else PLATFORM  # somebody on a phone, with no account here
    who = f"user:{message.author_id}" if message.author_id else nobody
    return TurnAudit(who, turn.session.workspace_id, turn.session_id, turn.pk)


def _announcement(
    session: Session, start: Start, warnings: list[Row], about_prompt: dict[str, Any]
) -> list[Row]:
    """What comes before the work: how it is resumed, what a person should know, and what the prompt is."""
    lost = [row for row in start.rows if row[0] == EventType.SESSION_UNAVAILABLE]
    told = [row for row in start.rows if row not in lost]
    return [
        *lost,
        (EventType.SESSION, about(session, _resume_info(session, start))),
        *told,
        *warnings,
        (EventType.PROMPT_METADATA, about_prompt),
    ]


def _resume_info(session: Session, start: Start) -> dict[str, Any]:
    return {
        "method": start.method,
        "isNewSession": start.method == "new" and session.message_count == 0,
        "previousMessageCount": session.message_count,
        "sdkSessionAvailable": start.resumes,
    }


def _vault(session: Session) -> Path:
    vault = Path(session.workspace.vault_path).resolve()
    if not _may_be_entered(vault):
        gone = _("The vault %(vault)s is not there.")
        closed = _("The vault %(vault)s is not there or closed to the user that Parachute runs as.")
        raise AgentError("vault_gone", (closed if os.path.lexists(vault) else gone) % {"vault": vault})
    return vault


def _may_be_entered(folder: Path) -> bool:
    """Not where an agent has closed it to its own user, us."""
    return os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK, effective_ids=True)  # noqa: PTH112


def _check_floor(session: Session, rights: Rights) -> None:
    """Once more: the workspace, the agent or its parent may have been restricted since the message was
    taken."""
    parent = session.parent
    most = most_for(session, rights.trust, parent.trust_level if parent else None)
    if is_above(session.trust_level, most):
        raise AgentError("trust_too_high", too_high(most))


def _directory(session: Session, vault: Path, warnings: list[Row]) -> Path:
    """Where it works. One that is gone or closed, or that leads out of the vault by now, becomes the vault's
    root."""
    if not session.working_directory:
        return vault
    wanted = Path(session.working_directory).resolve()
    inside = session.trust_level == TrustLevel.FULL or wanted.is_relative_to(vault)
    if inside and _may_be_entered(wanted):
        return wanted
    where = session.working_directory
    text = f"{where} is not there any more, or nobody may look into it. The vault's root is used instead."
    warnings.append(_warning("working_directory_gone", "The working directory is gone", text))
    return vault


def _is_operator(user: User | None) -> bool:
    return user is not None and user.is_active and user.is_staff


def _writable(session: Session, rights: Rights) -> tuple[str, ...] | None:
    """What of the vault a wall leaves writable: what may be written without asking, as its process starts. An
    agent that says where it writes has no more than that, in whatever mode."""
    if session.trust_level == TrustLevel.SANDBOXED:
        return ()
    if acts_without_asking(session.metadata) and is_somebodys(session):
        return rights.write
    allowed = Rights(write=tuple(session.metadata["permissions"]["write"]))
    return allowed.narrowed(rights).write


def _own_folder(session: Session, config: Path, directory: Path) -> Path:
    """Where the CLI keeps what belongs to the session, beside the transcript."""
    return config / "projects" / transcripts.encoded(directory) / str(session.pk)


def _scratch(session: Session, request: RunRequest) -> Path:
    """Where the CLI puts a tool's output that is too large for the model, and tells it to read there. In a
    box all of its folder may be written too."""
    own = _own_folder(session, request.config, request.directory)
    return own if request.scratch else own / "tool-results"


def _setting(session: Session, request: RunRequest, message: Message, rights: Rights) -> Setting:
    setting = Setting(
        trust=Trust(session.trust_level),
        behind_wall=request.sandbox.is_wall,
        operator=_is_operator(session.created_by) and _is_operator(message.author),
        vault=request.vault,
        working_directory=request.directory,
        home=Path(settings.PARACHUTE_HOME).resolve(),
        scratch=_scratch(session, request),
        own_config=None,  # but for that it lies in our home, which is closed as a whole
        own_servers=frozenset(server.name for server in request.servers),
        agent_writes=rights.write,
        agent_allows=Patterns(rights.read, (), rights.bash),
    )
    return as_permitted(setting, session, session.metadata)


def _with_servers(setting: Setting, request: RunRequest, hosts: frozenset[str]) -> Setting:
    return replace(
        setting,
        accepted_servers=frozenset(each.name for each in request.given),
        asking_servers=frozenset(each.name for each in request.given if each.asks),
        server_hosts=hosts,
    )


def as_permitted(setting: Setting, session: Session, metadata: Metadata) -> Setting:
    """With what people have allowed the session. It acts without asking only where a wall holds what it does,
    or an operator said that it need not, of a turn that is an operator's."""
    may_act = setting.behind_wall or (setting.operator and acts_unwalled(metadata))
    trust_mode = acts_without_asking(metadata) and may_act and is_somebodys(session)
    patterns = patterns_of(metadata).and_those_of(setting.agent_allows)
    if (patterns, trust_mode) == (setting.patterns, setting.trust_mode):
        return setting
    return replace(setting, patterns=patterns, trust_mode=trust_mode)


def _about_prompt(
    cast: Cast, request: RunRequest, prompt: Prompt, setting: Setting, session: Session
) -> dict[str, Any]:
    return {
        "promptSource": prompt.source,
        "contextFiles": list(prompt.context.files),
        "contextTokens": prompt.context.tokens,
        "contextTruncated": prompt.context.truncated,
        "agentName": cast.definition.slug,
        "availableAgents": [each.slug for each in offered(session.workspace)],
        "availableSkills": [each.name for each in request.skills],
        "availableMcps": [each.name for each in request.given],
        "totalPromptTokens": prompt.tokens,
        "trustMode": setting.trust_mode,
    }


def as_row(warned: Warned) -> Row:
    return _warning(warned.code, warned.title, warned.message)


def _warning(code: str, title: str, message: str) -> Row:
    return EventType.WARNING, {"code": code, "title": title, "message": message, "details": []}
