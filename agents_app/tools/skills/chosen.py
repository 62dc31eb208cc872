"""Which skills a turn is given: those that its workspace has switched on, and those that its agent names."""

from pathlib import Path

from django.utils.translation import gettext as _

from agents_app.definitions.choosing import Cast, Warned
from agents_app.tools.mcp.entries import ALL
from agents_app.tools.skills.found import skills_of
from agents_app.tools.skills.given import GivenSkill
from agents_app.tools.skills.models import EnabledSkill
from sessions_app.access.models import Workspace
from sessions_app.models import Session

TOOL = "Skill"  # of the CLI, by which an agent uses one


def enabled_in(workspace: Workspace) -> set[str]:
    return set(EnabledSkill.objects.filter(workspace=workspace).values_list("name", flat=True))


def skills_for(session: Session, cast: Cast) -> tuple[tuple[GivenSkill, ...], tuple[Warned, ...]]:
    if cast.rights.tools is not None and TOOL not in cast.rights.tools:
        return (), ()
    named = cast.definition.fields.skills
    enabled = enabled_in(session.workspace)
    if not named and not enabled:
        return (), ()
    found = {each.name: each for each in skills_of(Path(session.workspace.vault_path))}
    wanted = {*found} if named == ALL else {*(named or ()), *enabled}
    good = tuple(
        GivenSkill(each.name, each.description, each.signature)
        for name, each in found.items()
        if name in wanted and not each.error
    )
    wrong = [(name, found[name].error if name in found else "") for name in sorted(wanted)]
    return good, tuple(_left_out(name, why) for name, why in wrong if why or name not in found)


def _left_out(name: str, why: str) -> Warned:
    said = why or _("There is no such folder in .claude/skills.")
    return Warned("skill_unusable", _("The skill %(name)s is left out") % {"name": name}, said)
