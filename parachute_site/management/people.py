"""Whom a command is about."""

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.db import DatabaseError


def person(name: str | None) -> User:
    """The named one, else the first superuser."""
    people = User.objects.filter(is_active=True).order_by("pk")
    try:
        found = (people.filter(username=name) if name else people.filter(is_superuser=True)).first()
    except DatabaseError:
        found = None
    if found is None:
        raise CommandError(
            f"There is no such person in {settings.PARACHUTE_HOME}. Has the server been started once? A "
            "home or database that it was started with (PARACHUTE_HOME, DATABASE_URL) is named here too.",
            returncode=2,
        )
    return found
