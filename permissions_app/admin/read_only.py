from sessions_app.console import OfSessions
from sessions_app.console import ReadOnly as ReadOnlyAdmin

__all__ = ["ReadOnlyAdmin", "ReadOnlyOfSessions"]


class ReadOnlyOfSessions(ReadOnlyAdmin, OfSessions):
    pass
