"""How trust levels meet: each of those who have a say can only restrict."""

from sessions_app.access.models import TrustLevel
from sessions_app.models import Session

FROM_WIDE_TO_NARROW = (TrustLevel.FULL, TrustLevel.VAULT, TrustLevel.SANDBOXED)


def is_above(trust: str, other: str) -> bool:
    """Less restricted than the other."""
    order = FROM_WIDE_TO_NARROW
    return order.index(TrustLevel(trust)) < order.index(TrustLevel(other))


def narrowest(*levels: str | None) -> TrustLevel:
    """What a workspace, an agent, a bot user, a parent and a request allow together. Who has no say is None;
    a word that nobody knows raises, and does not count as no say."""
    said = [TrustLevel(level) for level in levels if level is not None]
    return max(said, key=FROM_WIDE_TO_NARROW.index, default=TrustLevel.FULL)


def most_for(session: Session, *others: str | None) -> TrustLevel:
    """The widest level that a session may have: its workspace's floor, `vault` for what Parachute drives, and
    what `others` say, such as its agent, bot user and parent."""
    driven = TrustLevel.VAULT if session.is_driven else None
    return narrowest(session.workspace.trust_floor, driven, *others)
