"""Looks through all chains, or one, and says what is not as it was written."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as chained
from uuid import UUID

from permissions_app.audit import chain
from permissions_app.models.audit import AuditChain, AuditRow, AuditSeal

Head = tuple[int, str]  # the number of a row, and its hash


def problems(session_id: UUID | None = None, logged: Iterable[Head] = ()) -> Iterator[str]:
    """A sentence each; none where all is well. `logged` are seals as the log has them.

    What is appended while it looks is no problem: ends are read before rows.
    """
    heads: dict[UUID, list[Head]] = {}
    yield from _seals(heads, dict(logged))
    ends = {each.session_id: (each.number, each.mac) for each in AuditChain.objects.all()}
    rows = AuditRow.objects.order_by().values_list("session_id", flat=True).distinct()
    known = sorted({*heads, *ends, *rows}) if session_id is None else [session_id]
    for each in known:
        yield from _chain(each, ends.get(each), heads.get(each, []))


def _seals(heads: dict[UUID, list[Head]], logged: dict[int, str]) -> Iterator[str]:
    """The seals themselves; and what they say of each chain goes into `heads`."""
    last, previous = 0, chain.BEGINNING
    for seal in AuditSeal.objects.order_by("number").iterator():
        yield from _gap("seal", last, seal.number)
        if not chain.is_linked(seal.mac, seal.previous, seal.content()):
            yield f"seal {seal.number} was changed"
        elif seal.number == last + 1 and seal.previous != previous:
            yield f"seal {seal.number} does not follow the seal before it"
        if logged.pop(seal.number, seal.mac) != seal.mac:
            yield f"seal {seal.number} is another than in the log"
        last, previous = seal.number, seal.mac
        for session, (number, mac) in seal.heads.items():
            heads.setdefault(UUID(session), []).append((number, mac))
    yield from (f"seal {number} is in the log and missing here" for number in sorted(logged))


def _chain(session_id: UUID, end: Head | None, sealed: Sequence[Head]) -> Iterator[str]:
    last, previous = 0, chain.BEGINNING
    told = dict(chained(sealed, [end] if end else []))
    for row in AuditRow.objects.filter(session_id=session_id).order_by("number").iterator():
        where = f"session {session_id}: row {row.number}"
        yield from _gap(f"session {session_id}: row", last, row.number)
        if not chain.is_linked(row.mac, row.previous, row.content()):
            yield f"{where} was changed or moved"
        elif row.number == last + 1 and row.previous != previous:
            yield f"{where} does not follow the row before it"
        elif told.get(row.number, row.mac) != row.mac:
            yield f"{where} is another than the chain's end or a seal says"
        last, previous = row.number, row.mac
    newest = max(told, default=0)
    if newest > last:
        yield f"session {session_id}: rows {last + 1} to {newest} were cut off"
    if last and end is None:
        yield f"session {session_id}: the end of its chain is missing"


def _gap(what: str, last: int, number: int) -> Iterator[str]:
    yield from (f"{what} {missing} is missing" for missing in range(last + 1, number))
