"""The page and the API write an agent's file: in place, because walls mount it, through directory handles,
and never over one that is newer than what its writer has read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext as _

from agents_app.definitions import files
from agents_app.definitions.agents import Agent, agent_of
from agents_app.definitions.definition import DEFAULT, ENDING, Definition, defined, is_slug
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Workspace
from sessions_app.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from sessions_app.files.folders import Folder, Unexpected
from sessions_app.storable import is_storable

FIELD = "content"


def workspace_of(caller: Caller, slug: str | None) -> Workspace:
    """Without a slug the caller's oldest."""
    visible = Workspace.objects.visible_to(caller)
    workspace = visible.filter(slug=slug).first() if slug else visible.first()
    if workspace is None:
        raise NotFound
    return workspace  # type: ignore[no-any-return]


def known(workspace: Workspace, slug: str) -> Agent:
    agent = agent_of(workspace, slug)
    if agent is None:
        raise NotFound(_("There is no such agent here."))
    return agent


def save(
    caller: Caller, workspace: Workspace, slug: str, content: str, *, read: str | None = None
) -> tuple[Agent, bool]:
    """The agent, and whether it is new. `read` is the digest of the file that its writer has read; empty
    where there was none; None: whatever lies there."""
    check_may_write(caller, workspace)
    _check(slug, content)
    there = agent_of(workspace, slug)
    path = there.definition.path if there else ""
    if read is not None and read != (there.definition.digest if there and path else ""):
        raise _changed()
    with transaction.atomic(), _writing(slug):
        Workspace.objects.select_for_update(of=("self",)).get(pk=workspace.pk)  # one who saves at a time
        if path:
            _overwrite(workspace, Path(path), content, before=there.definition if there else None)
        else:
            _add(workspace, f"{slug}{ENDING}", content)
    return known(workspace, slug), not path


def remove(caller: Caller, workspace: Workspace, slug: str) -> None:
    check_may_write(caller, workspace)
    definition = known(workspace, slug).definition
    if not definition.path:
        raise Conflict(_("This agent is there without a file, so there is nothing to delete."))
    folder, name = Path(definition.path).parts
    with _writing(slug), Folder.at(Path(workspace.vault_path)) as root, root.below(folder) as agents:
        agents.remove(name)


def check_may_write(caller: Caller, workspace: Workspace) -> None:
    if not Workspace.objects.filter(caller.within("", MAY_WRITE), pk=workspace.pk).exists():
        raise Forbidden(_("You may read here, and not write. An owner of the workspace can change that."))


def first_text(slug: str) -> str:
    """What a new agent's file begins with."""
    return _BEGINNING.format(name=slug.replace("-", " ").capitalize() if slug != DEFAULT else "Default")


_BEGINNING = """---
name: {name}
description: What it is for, in one line
# model: sonnet
# tools: [Read, Glob, Grep]
# write_permissions: ["Garden/**"]
---

You are …
"""


def _changed() -> Conflict:
    return Conflict(_("The file was changed meanwhile. Read it again, and put your change into it."))


def _check(slug: str, content: str) -> None:
    if not is_slug(slug):
        raise Invalid.field("slug", _("An agent is named by small letters, digits and dashes, at most 100."))
    if f"{slug}{ENDING}" in files.NOT_AGENTS:
        said = _("A file %(name)s is no agent's. Choose another name.")
        raise Invalid.field("slug", said % {"name": f"{slug}{ENDING}"})
    if len(content.encode(errors="replace")) > files.LARGEST:
        raise TooLarge(_("The file would have more than %(most)s bytes.") % {"most": f"{files.LARGEST:,}"})
    if not is_storable(content):
        raise Invalid.field(FIELD, _("It holds a character that is no text (NUL or half of a pair)."))
    made = defined(slug, "", content.encode())
    if made.problems:
        fields = [
            {"field": each.field or FIELD, "line": each.line, "message": each.message}
            for each in made.problems
        ]
        raise Invalid(made.trouble, fields=fields)


@contextmanager
def _writing(slug: str) -> Iterator[None]:
    """What the disk refuses is told as a conflict, with its reason."""
    try:
        yield
    except OSError as error:
        said = _("The file of %(slug)s cannot be written: %(reason)s.")
        raise Conflict(said % {"slug": slug, "reason": error.strerror or error}) from error


def _overwrite(workspace: Workspace, path: Path, content: str, *, before: Definition | None) -> None:
    folder, name = path.parts

    def is_what_was_read(found: bytes) -> bool:
        return before is None or found.decode(errors="replace") == before.text

    with Folder.at(Path(workspace.vault_path)) as root, root.below(folder) as agents:
        try:
            agents.overwrite(name, content.encode(), where=is_what_was_read)
        except Unexpected as error:
            raise _changed() from error


def _add(workspace: Workspace, name: str, content: str) -> None:
    with Folder.at(Path(workspace.vault_path)) as root, root.below(files.FOLDERS[0], make=True) as agents:
        made = agents.add(name, content.encode())
        if made != name:  # somebody made it just now
            agents.remove(made)
            raise _changed()
