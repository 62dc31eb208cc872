"""How a CLI is started, always: the closed set of options.

Nothing that lies in the vault or above it may run a command, redirect the model or speak for the gate, so
every door that the CLI has for that is shut here by name. `tests/contracts` proves it with the real CLI.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.types import (
    CanUseTool,
    HookCallback,
    HookEvent,
    SdkPluginConfig,
    SystemPromptFile,
    SystemPromptPreset,
)
from django.conf import settings

from agents_app import launcher
from agents_app.launcher.walled import Around, Until, with_vault
from agents_app.runtimes.base import RunRequest
from agents_app.runtimes.claude.servers import Uses, as_sdk
from agents_app.sandboxes.base import Launch
from agents_app.tools.mcp.given import file_for
from agents_app.tools.mcp.relayed import relay_for, relayed
from agents_app.tools.offered import OFFERED
from agents_app.tools.skills.given import write_plugin

DOOR = "http://door.invalid"  # never resolved: the CLI speaks to the door's socket
CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
BUFFER = 64 << 20  # a picture of 2 MB would kill the client at the default
GATE_TIMEOUT = 60.0

TOOLS_WITH_A_NETWORK = [*OFFERED]
TOOLS = [name for name in OFFERED if name != "WebFetch"]

RETRIES = {
    "CLAUDE_CODE_MAX_RETRIES": "8"
}  # in 107 s, each told at once; the default of 10 takes three minutes
SERVERS_HAVE = {  # ms: to start, and to answer one call
    "MCP_TIMEOUT": "10000",
    "MCP_TOOL_TIMEOUT": "300000",
    "MAX_MCP_OUTPUT_TOKENS": "25000",
}
LONGEST_COMMAND = 600_000  # ms: what the CLI lets a model ask for
SWITCHED_OFF = {
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",  # the SDK sets it where it is cleared away
}


@dataclass(frozen=True)
class Hooks:
    """What the CLI asks us: before each tool, once more where a person decides, and, behind a wall, after
    what it or the server has done there."""

    gate: HookCallback
    ask: CanUseTool
    after: HookCallback


def options_for(
    request: RunRequest, *, launch: Launch, papers: Path, deny: list[str], hooks: Hooks, uses: Uses
) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(
        cli_path=launcher.executable(Path(settings.PARACHUTE_HOME) / "launcher"),
        env=launcher.orders_for(launch),
        cwd=request.directory,
        model=request.model,
        tools=_tools(request),
        max_turns=request.max_turns,
        setting_sources=[],
        strict_mcp_config=True,
        mcp_servers=dict(as_sdk(request.servers, uses)),  # no other: these are functions, the rest is argv
        verbatim_prompts=True,
        permission_mode="default",
        include_partial_messages=True,
        max_buffer_size=BUFFER,
        settings=json.dumps(_settings(deny)),
        plugins=_plugins(request),
        hooks=_hooks(request, hooks),
        can_use_tool=hooks.ask,
        resume=str(request.session_id) if request.resume else None,
        session_id=None if request.resume else str(request.session_id),
        system_prompt=_system_prompt(request, papers),
        extra_args=_extra(request, papers),
    )


def _tools(request: RunRequest) -> list[str]:
    """Those of the CLI that work where it runs, and of these what its agent may use."""
    offered = TOOLS if request.sandbox.is_wall and not request.web else TOOLS_WITH_A_NETWORK
    return offered if request.tools is None else [name for name in offered if name in request.tools]


def _plugins(request: RunRequest) -> list[SdkPluginConfig]:
    """One, which we wrote: the vault's own plugins bring hooks and servers with them."""
    if not request.skills or not request.skills_at or not request.skills_at.exists():
        return []
    return [{"type": "local", "path": str(request.skills_at)}]


def _hooks(request: RunRequest, hooks: Hooks) -> dict[HookEvent, list[HookMatcher]]:
    before = HookMatcher(hooks=[hooks.gate], timeout=GATE_TIMEOUT, on_failure="block")
    if not request.sandbox.is_wall:
        return {"PreToolUse": [before]}
    after = HookMatcher(matcher="Bash|Write|Edit", hooks=[hooks.after])
    return {"PreToolUse": [before], "PostToolUse": [after], "PostToolUseFailure": [after]}


@dataclass(frozen=True)
class Doors:
    """The ways out of a process: to the model, with its token, and to the web, where it may."""

    token: str
    model: Path
    web: Callable[[Launch], Launch] | None = None


