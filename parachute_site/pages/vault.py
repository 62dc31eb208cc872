"""The vault in the page: its folders, its notes as people read them, and captures."""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from parachute_site.pages.frame import caller_in, framed
from parachute_site.pages.markup import markdown
from sessions_app.access import reading
from sessions_app.access.caller import MAY_WRITE, Caller
from sessions_app.access.models import Role, Workspace
from sessions_app.errors import NotFound
from sessions_app.files import captures, notes
from sessions_app.storable import storable

DEEPEST = 64  # folders that are looked through for what is left of a path


@dataclass(frozen=True)
class Links:
    """Where links between notes lead: `[[its name]]`, and paths relative to where they stand."""

    workspace: str  # its slug
    folder: str = ""  # of the note that they stand in
    is_note: bool = False  # whose headings are places: in a chat there are many texts in one page

    def of_path(self, target: str) -> str | None:
        path, _mark, heading = unquote(target).partition("#")
        if not path:
            return self._at(heading) if self.is_note and heading else None
        led = self._in_vault(target)
        return None if led is None else note_url(self.workspace, led) + self._at(heading)

    def of_picture(self, target: str) -> str | None:
        path = self._in_vault(target)
        return None if path is None else file_url(self.workspace, path)

    def of_name(self, name: str) -> str:
        called, _mark, heading = name.partition("#")
        if not called and self.is_note:
            return self._at(heading)
        query = urlencode({"name": called.strip()})
        return f"{reverse('vault-named', args=[self.workspace])}?{query}{self._at(heading)}"

    def of_named_picture(self, name: str) -> str:
        return f"{self.of_name(name)}&{urlencode({'folder': self.folder})}"

    def place_of(self, heading: str) -> str | None:
        return _place_of(heading) if self.is_note else None

    def _at(self, heading: str) -> str:
        words = heading.rpartition("#")[2]  # `[[A note#A part#Its part]]`
        return f"#{quote(_place_of(words))}" if words else ""

    def _in_vault(self, target: str) -> str | None:
        """None for what leads out of it."""
        path, _mark, _place = unquote(target).partition("#")
        if not path or "\0" in path or path.startswith("//"):
            return None
        names: list[str] = []
        for name in PurePosixPath("/", self.folder, path).parts[1:]:  # one with / in front begins there
            if name != "..":
                names.append(name)
            elif names:
                names.pop()
            else:
                return None
        return "/".join(names)


def _place_of(heading: str) -> str:
    """As others build it, in small letters with hyphens, after what no other place of a page begins with."""
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return f"at-{words.replace(' ', '-')}"


def note_url(workspace: str, path: str) -> str:
    return f"{reverse('vault', args=[workspace])}?path={quote(path)}"


def file_url(workspace: str, path: str) -> str:
    return f"/api/workspaces/{workspace}/vault/file?path={quote(path)}"


@never_cache
@login_required
@require_safe
def first(request: HttpRequest) -> HttpResponse:
    """Whoever is in one workspace has one vault."""
    found = reading.workspaces_with_roles(caller_in(request))
    if not found:
        raise Http404
    oldest = min((workspace for workspace, _role in found), key=lambda each: each.created_at)
    return redirect("vault", oldest.slug)


@never_cache
@login_required
@ensure_csrf_cookie
@require_safe
def show(request: HttpRequest, slug: str) -> HttpResponse:
    caller = caller_in(request)
    workspace, role = _workspace(caller, slug)
    path = storable(request.GET.get("path", "")).strip("/")
    place, above, is_there = _place(workspace, path)
    context = {
        "heading": _("Vault"),
        "workspace": workspace,
        "others": [each for each, _role in reading.workspaces_with_roles(caller) if each != workspace],
        "place_shown": place,
        "above": above,
        "crumbs": _crumbs(above.path),
        "gone": None if is_there else _gone(request, workspace, path),
        "is_raw": "raw" in request.GET,
        "markup": _markup(slug, place),
        "file": file_url(slug, path),
        "ask": _ask(slug, place),
        "go_on": _go_on(slug, place),
        "may_capture": role in MAY_WRITE and above.path == captures.FOLDER,
        "captures": captures.FOLDER,
    }
    return framed(request, "vault.html", context, place="vault", status=200 if is_there else 404)


