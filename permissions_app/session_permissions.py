"""What people have allowed a session, as its metadata keeps it and as the rules read it."""

from pathlib import Path
from typing import Any

from django.conf import settings

from permissions_app.models import ToolRequest
from permissions_app.rules.setting import Patterns, Setting, Trust
from permissions_app.rules.tools import ToolCall
from sessions_app.access.models import TrustLevel
from sessions_app.metadata import PERMISSIONS, UNWALLED, Metadata
from sessions_app.models import Session


def patterns_of(metadata: Metadata) -> Patterns:
    """What is no list there (all, or nothing) gives no pattern: only what a person named is one."""
    kept = metadata.get(PERMISSIONS, {})
    return Patterns(*(_listed(kept.get(name)) for name in ("read", "write", "bash")))


def acts_without_asking(metadata: Metadata) -> bool:
    return bool(metadata.get(PERMISSIONS, {}).get("trustMode", False))


def acts_unwalled(metadata: Metadata) -> bool:
    return bool(metadata.get(UNWALLED, False))


def with_trust_mode(metadata: Metadata, *, unwalled: bool) -> Metadata:
    """What was given for another wall is not given for this one."""
    kept = {name: value for name, value in metadata.items() if name != UNWALLED}
    kept[PERMISSIONS] = {**metadata[PERMISSIONS], "trustMode": True}
    return {**kept, UNWALLED: True} if unwalled else kept


def with_patterns(metadata: Metadata, patterns: Patterns) -> Metadata:
    kept = {**metadata[PERMISSIONS], "read": list(patterns.read), "write": list(patterns.write)}
    kept["bash"] = list(patterns.bash) or kept["bash"]
    return {**metadata, PERMISSIONS: kept}


def call_of(request: ToolRequest) -> ToolCall:
    return ToolCall(request.tool_use_id, request.tool_name, request.input)


def setting_of(request: ToolRequest, session: Session, patterns: Patterns) -> Setting:
    """Enough of the setting in which the call was made to say whether a pattern covers it."""
    return Setting(
        trust=Trust(session.trust_level),
        behind_wall=not request.on_host,
        operator=session.trust_level == TrustLevel.FULL,  # else it could not have been asked about
        vault=Path(session.workspace.vault_path).resolve(),
        working_directory=Path(request.directory),
        home=Path(settings.PARACHUTE_HOME).resolve(),
        scratch=None,
        own_config=None,
        own_servers=frozenset(),
        patterns=patterns,
        trust_mode=False,
    )


def _listed(kept: Any) -> tuple[str, ...]:
    return tuple(kept) if isinstance(kept, list) else ()