def launch_for(request: RunRequest, *, papers: Path, mark: str, doors: Doors, until: Until) -> Launch:
    """The process itself: exactly this environment, exactly these places, behind the request's wall. What the
    wall leaves on the host is undone."""
    environment = {
        **RETRIES,
        **settings.PARACHUTE_AGENT_ENVIRONMENT,
        **SWITCHED_OFF,
        "CLAUDE_AGENT_SDK_VERSION": claude_agent_sdk.__version__,
        "CLAUDE_CONFIG_DIR": str(request.config),
        "ANTHROPIC_API_KEY": doors.token,
        "ANTHROPIC_BASE_URL": DOOR,
        "ANTHROPIC_UNIX_SOCKET": str(doors.model),
        launcher.MARK: mark,
    }
    if request.web:
        environment |= _patience()
    if request.given:
        environment |= SERVERS_HAVE
    if request.sandbox.is_wall and request.scratch:
        request.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment["TMPDIR"] = str(request.scratch)
    with_skills = _with_skills(request)
    launch = Launch(
        argv=(str(CLI),),
        environment=environment,
        directory=request.directory,
        vault=request.vault,
        writable=(request.config,),
        readable=(CLI, papers, doors.model, *_shown(request), *_of_servers(request), *with_skills),
        masked=request.masked,
    )
    launch = doors.web(launch) if doors.web else launch
    if not request.sandbox.is_wall:
        return request.sandbox.confine(launch)
    until.ends.callback(request.sandbox.end, mark)
    around = Around(request.vault, request.directory, request.writable, request.masked, request.sandbox)
    return request.sandbox.confine(with_vault(launch, around, until))


def _shown(request: RunRequest) -> list[Path]:
    files = [*request.opened, *([request.mcp_file] if request.mcp_file else [])]
    return [*filter(_is_plain_file, files)]


def _with_skills(request: RunRequest) -> tuple[Path, ...]:
    """Its agent reads them and does not change them, so they are bound once more within its own folder."""
    place = request.skills_at
    if place is None or not request.skills:
        return ()
    is_there = write_plugin(request.vault, request.skills, request.config, place)
    return (place,) if is_there else ()


def _of_servers(request: RunRequest) -> tuple[Path, ...]:
    return relay_for(request.sandbox).needs if request.has_processes else ()


def _patience() -> dict[str, str]:
    """A command that waits for a person at the egress door is not cut while they may answer: two minutes, as
    each has without this, come after."""
    patience = round((settings.PARACHUTE_PERMISSION_TIMEOUT + 120) * 1000)
    return {
        "BASH_DEFAULT_TIMEOUT_MS": str(patience),
        "BASH_MAX_TIMEOUT_MS": str(max(patience, LONGEST_COMMAND)),
    }


def _is_plain_file(path: Path) -> bool:
    """Through no link: who made one could have any file shown."""
    return path.is_file() and path.resolve() == path


def _settings(deny: list[str]) -> Mapping[str, object]:
    return {
        "disableAllHooks": True,  # those of files; the gate is a hook of the SDK and stays
        "disableSkillShellExecution": True,
        "skipWebFetchPreflight": True,  # or each host is told to api.anthropic.com before it is fetched from
        "permissions": {"deny": deny},
        "env": {"ANTHROPIC_BASE_URL": DOOR},
    }


def _system_prompt(request: RunRequest, papers: Path) -> SystemPromptFile | SystemPromptPreset:
    """Prompts go by file: a command line is readable by every user and ends at 131 KB."""
    if not request.system_prompt:
        return {"type": "preset", "preset": "claude_code"}
    own = papers / "system.md"
    own.write_text(request.system_prompt)
    return {"type": "file", "path": str(own)}


def _mcp_file(request: RunRequest, papers: Path) -> Path | None:
    """Secrets may be in it: nobody else reads it, and no command line holds them."""
    if not request.given:
        return None
    file = papers / "mcp.json"
    file.touch(mode=0o600)
    relay = relay_for(request.sandbox)
    file.write_text(file_for((each.name, relayed(each, relay)) for each in request.given))
    return file


def _extra(request: RunRequest, papers: Path) -> dict[str, str | None]:
    extra: dict[str, str | None] = {
        "system-prompt-snapshot": "off",  # or a resume keeps the old prompt
        "replay-user-messages": None,  # what was said is told back once it is read
    }
    if file := request.mcp_file or _mcp_file(request, papers):
        extra["mcp-config"] = str(file)
    if request.append:
        append = papers / "append.md"
        append.write_text(request.append)
        extra["append-system-prompt-file"] = str(append)
    return extra
