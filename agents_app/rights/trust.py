"""How trust levels meet: each of those who have a say can only restrict."""

from sessions_app.access.models import TrustLevel

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
