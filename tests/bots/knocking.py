"""Somebody knocks, for tests in which no platform runs."""

from uuid import uuid4

from django.utils import timezone

from bots_app.models import PairingRequest
from bots_app.platforms.base import Incoming, Place, Who
from bots_app.services import hearing


def knock(who: str, *texts: str) -> str:
    """The id of their request."""
    for text in texts:
        number = uuid4().hex
        hearing.hear(
            "telegram", Incoming(number, Place(who), Who(who, f"Person {who}"), number, timezone.now(), text)
        )
    return str(PairingRequest.objects.filter(platform_user_id=who).latest("created_at").pk)
