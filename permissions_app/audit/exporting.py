"""Rows as JSONL: a line each, oldest first, with what is needed to check them elsewhere."""

import json
from collections.abc import Iterator

from django.db.models import QuerySet

from permissions_app.models.audit import AuditRow


def lines(rows: QuerySet[AuditRow]) -> Iterator[str]:
    for row in rows.order_by("at", "pk").iterator(chunk_size=500):
        yield (
            json.dumps({**row.content(), "previous": row.previous, "mac": row.mac}, ensure_ascii=False) + "\n"
        )
