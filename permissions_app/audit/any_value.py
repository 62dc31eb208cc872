"""What is in the tables now, whatever somebody put there. SQLite keeps any value in any column, and one that
cannot be read shall not hide what was changed beside it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from reprlib import repr as shown
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Expression, ExpressionWrapper, F, Model, QuerySet, TextField

from permissions_app.audit import chain

__all__ = [
    "NOT_READABLE",
    "any_text",
    "as_kept",
    "in_full",
    "is_as_written",
    "is_hash",
    "is_number",
    "session_of",
    "shown",
]

AT_ONCE = 500  # rows
# What is raised where something else is in a column than it is for.
NOT_READABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def any_text() -> Iterator[None]:
    """Text that is no UTF-8 is read too: SQLite would give up the whole query for one such value."""
    connection.ensure_connection()
    held = connection.connection
    if connection.vendor != "sqlite":
        yield
        return
    before = held.text_factory
    held.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    try:
        yield
    finally:
        held.text_factory = before


def as_kept(column: str) -> Expression:
    """Of any type, and not made into what the column is for."""
    return ExpressionWrapper(F(column), output_field=TextField())


def session_of(kept: Any) -> UUID | None:
    """None where it is none, or spelled in another way: no chain has such a row, yet it is shown as one of
    that session."""
    if isinstance(kept, UUID):
        return kept
    try:
        known = UUID(kept)
    except NOT_READABLE:
        return None
    return known if known.hex == kept else None


def is_number(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and value >= least


def is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) == len(chain.BEGINNING) and value.isascii()


def is_as_written(row: Any) -> bool:
    try:
        return chain.is_linked(row.mac, row.previous, row.content())
    except NOT_READABLE:
        return False


def in_full(rows: QuerySet[Any], at_once: int = AT_ONCE) -> Iterator[tuple[Any, Any, Any, Any]]:
    """The key of each, its number, its hash, and all that it says: nothing where that cannot be read."""
    plain = rows.values_list("pk", "number", "mac").iterator()
    while batch := list(islice(plain, at_once)):
        found = _readable(rows.model, [key for key, _, _ in batch])
        yield from ((key, number, mac, found.get(key)) for key, number, mac in batch)


def _readable(model: type[Model], keys: list[Any]) -> dict[Any, Any]:
    """What spoils the reading of many is searched for in their halves. Where two have one key, as in a table
    that was made anew, nobody knows which of them is meant."""
    try:
        rows = list(model._default_manager.filter(pk__in=keys))
    except NOT_READABLE:
        half = len(keys) // 2
        return _readable(model, keys[:half]) | _readable(model, keys[half:]) if half else {}
    times = Counter(row.pk for row in rows)
    return {row.pk: row for row in rows if times[row.pk] == 1}
