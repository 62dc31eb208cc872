"""Once a minute: what waits in the spool is taken up, and the ends of all chains that grew are tied together.

The seal's hash goes into the log. Whoever cuts the newest rows, their chain's end and the seals off has
changed nothing in a log that lies elsewhere.
"""

import logging

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F

from permissions_app import audit
from permissions_app.audit import chain
from permissions_app.audit.appending import append
from permissions_app.models.audit import AuditChain, AuditSeal

log = logging.getLogger("parachute.audit")

MOST_HEADS = 5_000  # in one seal; the next has the others


def each_minute() -> None:
    try:
        audit.spool().take_up(append)
    except DatabaseError:
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
    grown = list(AuditChain.objects.exclude(number=F("sealed")).order_by("session_id")[:MOST_HEADS])
    if not grown:
        return None
    last = AuditSeal.objects.order_by("-number").first()
    made = AuditSeal(
        number=last.number + 1 if last else 1,
        heads={str(each.session_id): [each.number, each.mac] for each in grown},
        previous=last.mac if last else chain.BEGINNING,
    )
    made.mac = chain.link(made.previous, made.content())
    made.save(force_insert=True)
    for each in grown:
        each.sealed = each.number
    AuditChain.objects.bulk_update(
        grown, ["sealed"], batch_size=200
    )  # no other column: rows may have come since
    return made
