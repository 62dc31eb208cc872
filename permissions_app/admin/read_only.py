from typing import Any

from django.http import HttpRequest

from sessions_app.console import OfSessions, WithTimes


class ReadOnlyAdmin(WithTimes):
    """To look at. What can be done there is an action, which calls a service."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyOfSessions(ReadOnlyAdmin, OfSessions):
    pass
