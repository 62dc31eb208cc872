"""A call that the server made in the place of an agent, told to the model as one that succeeded.

The CLI has no word for that. What is denied is an error to the model, whatever the reason says. So the call
is allowed with an input that does nothing, in the memory of its wall, and a hook puts in the place of its
result that of the call which was made. What this does not know stays denied.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from permissions_app.gate import Carried
from permissions_app.rules.tools import ToolCall

MEMORY = "/tmp"  # noqa: S108 - of each wall its own

# The CLI says to the model that it need not read the file again, where these do not say otherwise. It has to.
NOT_AS_IT_KNOWS_IT: dict[str, dict[str, Any]] = {
    "Write": {"type": "update", "memdirStamped": True},
    "Edit": {"contentNotInModelContext": True},
}


def instead(call: ToolCall, carried: Carried | None) -> dict[str, Any] | None:
    """What the CLI is to do in the place of a call that has been made. None: it is to be denied."""
    if carried is None or carried.is_error:
        return None
    nowhere = f"{MEMORY}/{uuid4().hex}"
    match call.name:
        case "Write":
            return {"file_path": nowhere, "content": ""}
        case "Edit":
            return {"file_path": nowhere, "old_string": "", "new_string": "\n"}
        case "Bash":
            return {"command": ":"}
    return None


def result(call: ToolCall, carried: Carried, output: Any) -> dict[str, Any]:
    """What a hook says of the result of what was done instead, which may be that even this failed."""
    said: dict[str, Any] = {"additionalContext": carried.text}
    if isinstance(output, Mapping) and call.name == "Bash":
        said["updatedToolOutput"] = {**output, "stdout": carried.text}
    elif isinstance(output, Mapping):
        as_made = {"filePath": call.input["file_path"], **NOT_AS_IT_KNOWS_IT[call.name]}
        said["updatedToolOutput"] = {**output, **as_made}
    return said
