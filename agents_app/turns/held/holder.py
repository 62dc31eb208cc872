"""Who holds a turn."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4


@dataclass
class Holder:
    """One life of one worker. Started again under its name it has another boot id, and releases what the
    life before it held.

    `turns` are those that it runs at this moment. Only their leases are renewed: one that it could neither
    end nor put back is taken back when its lease has run out. One that drains claims no more.
    """

    name: str
    boot: UUID = field(default_factory=uuid4)
    turns: set[UUID] = field(default_factory=set, compare=False)
    is_draining: bool = field(default=False, compare=False)
