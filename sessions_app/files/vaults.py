"""Folders that can be a vault, as far as one can tell from outside."""

import os
import tempfile
from pathlib import Path

from django.utils.translation import gettext as _

from sessions_app.files.folders import SYSTEM

_WITH_ALL_IN_THEM = "/bin /boot /dev /etc /lib /lib64 /proc /run /sbin /sys /usr"
WITH_ALL_IN_THEM = [*map(Path, _WITH_ALL_IN_THEM.split())]
OURS = Path(__file__).resolve().parents[1]
MOST_ENTRIES = 20_000  # that are looked at; who has more is told "more than"
DEEPEST = 64


class Unusable(Exception):
    """A folder that cannot be a vault; the text is for the person who chose it."""


def usable(given: str, *, home: Path) -> Path:
    """The whole path of what was typed. Links in it stay links: that is how a person knows their folder."""
    typed = Path(os.path.expanduser(given.strip()))  # noqa: PTH111 - the other one raises where nobody has that name
    if not typed.is_absolute():
        raise Unusable(_("Give the whole path, from / or ~ on."))
    folder = Path(os.path.abspath(typed))  # noqa: PTH100 - `resolve` would follow links
    try:
        place = folder.resolve()
        if not folder.is_dir():
            nothing = _("There is no such folder. Make it first, or choose another one.")
            raise Unusable(_("This is not a folder.") if folder.exists() else nothing)
        if place in SYSTEM or any(map(place.is_relative_to, WITH_ALL_IN_THEM)):
            raise Unusable(_("This holds parts of the system. Choose a folder of its own."))
        if place == OURS or (place.is_relative_to(OURS) and not place.is_relative_to(OURS / "sample-vault")):
            raise Unusable(_("This is Parachute itself. Choose a folder of your own."))
        if place.is_relative_to(home.resolve()):
            raise Unusable(_("Parachute keeps its own secrets there. Choose another folder."))
        tempfile.TemporaryFile(dir=folder).close()  # permission bits do not tell of read-only disks
    except (OSError, RuntimeError) as error:  # the latter: links in a circle
        reason = getattr(error, "strerror", None) or _("it leads in a circle")
        raise Unusable(_("This folder cannot be used (%(reason)s).") % {"reason": reason}) from error
    return folder


def notes_in(vault: Path) -> tuple[int, bool]:
    """How many notes there are, and whether that is all of them. Hidden folders are none of a person's."""
    notes = seen = 0
    for folder, folders, files in os.walk(vault):
        folders[:] = [name for name in folders if not name.startswith(".")]
        notes += sum(name.endswith(".md") for name in files)
        seen += len(folders) + len(files)
        if seen > MOST_ENTRIES or len(Path(folder).parts) - len(vault.parts) > DEEPEST:
            return notes, False
    return notes, True
