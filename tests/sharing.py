from uuid import UUID

from sessions_app.models import Session
from sessions_app.models.session import Visibility


def share(session_id: UUID) -> None:
    """With everybody in its workspace, and nobody is told."""
    Session.objects.filter(pk=session_id).update(visibility=Visibility.WORKSPACE)
