"""Once a minute: what waits in the spool is taken up, and the ends of all chains that grew are tied together.

The seal's hash goes into the log. Whoever cuts the newest rows, their chain's end and the seals off has
changed nothing in a log that lies elsewhere.
"""

import logging
from uuid import UUID

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F

from permissions_app import audit
from permissions_app.audit import chain
from permissions_app.audit.any_value import (
    any_text,
    as_kept,
    in_full,
    is_as_written,
    is_hash,
    is_number,
    session_of,
)
from permissions_app.audit.appending import ChainIsSpoilt, append
from permissions_app.models.audit import AuditChain, AuditSeal

log = logging.getLogger("parachute.audit")

MOST_HEADS = 5_000  # in one seal; the next has the others


def each_minute() -> None:
    try:
        audit.spool().take_up(append)
    except (DatabaseError, ChainIsSpoilt):
        log.exception("What waits in the audit spool could not be written; trying again in a minute.")
    seal()


def seal() -> AuditSeal | None:
    """None where no chain grew, or another process has just sealed."""
    try:
        made = _sealed()
    except IntegrityError:
        return None
    if made is not None:
        log.info(logged(made))
    return made


def logged(made: AuditSeal) -> str:
    """The line of the log, which `verify_audit --log` reads again."""
    return f"audit seal {made.number} {made.mac}"


@transaction.atomic
def _sealed() -> AuditSeal | None:
    with any_text():
        grown = _grown()
        number, previous = _place() if grown else (0, "")
    if not grown:
        return None
    heads = {str(session): [newest, mac] for session, newest, mac in grown}
    made = AuditSeal(number=number, heads=heads, previous=previous)
    made.mac = chain.link(made.previous, made.content())
    made.save(force_insert=True)
    sealed = [AuditChain(session_id=session, sealed=newest) for session, newest, _ in grown]
    AuditChain.objects.bulk_update(sealed, ["sealed"], batch_size=200)  # no other column: rows may have come
    return made


def _grown() -> list[tuple[UUID, int, str]]:
    """What somebody changed is left out, and told: it would keep all others from being sealed."""
    kept = AuditChain.objects.exclude(number=F("sealed")).order_by("session_id")
    found = [
        (session_of(named), number, mac)
        for named, number, mac in kept.values_list(as_kept("session_id"), "number", "mac")
    ]
    grown = [
        (session, number, mac)
        for session, number, mac in found
        if session is not None and is_number(number) and is_hash(mac)
    ]
    if len(grown) < len(found):
        log.error("The ends of %d audit chains were changed; see verify_audit.", len(found) - len(grown))
    return grown[:MOST_HEADS]


def _place() -> tuple[int, str]:
    """The number of the next seal, and the hash of the one before it. It comes after the newest that is as it
    was written: a number that somebody changed can be the largest of all, and nothing could follow it."""
    number, previous = 0, chain.BEGINNING
    changed: dict[int, str] = {}
    for _, found, mac, seal in in_full(AuditSeal.objects.order_by("-number"), at_once=1):
        if is_as_written(seal):
            number, previous = found, mac
            break
        if is_number(found):
            changed[found] = mac if is_hash(mac) else chain.BEGINNING
    while number + 1 in changed:
        number += 1
        previous = changed[number]
    return number + 1, previous
