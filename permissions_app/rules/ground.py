"""The folders of a session, followed once for each decision: links may have changed since the last."""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from permissions_app.rules.paths import Links, Place, find, fold, is_below
from permissions_app.rules.setting import Setting


@dataclass(frozen=True)
class Ground:
    vault: Place
    working_directory: Place
    home: Place
    scratch: Place | None
    own_config: Place | None
    closed: str | None  # folded, and so is what is
    opened: frozenset[str]
    links: Links = field(compare=False)  # as this decision found them

    def in_scratch(self, path: str) -> bool:
        return self.scratch is not None and lies_in(path, self.scratch)

    def is_inside(self, place: Place) -> bool:
        """Does every reading of the path end in the vault or the scratch?"""
        return all(lies_in(end, self.vault) or self.in_scratch(end) for end in place.ends)

    def is_closed(self, path: str) -> bool:
        """A file of another chat, or the folder of all of them."""
        if self.closed is None or not is_below(folded := fold(path), self.closed):
            return False
        return folded not in self.opened

    def crosses_link(self, place: Place) -> bool:
        """A link other than those that lead to the vault and the scratch themselves."""
        known = {*self.vault.links, *(self.scratch.links if self.scratch else ())}
        return not known.issuperset(place.links)


def ground_of(setting: Setting) -> Ground:
    links: Links = {}
    return Ground(
        vault=find(str(setting.vault), "/", links),
        working_directory=find(str(setting.working_directory), "/", links),
        home=find(str(setting.home), "/", links),
        scratch=find(str(setting.scratch), "/", links) if setting.scratch else None,
        own_config=find(str(setting.own_config), "/", links) if setting.own_config else None,
        closed=fold(str(setting.closed)) if setting.closed else None,
        opened=_folded(setting.opened),
        links=links,
    )


@lru_cache(maxsize=64)
def _folded(files: frozenset[Path]) -> frozenset[str]:
    """Once a turn, and not once a call."""
    return frozenset(fold(str(file)) for file in files)


def lies_in(path: str, folder: Place) -> bool:
    return any(is_below(path, stop) for stop in folder.stops)
