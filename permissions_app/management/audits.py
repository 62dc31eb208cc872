"""What the commands of the audit have in common. Exit code 1 says that it was changed, and nothing else."""

import os
import signal
import sys
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError, connection

from permissions_app.models.audit import AuditChain, AuditRow

COULD_NOT_LOOK = 2  # as for an option that is wrong


class AuditCommand(BaseCommand):
    def execute(self, *args: Any, **options: Any) -> None:
        try:
            self._execute(*args, **options)
        except BrokenPipeError:  # `| head` has read enough
            # What is left is written when Python ends, and would raise once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except DatabaseError as error:
            name = connection.settings_dict["NAME"]
            raise CommandError(
                f"The database {name} cannot be read: {error}.", returncode=COULD_NOT_LOOK
            ) from error

    def _execute(self, *args: Any, **options: Any) -> None:
        try:
            super().execute(*args, **options)
        finally:
            self.stdout.flush()


def check_known(session_id: UUID) -> None:
    """Nothing is found, and nothing is wrong, in a session that was never there: who mistypes it is told."""
    if not any(model.objects.filter(session_id=session_id).exists() for model in (AuditChain, AuditRow)):
        raise CommandError(f"The audit has no session {session_id}.", returncode=COULD_NOT_LOOK)
