"""What agents asked, in the console of operators: to look at, and to decide in bulk."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Case, QuerySet, When
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from permissions_app import services
from permissions_app.admin.one_by_one import each_of
from permissions_app.admin.read_only import ReadOnlyOfSessions
from permissions_app.audit.masking import about, in_a_line
from permissions_app.models import RequestStatus, ToolRequest
from sessions_app.console import MASK, title_of


@admin.register(ToolRequest)
class ToolRequestAdmin(ReadOnlyOfSessions):
    list_display = ["created_at", "chat", "tool_name", "asked", "status", "decided_as", "expires_at"]
    list_filter = ["status", "kind", "permission_type", "tool_name"]
    list_select_related = ["session__created_by"]
    search_fields = ["tool_name", "file_path", "session__title"]
    actions = ["allow_once", "do_not_allow"]
    texts: ClassVar[tuple[str, ...]] = (
        *("why", "input", "file_path", "directory", "suggested_grants", "subject"),
        *("answers", "pattern", "reason"),
    )

    def get_ordering(self, request: HttpRequest) -> Any:
        """What waits for a person first, and of that the newest."""
        waits = Case(When(status=RequestStatus.PENDING, then=0), default=1)
        return [waits, "-created_at", "-pk"]

    @admin.display(description=_("Chat"))
    def chat(self, request: ToolRequest) -> str:
        return title_of(request)

    @admin.display(description=_("What is asked"))
    def asked(self, request: ToolRequest) -> str:
        if request.is_hidden:  # type: ignore[attr-defined]
            return MASK
        if request.is_question:
            return in_a_line(" ".join(each["question"] for each in request.input["questions"]))
        return about(request.input, request.file_path)

    @admin.action(description=_("Allow once"))
    def allow_once(self, request: HttpRequest, chosen: QuerySet[ToolRequest]) -> None:
        """What expired is allowed in its chat, one by one: each wakes an agent."""
        expired = chosen.filter(status=RequestStatus.EXPIRED).count()
        if expired:
            said = ngettext(
                "%d request was left out: nobody answered it in time. Allow it in its chat.",
                "%d requests were left out: nobody answered them in time. Allow each in its chat.",
                expired,
            )
            self.message_user(request, said % expired, messages.WARNING)
        self._decide(request, chosen.exclude(status=RequestStatus.EXPIRED), services.grant)

    @admin.action(description=_("Do not allow"))
    def do_not_allow(self, request: HttpRequest, chosen: QuerySet[ToolRequest]) -> None:
        self._decide(request, chosen, services.deny)

    def _decide(self, request: HttpRequest, chosen: QuerySet[ToolRequest], decide: Any) -> None:
        """Within the workspaces of who presses, and only what is not decided yet."""
        count = each_of(self, request, chosen, lambda caller, row: decide(caller, row.pk))
        said = ngettext("%d request was decided.", "%d requests were decided.", count) % count
        if count:
            self.message_user(request, said)
        else:
            self.message_user(request, f"{said} {_('The reason for each stands above.')}", messages.WARNING)
