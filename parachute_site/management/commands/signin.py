from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand
from django.urls import reverse

from parachute_site.management.people import person
from sessions_app.access.services import make_sign_in_link


class Command(BaseCommand):
    help = "Prints a link that signs one person in, once, within ten minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", help="whose link; the first superuser where nobody is named")

    def handle(self, *args: Any, user: str | None, **options: Any) -> None:
        environment = settings.ENVIRONMENT
        link = reverse("signin-link", args=[make_sign_in_link(person(user))])
        self.stdout.write(f"http://{environment.host}:{environment.port}{link}")
