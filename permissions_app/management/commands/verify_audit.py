import re
from argparse import ArgumentParser, FileType
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.management import CommandError

from permissions_app.audit.verifying import Head, problems
from permissions_app.management.audits import COULD_NOT_LOOK, AuditCommand, check_known
from permissions_app.models.audit import AuditRow

SEAL = re.compile(r"audit seal ([0-9]{1,18}) ([0-9a-f]{64})")


class Command(AuditCommand):
    help = (
        "Finds audit rows that were changed, removed, reordered or cut off; exit code 1 where there are any,"
        " 2 where it could not look."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--session", type=UUID, help="this one alone")
        parser.add_argument(
            "--log",
            type=FileType(errors="replace"),
            help="a log to compare the seals with; - reads from a pipe",
        )

    def handle(self, *args: Any, session: UUID | None, log: Iterable[str] | None, **options: Any) -> None:
        seals = set() if log is None else _logged(log)
        found = 0
        for problem in problems(session, seals):
            self.stdout.write(problem)
            found += 1
        if found:
            raise CommandError(f"{found} problems: the audit is not as it was written.", returncode=1)
        if session:
            check_known(session)
        rows = AuditRow.objects.filter(**{"session_id": session} if session else {}).count()
        self.stdout.write(f"{rows} rows are as they were written.")
        if seals:
            self.stdout.write(f"Seals of the log that they were compared with: {len(seals)}.")


def _logged(log: Iterable[str]) -> set[Head]:
    seals = {(int(match[1]), match[2]) for line in log if (match := SEAL.search(line))}
    if not seals:
        raise CommandError(
            "The log holds no seal: give the one of the background worker.", returncode=COULD_NOT_LOOK
        )
    return seals
