from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from permissions_app.audit.exporting import lines
from permissions_app.management.audits import AuditCommand, check_known
from permissions_app.models.audit import AuditRow


def _time(given: str) -> datetime:
    try:
        found = datetime.fromisoformat(given)
    except ValueError as error:
        raise ArgumentTypeError("give a time such as 2026-11-19 or 2026-11-19T22:00:00Z") from error
    return found if timezone.is_aware(found) else timezone.make_aware(found)


class Command(AuditCommand):
    help = "Prints the audit as JSONL, oldest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--session", type=UUID, help="this one alone")
        parser.add_argument("--since", type=_time, help="an ISO 8601 time")

    def handle(self, *args: Any, session: UUID | None, since: datetime | None, **options: Any) -> None:
        wanted: dict[str, Any] = {}
        if session:
            check_known(session)
            wanted["session_id"] = session
        if since:
            wanted["at__gte"] = since
        for line in lines(AuditRow.objects.filter(**wanted)):
            self.stdout.write(line, ending="")
