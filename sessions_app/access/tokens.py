"""Tokens for helper processes: each is good for one session and one audience, at `/api/internal/` alone.

A token is signed and not stored. That it is still good is asked of the row that it was made for (a run, a
turn), by what the app above has put into `alive` for its audience: when that row has ended, so has its token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.core import signing
from django.utils.translation import gettext as _

from sessions_app.errors import Forbidden, Unauthenticated

SALT = "parachute: tokens of helper processes"
LONGEST = 24 * 60 * 60  # seconds; what outlives this is no helper


class Audience(StrEnum):
    CURATOR = "curator"
    ORCHESTRATION = "orchestration"
    SESSION = "session"


@dataclass(frozen=True)
class SessionToken:
    """What a good one says. `holder`: the row for which it was made."""

    audience: Audience
    session_id: UUID
    holder: str


alive: dict[Audience, Callable[[SessionToken], bool]] = {}


def issue(audience: Audience, session_id: UUID, holder: object) -> str:
    return signing.dumps([audience, session_id.hex, str(holder)], salt=SALT, compress=False)


def read(text: str, audience: Audience, session_id: UUID) -> SessionToken:
    """Raises Unauthenticated for what is no good token, and Forbidden for one of another session."""
    token = read_any(text, audience)
    if token.session_id != session_id:
        raise Forbidden(_foreign())
    return token


def read_any(text: str, audience: Audience) -> SessionToken:
    """For what is asked about another session than the token's own: whoever answers says which it may be."""
    try:
        said, session, holder = signing.loads(text, salt=SALT, max_age=LONGEST)
        token = SessionToken(Audience(said), UUID(session), str(holder))
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise Unauthenticated from error
    is_alive = alive.get(token.audience)
    if is_alive is None or not is_alive(token):
        raise Unauthenticated
    if token.audience != audience:
        raise Forbidden(_foreign())
    return token


def _foreign() -> str:
    return _("This token is for another session, or for something else.")
