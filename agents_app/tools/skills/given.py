"""A skill as a run is given it: which, in which state. What it holds is copied when a process starts."""

import errno
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents_app.tools.skills.found import copied, skill_of
from sessions_app.files.folders import Folder, remove_all

PLUGIN = "vault"  # before a skill's name, as the CLI calls it


@dataclass(frozen=True)
class GivenSkill:
    name: str
    description: str
    signature: str


def write_plugin(vault: Path, skills: Sequence[GivenSkill], config: Path, place: Path) -> bool:
    """Anew, for one process; False where there is none to give. `place` lies in the session's own folder,
    which its agent can write while it runs, and not now. Raises OSError."""
    real = config.resolve() / place.parent.relative_to(config)  # the way to our own folder may hold links
    if place.parent.exists() and place.parent.resolve() != real:
        raise NotADirectoryError(errno.ENOTDIR, "The way to the skills leads through a link", str(place))
    if place.is_symlink() or place.is_file():
        place.unlink()
    remove_all(place)
    found = [skill for each in skills if (skill := skill_of(vault, each.name)) and not skill.error]
    if not found:
        return False
    with Folder.at(config) as own, own.below(*place.relative_to(config).parts, make=True) as plugin:
        with plugin.below(".claude-plugin", make=True) as about:
            about.write("plugin.json", json.dumps({"name": PLUGIN, "version": "1.0.0"}).encode())
        with plugin.below("skills", make=True) as folder:
            for skill in found:
                copied(vault, skill, folder)
    return True
