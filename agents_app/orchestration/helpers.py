"""Tokens for a process that speaks for a session's agent from outside of its worker: good for that session
while the turn runs for which it was made."""

from uuid import UUID

from sessions_app.access import tokens
from sessions_app.access.tokens import Audience, SessionToken
from sessions_app.models import Turn


def issue(turn: Turn) -> str:
    return tokens.issue(Audience.ORCHESTRATION, turn.session_id, f"{turn.pk} {turn.attempt}")


def is_alive(token: SessionToken) -> bool:
    turn_id, _, attempt = token.holder.partition(" ")
    try:
        named = {"pk": UUID(turn_id), "attempt": int(attempt)}
    except ValueError:
        return False
    return Turn.objects.active().filter(**named, session=token.session_id).exists()
