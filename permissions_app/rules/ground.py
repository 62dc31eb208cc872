"""The folders of a session, followed once for each decision: links may have changed since the last."""

from dataclasses import dataclass
from pathlib import Path

from permissions_app.rules.paths import Place, find, is_below
from permissions_app.rules.setting import Setting


@dataclass(frozen=True)
class Ground:
    vault: Place
    working_directory: Place
    home: Place
    scratch: Place | None
    own_config: Place | None

    def in_scratch(self, path: str) -> bool:
        return self.scratch is not None and lies_in(path, self.scratch)

    def is_inside(self, place: Place) -> bool:
        """Does every reading of the path end in the vault or the scratch?"""
        return all(lies_in(end, self.vault) or self.in_scratch(end) for end in place.ends)

    def crosses_link(self, place: Place) -> bool:
        """A link other than those that lead to the vault and the scratch themselves."""
        known = {*self.vault.links, *(self.scratch.links if self.scratch else ())}
        return not known.issuperset(place.links)


def ground_of(setting: Setting) -> Ground:
    return Ground(
        vault=_folder(setting.vault),
        working_directory=_folder(setting.working_directory),
        home=_folder(setting.home),
        scratch=_folder(setting.scratch) if setting.scratch else None,
        own_config=_folder(setting.own_config) if setting.own_config else None,
    )


def lies_in(path: str, folder: Place) -> bool:
    return any(is_below(path, stop) for stop in folder.stops)


def _folder(path: Path) -> Place:
    return find(str(path), "/")
