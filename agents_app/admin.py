"""What agents' files have of rights, in the console: to look at, and to accept what waits."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.models import AgentRights
from sessions_app.access.services import caller_of_user
from sessions_app.console import WithTimes
from sessions_app.errors import ParachuteError


@admin.register(AgentRights)
class AgentRightsAdmin(WithTimes):
    fields = ["workspace", "slug", "accepted", "accepted_at", "accepted_by"]
    list_display = ["slug", "workspace", "waits", "accepted_at", "accepted_by"]
    list_filter = ["workspace"]
    list_select_related = ["workspace", "accepted_by"]
    search_fields = ["slug"]
    actions = ["accept"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # without its row an agent would have what it gave up

    @admin.display(description=_("waits for a person"))
    def waits(self, row: AgentRights) -> str:
        agent = agent_of(row.workspace, row.slug)
        return ", ".join(agent.pending) if agent else ""

    @admin.action(description=_("Accept what the chosen files ask for"), permissions=["view"])
    def accept(self, request: HttpRequest, queryset: QuerySet[AgentRights]) -> None:
        assert isinstance(request.user, User)
        caller = caller_of_user(request.user)
        for row in queryset.select_related("workspace"):
            agent = agent_of(row.workspace, row.slug)
            if agent is None or not agent.pending:
                continue
            try:
                accepting.accept(caller, row.workspace, agent.definition, agent.definition.wanted.hash)
            except ParachuteError as error:
                self.message_user(request, f"{row.slug}: {error.message}", messages.ERROR)
            else:
                self.message_user(request, f"{row.slug}: {', '.join(agent.pending)}")
