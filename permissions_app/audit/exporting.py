"""Rows as JSONL: a line each, oldest first, with what is needed to check them elsewhere."""

import json
from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from permissions_app.audit.any_value import NOT_READABLE, any_text, in_full
from permissions_app.models.audit import AuditRow


def lines(rows: QuerySet[AuditRow]) -> Iterator[str]:
    with any_text():
        for key, _, _, row in in_full(rows.order_by("at", "pk")):
            yield _line(key, row)


def _line(key: Any, row: AuditRow | None) -> str:
    """Of a row that cannot be read any more it is said that it is there: else all after it were lost too."""
    try:
        said = {**row.content(), "previous": row.previous, "mac": row.mac}  # type: ignore[union-attr]
        line = json.dumps(said, ensure_ascii=False, allow_nan=False) + "\n"
        line.encode()
    except NOT_READABLE:
        return json.dumps({"row": key, "unreadable": True}, default=repr) + "\n"
    return line
