from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError
from django.urls import reverse

from sessions_app.access.services import make_sign_in_link


class Command(BaseCommand):
    help = "Prints a link that signs one person in, once, within ten minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", help="whose link; the first superuser where nobody is named")

    def handle(self, *args: Any, user: str | None, **options: Any) -> None:
        people = get_user_model().objects.filter(is_active=True).order_by("pk")
        person = (people.filter(username=user) if user else people.filter(is_superuser=True)).first()
        if person is None:
            raise CommandError(
                "There is no such person here. Has the server been started once?", returncode=2
            )
        environment = settings.ENVIRONMENT
        link = reverse("signin-link", args=[make_sign_in_link(person)])
        self.stdout.write(f"http://{environment.host}:{environment.port}{link}")
