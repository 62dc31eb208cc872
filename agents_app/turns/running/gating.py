"""The gate that a turn runs behind: its rules as they stand at each call."""

from dataclasses import replace
from functools import partial
from uuid import UUID

from agents_app.turns.running.prepare import Prepared, as_permitted
from agents_app.turns.running.recorder import Recorder
from permissions_app import strangers
from permissions_app.asking import Asking
from permissions_app.first_uses import used_before
from permissions_app.gate import Gate
from permissions_app.rules.setting import Setting
from sessions_app.models import Session
from sessions_app.streaming import statements
from sessions_app.streaming.log import Hold
from sessions_app.threads import connected, in_thread


class NamedHosts:
    """The hosts that people named count once it has read strangers; until then nobody reads for them."""

    def __init__(self, session_id: UUID) -> None:
        self._session_id = session_id
        self._known: frozenset[str] | None = None

    def read_again(self) -> None:
        """More was said."""
        self._known = None

    def added_to(self, setting: Setting) -> Setting:
        if self._known is None:
            self._known = strangers.named_hosts(self._session_id)
        return replace(setting, has_read_strangers=True, named_hosts=self._known)


def gate_for(session: Session, hold: Hold, prepared: Prepared, recorder: Recorder, named: NamedHosts) -> Gate:
    def standing(setting: Setting) -> Setting | None:
        """What people allowed, or took away, since the last call counts from this one on."""
        now = connected(statements.standing_if_held)(hold.turn_id, hold.attempt)
        if now is None:
            return None
        setting = as_permitted(setting, session, now.metadata)
        if setting.asking_servers:
            setting = replace(setting, allowed_tools=connected(used_before)(session.pk))
        return named.added_to(setting) if now.has_read_strangers else setting

    return Gate(
        prepared.setting,
        standing=standing,
        on_denied=recorder.denied,
        asks=Asking(
            session.pk, hold, agent=session.agent_slug, settled=recorder.settled, told_of=recorder.told_of
        ),
        audit=prepared.audit,
        reads_strangers=partial(in_thread(strangers.mark), session.pk),
    )
