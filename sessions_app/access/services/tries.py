"""How often somebody may try a password. A try is taken before it is made, and given back if it was right:
many at once can not get past the limit between a look and a count.

A limit ends ten minutes after its first wrong try, whatever comes meanwhile, and stands in no way of a
sign-in link that is good: nobody can lock the owner out.
"""

from datetime import datetime, timedelta
from enum import Enum
from ipaddress import IPv6Address, IPv6Network, ip_address
from unicodedata import normalize

from django.db.models import F
from django.utils import timezone

from sessions_app.access.models import SignInTries, digest

WINDOW = timedelta(minutes=10)
A_WHOLE_NETWORK = 64  # bits that one home has in IPv6


class Limit(Enum):
    """What is counted, and how many wrong tries it has. An address may be a whole office behind a proxy."""

    NAME = "name", 10
    PASSWORD = "password", 10  # the current one, of somebody who is in
    ADDRESS = "address", 30

    def of(self, what: str) -> str:
        """Hashed: people type passwords into the field of the name."""
        return digest(f"{self.value[0]}:{_in_one_way(self, what)}")


def take_try(limit: Limit, what: str) -> datetime | None:
    """None, and one try is gone; or until when there is none."""
    now, subject = timezone.now(), limit.of(what)
    rows = SignInTries.objects
    rows.filter(since__lte=now - WINDOW).delete()
    rows.bulk_create([SignInTries(subject=subject, since=now)], ignore_conflicts=True)
    if rows.filter(subject=subject, count__lt=limit.value[1]).update(count=F("count") + 1):
        return None
    since = rows.filter(subject=subject).values_list("since", flat=True).first() or now
    return since + WINDOW


def give_back(limit: Limit, what: str) -> None:
    """Whoever gave the right password has their name's tries back, and this one of their address: with all
    of them, one good name would buy endless tries at others."""
    row = SignInTries.objects.filter(subject=limit.of(what), count__gt=0)
    row.update(count=F("count") - 1 if limit is Limit.ADDRESS else 0)


def _in_one_way(limit: Limit, what: str) -> str:
    if limit is Limit.NAME:
        return normalize("NFKC", what).casefold()
    try:
        address = ip_address(what)
    except ValueError:
        return what
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Network((address, A_WHOLE_NETWORK), strict=False))
    return what
