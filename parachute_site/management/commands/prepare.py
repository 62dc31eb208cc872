"""What `up` runs once before all others: migrations, the first workspace and admin, a sign-in link."""

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, call_command
from django.db import DatabaseError, connection
from django.urls import reverse

from agents_app.definitions import accepting, files
from agents_app.model import chosen
from agents_app.models import AgentRights
from agents_app.workers import living
from sessions_app.access import services
from sessions_app.access.models import Workspace

SAMPLE = settings.BASE_DIR / "sample-vault"
SHOWS_OTHERS = "head-gardener"


class Command(BaseCommand):
    help = "Prepares the database and prints one line of JSON: a one-time sign-in link, the vault, the model."
    requires_system_checks: list[str] = []

    def _accept_what_is_ours(self, workspace: Workspace) -> None:
        if Path(workspace.vault_path) != SAMPLE or AgentRights.objects.exists():
            return
        found = files.read_all(SAMPLE)
        for definition in found:
            if definition.slug == SHOWS_OTHERS:
                accepting.accept_of_sample(workspace, definition)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            connection.ensure_connection()
        except (DatabaseError, ImportError) as error:
            reason = str(error).strip().splitlines()[0]
            self.stderr.write(f"The database cannot be used: {reason}. Check DATABASE_URL.")
            sys.exit(2)
        call_command("migrate", verbosity=0, interactive=False)
        if not settings.ENVIRONMENT.redis_url:
            living.forget_all()  # all workers are on this machine, and none has been started yet
        workspace = services.first_workspace(
            settings.PARACHUTE_VAULT, vault_is_chosen=settings.PARACHUTE_VAULT_IS_CHOSEN
        )
        self._accept_what_is_ours(workspace)
        admin = services.first_admin(workspace)
        link = reverse("signin-link", args=[services.make_sign_in_link(admin)])
        model = chosen.current()
        told = {"signIn": link, "vault": workspace.vault_path, "model": None if model.is_demo else model.url}
        self.stdout.write(json.dumps(told))
