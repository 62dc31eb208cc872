"""Looks through all chains, or one, and says what is not as it was written."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as chained
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from permissions_app.audit import chain
from permissions_app.models.audit import AuditChain, AuditRow, AuditSeal

Head = tuple[int, str]  # the number of a row, and its hash
AT_ONCE = 500  # rows
NOT_READABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what is in a column


def problems(session_id: UUID | None = None, logged: Iterable[Head] = ()) -> Iterator[str]:
    """A sentence each; none where all is well. `logged` are seals as the log has them.

    What is appended while it looks is no problem: ends are read before rows.
    """
    heads: dict[UUID, list[Head]] = {}
    yield from _seals(heads, dict(logged))
    ends = {each.session_id: (each.number, each.mac) for each in AuditChain.objects.all()}
    rows, lost = _sessions()
    if session_id is None:
        yield from (f"a row was changed: it names no session but {each!r}" for each in lost)
    known = sorted({*heads, *ends, *rows}) if session_id is None else [session_id]
    for each in known:
        yield from _chain(each, ends.get(each), heads.get(each, []))


def _seals(heads: dict[UUID, list[Head]], logged: dict[int, str]) -> Iterator[str]:
    """The seals themselves; and what they say of each chain goes into `heads`."""
    last, previous = 0, chain.BEGINNING
    for number, mac, seal in _read(AuditSeal.objects.order_by("number")):
        yield from _gap("seal", last, number)
        is_whole = _is_as_written(seal)
        if not is_whole:
            yield f"seal {number} was changed"
        elif number == last + 1 and seal.previous != previous:
            yield f"seal {number} does not follow the seal before it"
        if logged.pop(number, mac) != mac:
            yield f"seal {number} is another than in the log"
        last, previous = number, mac
        for session, (newest, head) in seal.heads.items() if is_whole else ():
            heads.setdefault(UUID(session), []).append((newest, head))
    yield from (f"seal {number} is in the log and missing here" for number in sorted(logged))


def _chain(session_id: UUID, end: Head | None, sealed: Sequence[Head]) -> Iterator[str]:
    last, previous = 0, chain.BEGINNING
    told = dict(chained(sealed, [end] if end else []))
    for number, mac, row in _read(AuditRow.objects.filter(session_id=session_id).order_by("number")):
        where = f"session {session_id}: row {number}"
        yield from _gap(f"session {session_id}: row", last, number)
        if not _is_as_written(row):
            yield f"{where} was changed or moved"
        elif number == last + 1 and row.previous != previous:
            yield f"{where} does not follow the row before it"
        elif told.get(number, mac) != mac:
            yield f"{where} is another than the chain's end or a seal says"
        last, previous = number, mac
    newest = max(told, default=0)
    if newest > last:
        yield f"session {session_id}: rows {last + 1} to {newest} were cut off"
    if last and end is None:
        yield f"session {session_id}: the end of its chain is missing"


def _gap(what: str, last: int, number: int) -> Iterator[str]:
    yield from (f"{what} {missing} is missing" for missing in range(last + 1, number))


def _sessions() -> tuple[set[UUID], list[str]]:
    """That rows name; and what they name that is none."""
    named = AuditRow.objects.order_by().annotate(named=Cast("session_id", TextField()))
    known, lost = set(), []
    for text in named.values_list("named", flat=True).distinct():
        try:
            known.add(UUID(text))
        except NOT_READABLE:
            lost.append(text)
    return known, lost


def _read(rows: QuerySet[Any]) -> Iterator[tuple[int, str, Any]]:
    """The number of each, its hash, and all that it says: nothing where that cannot be read any more."""
    plain = rows.values_list("pk", "number", "mac").iterator()
    while batch := list(islice(plain, AT_ONCE)):
        found = _readable(rows.model, [pk for pk, _, _ in batch])
        yield from ((number, mac, found.get(pk)) for pk, number, mac in batch)


def _readable(model: type[Any], keys: list[int]) -> dict[int, Any]:
    """What spoils the reading of many is searched for in their halves."""
    try:
        return dict(model.objects.in_bulk(keys))
    except NOT_READABLE:
        half = len(keys) // 2
        return _readable(model, keys[:half]) | _readable(model, keys[half:]) if half else {}


def _is_as_written(row: Any) -> bool:
    try:
        return chain.is_linked(row.mac, row.previous, row.content())
    except NOT_READABLE:
        return False
