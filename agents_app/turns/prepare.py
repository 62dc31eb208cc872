"""From a claimed turn to all that its run needs: directory, wall, prompt, and how to take it up."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User

from agents_app import contexts
from agents_app.errors import AgentError
from agents_app.runtimes.base import RunRequest
from agents_app.walls import wall_for
from permissions_app.rules.control_files import control_files_in
from permissions_app.rules.setting import Setting, Trust
from sessions_app import transcripts
from sessions_app.access.models import TrustLevel
from sessions_app.models import Message, Session, SessionEvent, Speaker, Turn
from sessions_app.models.event import WORK

INTERRUPTED = (
    "You were interrupted: the process that ran you ended before you had finished. What a tool was doing at "
    "that moment may have happened or not; look before you repeat it. Go on from where you were."
)


@dataclass(frozen=True)
class Prepared:
    request: RunRequest
    setting: Setting
    prompt: dict[str, Any]  # the `prompt_metadata` event
    resume_info: dict[str, Any]
    warnings: list[dict[str, Any]] = field(default_factory=list)


def prepare(turn: Turn) -> Prepared:
    session: Session = turn.session
    warnings: list[dict[str, Any]] = []
    vault = _vault(session)
    directory = _directory(session, vault, warnings)
    wall = wall_for(session.trust_level, session.workspace)
    if wall.warning:
        warnings.append(_warning("no_wall", "No wall here", wall.warning))
    message, text, resume_info = _how_to_start(turn)
    # A system prompt of one's own stands alone; the context files belong to the preset.
    context = contexts.NONE if session.system_prompt else contexts.assemble(vault, directory)
    config = transcripts.config_folder(session.pk)
    request = RunRequest(
        session_id=session.pk,
        turn_id=turn.pk,
        message_id=message.pk,
        text=text,
        resume=bool(resume_info["sdkSessionAvailable"]),
        model=session.model,
        system_prompt=session.system_prompt,
        append=context.text,
        directory=directory,
        vault=vault,
        config=config,
        sandbox=wall.sandbox,
        masked=(Path(settings.PARACHUTE_HOME), vault / ".claude" / "projects"),
        read_only=tuple(path for folder in (vault, directory) for path in control_files_in(folder)),
    )
    operators = _is_operator(session.created_by) and _is_operator(message.author)
    setting = _setting(session, request, is_wall=wall.sandbox.is_wall, operator=operators)
    return Prepared(request, setting, _about_prompt(session, context), resume_info, warnings)


def _vault(session: Session) -> Path:
    vault = Path(session.workspace.vault_path).resolve()
    if not vault.is_dir():
        raise AgentError("unknown_error", f"The vault {vault} is not there.")
    return vault


def _directory(session: Session, vault: Path, warnings: list[dict[str, Any]]) -> Path:
    """Where it works. One that is gone, or that leads out of the vault by now, becomes the vault's root."""
    if not session.working_directory:
        return vault
    wanted = Path(session.working_directory).resolve()
    inside = session.trust_level == TrustLevel.FULL or wanted.is_relative_to(vault)
    if inside and wanted.is_dir():
        return wanted
    text = f"{session.working_directory} is not there any more. The vault's root is used instead."
    warnings.append(_warning("working_directory_gone", "The working directory is gone", text))
    return vault


def _how_to_start(turn: Turn) -> tuple[Message, str, dict[str, Any]]:
    """The transcript decides: none, a new start; without our message, resume and say it; with it, resume and
    say that it was interrupted. The CLI writes its transcript a moment late: where it does not know what our
    rows know, the message is said again, and that it was interrupted with it."""
    message: Message = turn.messages.exclude(source=Speaker.PLATFORM).get()
    transcript = _transcript(turn.session_id)
    info = {
        "method": "new" if transcript is None else "sdk_resume",
        "isNewSession": transcript is None and turn.session.message_count == 0,
        "previousMessageCount": turn.session.message_count,
        "sdkSessionAvailable": transcript is not None,
    }
    if transcript is None or not transcripts.holds(transcript, message.pk):
        text = _with_context(message)
        return message, f"{INTERRUPTED}\n\n{text}" if _has_worked(turn) else text, info
    note: Message = Message.objects.create(
        id=uuid4(),
        session=turn.session,
        turn=turn,
        source=Speaker.PLATFORM,
        author=message.author,
        content=INTERRUPTED,
    )
    return note, note.content, info


def _transcript(session_id: UUID) -> bytes | None:
    """None, too, where it was begun and nothing is said in it yet: the CLI resumes no such thing."""
    transcript = transcripts.raw(session_id)
    return transcript if transcript and any(transcripts.entries(transcript)) else None


def _has_worked(turn: Turn) -> bool:
    return SessionEvent.objects.filter(turn=turn, type__in=WORK).exists()


def _with_context(message: Message) -> str:
    text = message.content
    if message.context and text:
        text = f"## Context\n\n{message.context}\n\n---\n\n## Request\n\n{text}"
    elif message.context:
        text = message.context
    if message.prior_conversation:
        text = f"## Prior conversation\n\n{message.prior_conversation}\n\n---\n\n{text}"
    return text


def _is_operator(user: User | None) -> bool:
    return user is not None and user.is_active and user.is_staff


def _tool_results(request: RunRequest) -> Path:
    project = request.config / "projects" / transcripts.encoded(request.directory)
    return project / str(request.session_id) / "tool-results"


def _setting(session: Session, request: RunRequest, *, is_wall: bool, operator: bool) -> Setting:
    return Setting(
        trust=Trust(session.trust_level),
        behind_wall=is_wall,
        operator=operator,
        vault=request.vault,
        working_directory=request.directory,
        home=Path(settings.PARACHUTE_HOME).resolve(),
        # Where the CLI puts a tool's output that is too large for the model, and tells it to read there.
        scratch=_tool_results(request),
        own_config=None,  # but for that it lies in our home, which is closed as a whole
        own_servers=frozenset(),
    )


def _about_prompt(session: Session, context: contexts.Context) -> dict[str, Any]:
    own = session.system_prompt
    return {
        "promptSource": "custom" if own else "claude_code_preset",
        "contextFiles": list(context.files),
        "contextTokens": context.tokens,
        "contextTruncated": context.truncated,
        "agentName": session.agent_slug,
        "availableAgents": [],
        "availableSkills": [],
        "availableMcps": [],
        "totalPromptTokens": context.tokens + contexts.tokens_of(own),
        "trustMode": session.metadata["permissions"]["trustMode"],
    }


def _warning(code: str, title: str, message: str) -> dict[str, Any]:
    return {"code": code, "title": title, "message": message, "details": []}