@never_cache
@login_required
@require_safe
def named(request: HttpRequest, slug: str) -> HttpResponse:
    """The note of a name, as `[[it]]` means one, or the picture of `![[it]]`, which stands in a folder; where
    there is none, a search for it."""
    workspace, _role = _workspace(caller_in(request), slug)
    name = storable(request.GET.get("name", ""))[:300]
    if "folder" in request.GET and (picture := _picture(workspace, storable(request.GET["folder"]), name)):
        return redirect(file_url(slug, picture))
    path = notes.by_name(workspace, name)
    return redirect(note_url(slug, path) if path else f"{reverse('search')}?{urlencode({'q': name})}")


def _picture(workspace: Workspace, folder: str, name: str) -> str | None:
    """Beside the note, or in a folder above it."""
    names = folder.split("/")[:DEEPEST] if folder else []
    for depth in range(len(names), -1, -1):
        with suppress(NotFound):
            return notes.look(workspace, "/".join((*names[:depth], name))).path
    return None


def _workspace(caller: Caller, slug: str) -> tuple[Workspace, Role]:
    try:
        workspace, role = reading.workspace(caller, slug)
    except NotFound as error:
        raise Http404 from error
    return workspace, Role(role)


def _place(workspace: Workspace, path: str) -> tuple[notes.Place, notes.Place, bool]:
    """What lies there, its folder, and whether anything does: else the folder is what is left of it."""
    try:
        place = notes.look(workspace, path)
        return place, place if place.is_folder else notes.look(workspace, _above(path)), True
    except NotFound:
        if path == captures.FOLDER:  # which is made with the first of them
            return notes.Place(path, True), notes.Place(path, True), True
        return notes.Place(path, False), _nearest(workspace, _above(path)), False


def _nearest(workspace: Workspace, path: str) -> notes.Place:
    """The folder itself, else what there is above it."""
    names = path.split("/")[:DEEPEST]
    for depth in range(len(names), -1, -1):
        with suppress(NotFound):
            found = notes.look(workspace, "/".join(names[:depth]))
            if found.is_folder:
                return found
    raise Http404


def _gone(request: HttpRequest, workspace: Workspace, path: str) -> dict[str, str]:
    """Which note led here, as the browser says, and what to look for instead."""
    came = urlsplit(request.headers.get("Referer", ""))
    linking = ""
    if came.path == reverse("vault", args=[workspace.slug]):
        linking = storable(dict(parse_qsl(came.query)).get("path", ""))
    try:
        is_note = bool(linking) and not notes.look(workspace, linking).is_folder
    except NotFound:
        is_note = False
    return {"linking": linking if is_note else "", "name": PurePosixPath(path).stem}


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _crumbs(path: str) -> list[tuple[str, str]]:
    """Each folder on the way, with its path."""
    names = path.split("/") if path else []
    return [(name, "/".join(names[: depth + 1])) for depth, name in enumerate(names)]


def _markup(slug: str, place: notes.Place) -> Any:
    if place.text is None or not place.is_markdown:
        return None
    front, body = _front_matter(place.text)
    return {
        "front": front,
        "body": markdown(body, links=Links(slug, _above(place.path), is_note=True), flows=True),
    }


def _front_matter(text: str) -> tuple[str, str]:
    """What stands above a note for programs is shown as it is written."""
    begin, _line, rest = text.partition("\n")
    if begin.rstrip() != "---":
        return "", text
    front, end, body = rest.partition("\n---")
    return (front, body.partition("\n")[2]) if end else ("", text)


def _ask(slug: str, place: notes.Place) -> str:
    """A new chat that begins with this."""
    said = _("About {path}: ").format(path=place.path) if place.path else ""
    return f"{reverse('chats')}?{urlencode({'workspace': slug, 'say': said})}"


def _go_on(slug: str, place: notes.Place) -> str:
    if not notes.is_old_chat(place):
        return ""
    return f"{reverse('chats')}?{urlencode({'workspace': slug, 'prior': place.path})}"
