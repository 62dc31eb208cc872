"""Which models may be used here."""

from django.conf import settings


def is_allowed_model(wanted: str) -> bool:
    """A short name allows every full id of its family: `sonnet` allows `claude-sonnet-4-20250514`."""
    return any(wanted == name or _is_of_family(wanted, name) for name in settings.PARACHUTE_MODELS)


def _is_of_family(wanted: str, name: str) -> bool:
    parts = wanted.split("-")
    return name.isalpha() and parts[0] == "claude" and name in parts[1:]
