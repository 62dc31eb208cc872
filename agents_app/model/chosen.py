"""Which model answers: the environment's where it names one, else what an operator entered, else the demo.

Only people who are operators change it, in the page: a program's key must not be able to send everybody's
conversations elsewhere. The secret is sealed, and shown to nobody again.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app.model.check import check
from agents_app.model.endpoint import ANTHROPIC, Credential, ModelEndpoint, opened_with
from agents_app.models import ModelAccess
from sessions_app.access.caller import Caller
from sessions_app.errors import Conflict, Forbidden, Invalid
from sessions_app.sealing import CannotUnseal, seal, unseal

PURPOSE = "parachute: access to the model"
SHOWN = 4  # characters of a secret, and only of one that is long enough
_SECRET = re.compile(r"[\x21-\x7e]{8,1000}")
_OAUTH = "sk-ant-oat"  # how the token of a subscription begins


@dataclass(frozen=True)
class Typed:
    """What somebody typed. Without a kind the secret's beginning tells it."""

    secret: str = field(repr=False)
    kind: str = ""
    address: str = ""

    def known_kind(self) -> Credential:
        if self.kind:
            return Credential(self.kind)
        return Credential.OAUTH if self.secret.strip().startswith(_OAUTH) else Credential.API_KEY

    def endpoint(self) -> ModelEndpoint:
        secret = self.secret.strip()
        if not _SECRET.fullmatch(secret):
            problem = _("This is no key: a key is one word of at least 8 letters, digits and signs.")
            raise Invalid.field("key", problem)
        return opened_with(_address(self.address), self.known_kind(), secret)


def is_fixed() -> bool:
    """The environment says it, and nothing that is stored counts."""
    return bool(settings.PARACHUTE_MODEL_IS_SET_BY)


def current() -> ModelEndpoint:
    if is_fixed() or (stored := ModelAccess.objects.first()) is None:
        return settings.PARACHUTE_MODEL
    try:
        return opened_with(stored.base_url, Credential(stored.kind), unseal(stored.sealed, PURPOSE))
    except CannotUnseal:
        return ModelEndpoint(stored.base_url, problem=_cannot_be_read())


def find() -> ModelAccess | None:
    """What is stored, whether it counts or not."""
    return ModelAccess.objects.select_related("saved_by").first()


def save(caller: Caller, wanted: Typed) -> str:
    """Keeps it if the model takes it. The answer is empty, or says what could not be made sure."""
    may_change(caller)
    endpoint, secret = wanted.endpoint(), wanted.secret.strip()
    doubt = check(endpoint, wanted.known_kind())
    kept = {
        "kind": wanted.known_kind(),
        "sealed": seal(secret, PURPOSE),
        "ending": secret[-SHOWN:] if len(secret) >= 4 * SHOWN else "",
        "base_url": endpoint.url,
        "saved_at": timezone.now(),
        "saved_by_id": caller.user_id,
    }
    ModelAccess.objects.update_or_create(pk=1, defaults=kept)
    return doubt


def remove(caller: Caller) -> None:
    may_change(caller)
    ModelAccess.objects.all().delete()


def may_change(caller: Caller) -> None:
    if not caller.is_operator or caller.key_id is not None:
        raise Forbidden(_("Only an operator says which model answers, and only in the page."))
    if is_fixed():
        names = ", ".join(settings.PARACHUTE_MODEL_IS_SET_BY)
        raise Conflict(_("The environment says which model answers (%(names)s).") % {"names": names})


def _address(given: str) -> str:
    if not given.strip():
        return ANTHROPIC
    whole = given.strip() if "://" in given else f"https://{given.strip()}"
    address = whole.rstrip("/").removesuffix("/v1")
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or parts.username is not None or parts.query or parts.fragment or len(address) > 500:
        problem = _("Give an address such as https://gateway.example, without a name or a question in it.")
        raise Invalid.field("address", problem)
    return address


def _cannot_be_read() -> str:
    return _(
        "The stored key cannot be read, as SECRET_KEY is another one now. Enter the key again under "
        "Settings, or remove it."
    )
