"""The platforms behind their seam. Their libraries are imported when one is needed: each costs some 30 MB."""

from django.conf import settings
from django.utils.module_loading import import_string

from bots_app.platforms.base import Platform


def made(name: str, token: str, url: str) -> Platform:
    """Raises TokenRefused where this can be no token at all."""
    platform: Platform = import_string(settings.PARACHUTE_PLATFORMS[name])(token, url)
    return platform
