"""What a request may have, by its path and headers alone."""

from dataclasses import dataclass

from django.conf import settings
from django.http import parse_cookie
from django.utils.translation import gettext as _

from parachute_site.callers import Headers, host_is_ours, key_in
from parachute_site.json_errors import CODES
from sessions_app.errors import ParachuteError, TooLarge

FORM = 64 * 1024  # bytes. Of a form of 1 MB Django makes 40 MB, and 120 of them at once stop it for 9 s
SMALL = 1024 * 1024  # of whoever is not known yet
MOST_PIECES, LEAST_PIECE = 1_000, 256  # chunks of a body, and how many bytes each more of them has
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


class Unreadable(ParachuteError):
    code, status = "invalid", 400

    def __init__(self) -> None:
        super().__init__(CODES[400][1])


class TooManyPieces(ParachuteError):
    code, status = "invalid", 400

    def __init__(self) -> None:
        super().__init__(_("The body comes in too many small chunks. Send it in larger ones."))


class TooSlow(ParachuteError):
    code, status = "too_slow", 408

    def __init__(self) -> None:
        super().__init__(_("The request came too slowly, and what came of it was let go. Send it again."))


@dataclass(frozen=True)
class Patience:
    """Seconds. They are for a request that comes; its answer may take as long as it likes."""

    headers: float = 20.0  # from their first byte to their last
    body: float = 30.0  # and one more for each `slowest` bytes of it
    slowest: int = 8 * 1024
    refused: float = 2.0  # for which a refusal can be read; what still comes meanwhile is thrown away


@dataclass(frozen=True)
class Allowed:
    body: int
    why: str  # no more than that

    def check(self, length: int) -> None:
        if length > self.body:
            raise TooLarge(self.why)


def allowed(path: str, headers: Headers) -> Allowed:
    """What is large is JSON for the API, by somebody who at least says who they are. It is looked up whether
    they are once `SMALL` bytes have come (`channel.py`)."""
    if not host_is_ours(headers):
        raise Unreadable
    if headers.get("content-type", "").partition(";")[0].strip().lower() in FORMS:
        return Allowed(FORM, _("A form has at most 64 KB here. The API takes JSON."))
    if not path.startswith("/api/"):
        return Allowed(FORM, _("The body is larger than 64 KB. Only the API takes more."))
    if not _says_who(headers):
        why = _("Without a key or a login a body has at most 1 MB. Send `Authorization: Bearer para_…`.")
        return Allowed(SMALL, why)
    return Allowed(settings.DATA_UPLOAD_MAX_MEMORY_SIZE, CODES[413][1])


def check_pieces(pieces: int, received: int) -> None:
    """Chunks of a byte each cost as much as whole packets: 60 connections of them stopped it for 13 s."""
    if pieces > MOST_PIECES + received // LEAST_PIECE:
        raise TooManyPieces


def _says_who(headers: Headers) -> bool:
    return bool(key_in(headers) or parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME))
