from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from agents_app.turns.said.deleting import CleanUp

SHOWN = 20


class Command(BaseCommand):
    help = "Deletes chats that are in the archive and were not spoken to for so many days."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, required=True, help="how long nobody has spoken to them")
        parser.add_argument("--dry-run", action="store_true", help="says which, and deletes nothing")

    def handle(self, *args: Any, days: int, dry_run: bool, **options: Any) -> None:
        if days < 1:
            raise CommandError("--days is 1 or more.", returncode=2)
        old = CleanUp(days)
        if not dry_run:
            self.stdout.write(f"{_chats(old.delete())} deleted.")
            return
        for session in old.sessions[:SHOWN]:
            # No titles: whoever runs this may not be whose chats they are.
            self.stdout.write(f"{session.pk}  last spoken to {session.last_accessed:%Y-%m-%d}")
        self.stdout.write(f"{_chats(old.sessions.count())} would be deleted. Nothing was.")


def _chats(count: int) -> str:
    return f"{count} chat{'' if count == 1 else 's'}"
