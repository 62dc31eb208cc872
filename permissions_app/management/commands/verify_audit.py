import re
from argparse import ArgumentParser, FileType
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand, CommandError

from permissions_app.audit.verifying import Head, problems
from permissions_app.models.audit import AuditRow

SEAL = re.compile(r"audit seal ([0-9]{1,18}) ([0-9a-f]{64})")


class Command(BaseCommand):
    help = (
        "Finds audit rows that were changed, removed, reordered or cut off; exit code 1 where there are any."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--session", type=UUID, help="this one alone")
        parser.add_argument(
            "--log",
            type=FileType(errors="replace"),
            help="a log to compare the seals with; - reads from a pipe",
        )

    def handle(self, *args: Any, session: UUID | None, log: Iterable[str] | None, **options: Any) -> None:
        found = 0
        for problem in problems(session, _logged(log or ())):
            self.stdout.write(problem)
            found += 1
        if found:
            raise CommandError(f"{found} problems: the audit is not as it was written.", returncode=1)
        rows = AuditRow.objects.filter(**{"session_id": session} if session else {}).count()
        self.stdout.write(f"{rows} rows are as they were written.")


def _logged(log: Iterable[str]) -> Iterator[Head]:
    for line in log:
        if match := SEAL.search(line):
            yield int(match[1]), match[2]
