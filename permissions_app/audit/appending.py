"""The only writer of audit rows."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from permissions_app.audit import chain
from permissions_app.audit.any_value import any_text, is_hash, is_number
from permissions_app.audit.entry import Finished
from permissions_app.models.audit import AuditChain, AuditRow

TRIES = 50  # one is lost only where another writer got its rows in, so somebody always gets on
LARGEST = 2**31 - 1  # that a number of a row can be in every database
MOST_TOGETHER = 200  # rows in a transaction: others write to the same database


class ChainIsBusy(Exception):
    pass


class ChainIsSpoilt(Exception):
    """Somebody changed the end of it, so nothing can follow. Which one it is `verify_audit` says too."""


def append(entries: Iterable[Finished]) -> None:
    """Each at the end of its session's chain. What is there already is not written again. A chain that is
    spoilt is told of when all others are written: those of its own wait in the spool."""
    of_session: dict[str, list[Finished]] = {}
    for entry in entries:
        of_session.setdefault(entry.session_id, []).append(entry)
    spoilt: list[str] = []
    with any_text():
        for session_id, those in of_session.items():
            try:
                for start in range(0, len(those), MOST_TOGETHER):
                    _append(UUID(session_id), those[start : start + MOST_TOGETHER])
            except ChainIsSpoilt:
                spoilt.append(session_id)
    if spoilt:
        raise ChainIsSpoilt(", ".join(spoilt))


def _append(session_id: UUID, entries: Sequence[Finished]) -> None:
    AuditChain.objects.get_or_create(session_id=session_id, defaults={"mac": chain.BEGINNING})
    for _ in range(TRIES):
        if _appended(session_id, entries):
            return
    raise ChainIsBusy(str(session_id))


@transaction.atomic
def _appended(session_id: UUID, entries: Sequence[Finished]) -> bool:
    """False where somebody else has moved the end of the chain since we looked."""
    head = AuditChain.objects.get(session_id=session_id)
    if not (is_number(head.number, 0) and head.number < LARGEST and is_hash(head.mac)):
        raise ChainIsSpoilt(str(session_id))
    known = AuditRow.objects.filter(entry__in=[entry.id for entry in entries])
    written = {str(entry) for entry in known.values_list("entry", flat=True)}
    new = {entry.id: entry for entry in entries if entry.id not in written}
    if not new:
        return True
    rows = _linked(head, list(new.values()))
    held = AuditChain.objects.filter(session_id=session_id, number=head.number, mac=head.mac)
    if held.update(number=rows[-1].number, mac=rows[-1].mac) != 1:
        return False
    AuditRow.objects.bulk_create(rows)
    return True


def _linked(head: AuditChain, entries: list[Finished]) -> list[AuditRow]:
    rows: list[AuditRow] = []
    previous = head.mac
    for number, entry in enumerate(entries, head.number + 1):
        row = _row(entry, head.session_id, number)
        row.previous, row.mac = previous, chain.link(previous, row.content())
        previous = row.mac
        rows.append(row)
    return rows


def _row(entry: Finished, session_id: UUID, number: int) -> AuditRow:
    given = {**vars(entry), "session_id": session_id, "at": datetime.fromisoformat(entry.at)}
    given["entry"] = UUID(given.pop("id"))
    given["turn_id"] = UUID(entry.turn_id) if entry.turn_id else None
    return AuditRow(number=number, **given)
