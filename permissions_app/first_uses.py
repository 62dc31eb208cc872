"""Tools of servers that ask on their first use: which of them people allowed in a session by now."""

from uuid import UUID

from permissions_app.models.requests import GOOD, ToolRequest

RULE = "first_use"


def used_before(session_id: UUID) -> frozenset[str]:
    allowed = ToolRequest.objects.filter(session=session_id, rule=RULE, status__in=GOOD)
    return frozenset(allowed.values_list("tool_name", flat=True))
