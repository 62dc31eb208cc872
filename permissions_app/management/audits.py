"""What the commands of the audit have in common. Exit code 1 says that it was changed, and nothing else."""

from uuid import UUID

from django.core.management import CommandError

from permissions_app.models.audit import AuditChain, AuditRow

COULD_NOT_LOOK = 2  # as for an option that is wrong


def check_known(session_id: UUID) -> None:
    """Nothing is found, and nothing is wrong, in a session that was never there: who mistypes it is told."""
    if not any(model.objects.filter(session_id=session_id).exists() for model in (AuditChain, AuditRow)):
        raise CommandError(f"The audit has no session {session_id}.", returncode=COULD_NOT_LOOK)
