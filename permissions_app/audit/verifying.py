"""Looks through all chains, or one, and says what is not as it was written."""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from permissions_app.audit import chain
from permissions_app.audit.any_value import (
    any_text,
    as_kept,
    in_full,
    is_as_written,
    is_hash,
    is_number,
    session_of,
    shown,
)
from permissions_app.models.audit import AuditChain, AuditRow, AuditSeal

Head = tuple[int, str]  # the number of a row, and its hash
# What is said of each number. Two who say different things are not both right: a row that was cut off was
# written anew, and the end of its chain says so.
Told = dict[int, set[str]]
Heads = dict[UUID, Told]


def problems(session_id: UUID | None = None, logged: Iterable[Head] = ()) -> Iterator[str]:
    """A sentence each; none where all is well. `logged` are seals as the log has them.

    What is appended while it looks is no problem: ends are read before rows.
    """
    with any_text():
        yield from _problems(session_id, logged)


def _problems(session_id: UUID | None, logged: Iterable[Head]) -> Iterator[str]:
    heads: Heads = {}
    known: set[UUID] = set()
    yield from _seals(heads, logged)
    yield from _ends(_of(AuditChain.objects.all(), session_id), heads, known)
    ended = frozenset(known)
    yield from _sessions(_of(AuditRow.objects.all(), session_id), known)
    for each in sorted({*heads, *known}) if session_id is None else [session_id]:
        yield from _chain(each, heads.get(each, {}), is_ended=each in ended)


def _of(rows: QuerySet[Any], session_id: UUID | None) -> QuerySet[Any]:
    return rows if session_id is None else rows.filter(session_id=session_id)


def _seals(heads: Heads, logged: Iterable[Head]) -> Iterator[str]:
    """The seals themselves; and what they say of each chain goes into `heads`."""
    told: Told = {}
    for head in logged:
        _tell(told, head)
    last, previous = 0, chain.BEGINNING
    for _, number, mac, seal in in_full(AuditSeal.objects.order_by("number")):
        if not is_number(number):
            yield f"seal {shown(number)} was changed"
            continue
        yield from _gap("seal", last, number)
        is_whole = is_as_written(seal)
        if not is_whole:
            yield f"seal {number} was changed"
        elif number == last + 1 and seal.previous != previous:
            yield f"seal {number} does not follow the seal before it"
        if told.pop(number, {mac}) != {mac}:
            yield f"seal {number} is another than in the log"
        last, previous = number, mac
        if is_whole:
            yield from _sealed(seal, heads)
    yield from (f"seal {number} is in the log and missing here" for number in sorted(told))


def _sealed(seal: AuditSeal, heads: Heads) -> Iterator[str]:
    for session, (number, mac) in seal.heads.items():
        if is_number(number):
            _tell(heads.setdefault(UUID(session), {}), (number, mac))
        else:  # by a server that did not look
            yield f"session {session}: the end of its chain was changed before seal {seal.number}"


def _ends(chains: QuerySet[AuditChain], heads: Heads, known: set[UUID]) -> Iterator[str]:
    """Where each chain says that it ends goes into `heads` too."""
    kept = chains.order_by().values_list(as_kept("session_id"), "number", "sealed", "mac")
    for named, number, sealed, mac in kept.iterator():
        session = session_of(named)
        if session is None:
            yield f"the end of a chain was changed: it names no session but {shown(named)}"
            continue
        known.add(session)
        if is_number(number, 0) and is_number(sealed, 0) and is_hash(mac):
            _tell(heads.setdefault(session, {}), (number, mac))
        else:
            yield f"session {session}: the end of its chain was changed"


def _sessions(rows: QuerySet[AuditRow], known: set[UUID]) -> Iterator[str]:
    """Those that rows name go into `known`."""
    for named in rows.order_by().values_list(as_kept("session_id"), flat=True).distinct():
        session = session_of(named)
        if session is None:
            yield f"a row was changed: it names no session but {shown(named)}"
        else:
            known.add(session)


def _chain(session_id: UUID, told: Told, *, is_ended: bool) -> Iterator[str]:
    last, previous = 0, chain.BEGINNING
    for _, number, mac, row in in_full(AuditRow.objects.filter(session_id=session_id).order_by("number")):
        where = f"session {session_id}: row {shown(number)}"
        if not is_number(number):
            yield f"{where} was changed or moved"
            continue
        yield from _gap(f"session {session_id}: row", last, number)
        if not is_as_written(row):
            yield f"{where} was changed or moved"
        elif number == last:
            yield f"{where} is there twice"
        elif number == last + 1 and row.previous != previous:
            yield f"{where} does not follow the row before it"
        elif told.get(number, {mac}) != {mac}:
            yield f"{where} is another than the chain's end or a seal says"
        last, previous = number, mac
    newest = max(told, default=0)
    if newest > last:
        yield f"session {session_id}: rows {last + 1} to {newest} were cut off"
    if last and not is_ended:
        yield f"session {session_id}: the end of its chain is missing"


def _tell(told: Told, head: Head) -> None:
    number, mac = head
    told.setdefault(number, set()).add(mac)


def _gap(what: str, last: int, number: int) -> Iterator[str]:
    """One sentence, however many they are: a number that was changed can be as large as it likes."""
    if number == last + 2:
        yield f"{what} {last + 1} is missing"
    elif number > last + 2:
        yield f"{what}s {last + 1} to {number - 1} are missing"
