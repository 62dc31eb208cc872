"""Secrets that lie in the database: sealed with a key that is made of SECRET_KEY, which does not lie there.

The library is imported when there is something to seal: it costs 9 MB, and most processes never need it.
"""

import base64
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


class CannotUnseal(Exception):
    """It was sealed with another SECRET_KEY, or changed since."""


def seal(secret: str, purpose: str) -> str:
    return _box(settings.SECRET_KEY, purpose).encrypt(secret.encode()).decode()


def unseal(sealed: str, purpose: str) -> str:
    from cryptography.fernet import InvalidToken

    try:
        return _box(settings.SECRET_KEY, purpose).decrypt(sealed.encode()).decode()
    except (InvalidToken, ValueError) as error:
        raise CannotUnseal from error


@lru_cache
def _box(secret_key: str, purpose: str) -> "Fernet":
    """What is sealed for one purpose opens for no other."""
    from cryptography.fernet import Fernet
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    key = HKDF(SHA256(), length=32, salt=None, info=purpose.encode()).derive(secret_key.encode())
    return Fernet(base64.urlsafe_b64encode(key))
