"""The first steps: shown once, to the operator who comes first. Whoever leaves them has been through them."""

from django.conf import settings
from django.contrib.auth.models import User

from agents_app.model import chosen
from agents_app.models import FirstRun


def is_due(user: User) -> bool:
    """True once and never again: of two who come at once, the one whose row it is. Where the environment has
    decided everything there is nothing to ask."""
    if not user.is_staff or (settings.PARACHUTE_VAULT_IS_CHOSEN and chosen.is_fixed()):
        return False
    _, is_first = FirstRun.objects.get_or_create(pk=1)
    return is_first
