"""What somebody pasted for a new server: an entry, or the whole of what its documentation shows."""

import json
from typing import Any

from django.utils.translation import gettext as _

from agents_app.tools.mcp.files import KEY, LARGEST
from sessions_app import bounded_json
from sessions_app.errors import Invalid


def pasted(name: str, text: str) -> tuple[str, dict[str, Any]]:
    """A name and an entry. Raises Invalid."""
    if len(text) > LARGEST:
        raise Invalid.field("config", _("This is too long."))
    try:
        found = bounded_json.read(text.strip() or "{}")
    except Invalid as error:
        raise Invalid.field(
            "config", _("The entry cannot be read as JSON%(where)s.") % {"where": _where(text)}
        ) from error
    return entry_in(name, found)


def entry_in(name: str, found: object) -> tuple[str, dict[str, Any]]:
    """Out of `mcpServers`, or out of what its name stands around. Raises Invalid."""
    if isinstance(found, dict) and isinstance(found.get(KEY), dict):
        found = found[KEY]
    if not isinstance(found, dict) or not found:
        raise Invalid.field(
            "config", _('Give an entry, such as {"command": "python3", "args": ["server.py"]}.')
        )
    if "command" in found or "url" in found or not all(isinstance(each, dict) for each in found.values()):
        return name, found
    if len(found) == 1:
        ((only, config),) = found.items()
        return name or only, config
    if name in found:
        return name, found[name]
    raise Invalid.field("config", _("There are several servers in it. Give one at a time."))


def _where(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _(" (line %(line)d: %(why)s)") % {"line": error.lineno, "why": error.msg}
    except (ValueError, RecursionError):
        pass
    return ""
