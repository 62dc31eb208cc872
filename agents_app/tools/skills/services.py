"""Skills of a workspace: put into its vault, taken out, and switched on for all of its agents."""

import errno
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from django.utils.translation import gettext as _

from agents_app.rights.owners import check_owns, record
from agents_app.tools.skills.chosen import enabled_in
from agents_app.tools.skills.found import FOLDER, Skill, Unusable, skill_of, skills_of
from agents_app.tools.skills.models import EnabledSkill
from agents_app.tools.skills.unpacking import unpacked
from permissions_app.audit import Outcome
from sessions_app.access.caller import Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Invalid, NotFound
from sessions_app.files.folders import Folder

TOOL = "skill"
DEEPEST = 64


@dataclass(frozen=True)
class Listed:
    skill: Skill
    is_on: bool  # for each agent of the workspace


def listed(workspace: Workspace) -> list[Listed]:
    on = enabled_in(workspace)
    return [Listed(each, each.name in on) for each in skills_of(Path(workspace.vault_path))]


def known(workspace: Workspace, name: str) -> Skill:
    found = skill_of(Path(workspace.vault_path), name)
    if found is None:
        raise NotFound(_("There is no such skill in .claude/skills."))
    return found


def upload(caller: Caller, workspace: Workspace, content: bytes) -> Skill:
    """A new one: whoever wants another in its place removes it first."""
    check_owns(caller, workspace)
    try:
        made = unpacked(content)
    except Unusable as problem:
        raise Invalid.field("file", str(problem)) from problem
    held = f".{uuid4().hex}"
    try:
        with Folder.at(Path(workspace.vault_path)) as root, root.below(*FOLDER, make=True) as folder:
            try:
                for path, (text, is_program) in made.files.items():
                    *above, name = path.split("/")
                    with folder.below(held, *above, make=True) as place:
                        place.write(name, text, mode=0o755 if is_program else 0o644)
                folder.take_name(held, made.name)
            except BaseException:
                with suppress(OSError):
                    _remove(folder, held)
                raise
    except FileExistsError as error:
        said = _("There is a skill %(name)s already. Remove it first.")
        raise Conflict(said % {"name": made.name}) from error
    except OSError as error:
        raise _unwritten(error) from error
    record(caller, workspace, TOOL, Outcome.GRANTED, {"name": made.name, "files": sorted(made.files)[:50]})
    return known(workspace, made.name)


def remove(caller: Caller, workspace: Workspace, name: str) -> None:
    check_owns(caller, workspace)
    known(workspace, name)
    gone = f".{uuid4().hex}"
    try:
        with Folder.at(Path(workspace.vault_path)) as root, root.below(*FOLDER) as folder:
            folder.take_name(name, gone)
            _remove(folder, gone)
    except OSError as error:
        raise _unwritten(error) from error
    EnabledSkill.objects.filter(workspace=workspace, name=name).delete()
    record(caller, workspace, TOOL, Outcome.REVOKED, {"name": name})


def switch(caller: Caller, workspace: Workspace, name: str, *, on: bool) -> None:
    check_owns(caller, workspace)
    if on and (problem := known(workspace, name).error):
        raise Conflict(problem)
    if on:
        EnabledSkill.objects.get_or_create(workspace=workspace, name=name)
    else:
        EnabledSkill.objects.filter(workspace=workspace, name=name).delete()
    record(caller, workspace, TOOL, Outcome.GRANTED if on else Outcome.REVOKED, {"name": name, "on": on})


def _remove(folder: Folder, name: str, depth: int = 0) -> None:
    found = folder.look(name)
    if found is None or not stat.S_ISDIR(found.st_mode):
        folder.remove(name)  # a link too, which is not followed
        return
    if depth > DEEPEST:
        raise OSError(errno.ELOOP, "there are too many folders in each other")
    with folder.below(name) as inner:
        for each in inner.names():
            _remove(inner, each, depth + 1)
    folder.remove_empty(name)


def _unwritten(error: OSError) -> Conflict:
    said = _("The vault cannot be written there: %(reason)s.")
    return Conflict(said % {"reason": error.strerror or error})
