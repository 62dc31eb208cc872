"""Who holds a turn."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4


@dataclass(frozen=True)
class Holder:
    """One life of one worker. Started again under its name it has another boot id, and releases what the
    life before it held."""

    name: str
    boot: UUID = field(default_factory=uuid4)
