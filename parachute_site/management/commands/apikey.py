from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from parachute_site.management.people import person
from sessions_app.access.models import KeyScope, Workspace
from sessions_app.access.services import make_key


class Command(BaseCommand):
    help = "Makes a key for a program and prints it, once, alone on the last line."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the key is for")
        parser.add_argument("--scopes", default="read,chat", help="of read, chat, admin; comma separated")
        parser.add_argument(
            "--workspaces", default="", help="slugs, comma separated; all of its owner's if none"
        )
        parser.add_argument("--user", help="its owner; the first superuser where nobody is named")

    def handle(
        self, *args: Any, name: str, scopes: str, workspaces: str, user: str | None, **options: Any
    ) -> None:
        key, token = make_key(
            person(user), name, scopes=_scopes(scopes), workspaces=_workspaces(_words(workspaces))
        )
        self.stdout.write(f"Key {key.name!r} with {', '.join(key.scopes)}. It is shown this once:")
        self.stdout.write(token)


def _words(given: str) -> list[str]:
    return [word.strip() for word in given.split(",") if word.strip()]


def _scopes(given: str) -> list[KeyScope]:
    try:
        return [KeyScope(word) for word in _words(given)] or [KeyScope.READ]
    except ValueError as error:
        raise CommandError(f"Scopes are {', '.join(KeyScope.values)}.", returncode=2) from error


def _workspaces(slugs: list[str]) -> list[Workspace]:
    found = {workspace.slug: workspace for workspace in Workspace.objects.filter(slug__in=slugs)}
    if missing := [slug for slug in slugs if slug not in found]:
        raise CommandError(f"There is no workspace {missing[0]!r}.", returncode=2)
    return [found[slug] for slug in slugs]
