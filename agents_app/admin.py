"""What agents' files have of rights, in the console: to look at, and to accept what waits; and what runs by
itself. The texts of private chats are their authors' here too."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

from agents_app.definitions import accepting
from agents_app.definitions.agents import agent_of
from agents_app.models import AgentRights, AgentSchedule, Share, Tick, Wake
from agents_app.schedules import services as schedules
from permissions_app.admin.read_only import ReadOnlyOfSessions
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.console import MASK, ReadOnly, WithTimes
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
        caller = _caller(request)
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


@admin.register(Wake)
class WakeAdmin(ReadOnlyOfSessions):
    """What it says is in its session's chat."""

    texts: ClassVar[tuple[str, ...]] = ("payload",)

    fields = [
        "kind",
        "session",
        "child",
        "cause",
        "state",
        "reason",
        "tries",
        "created_at",
        "settled_at",
        "cost_usd",
    ]
    list_display = ["kind", "session", "state", "reason", "tries", "created_at", "cost_usd"]
    list_filter = ["kind", "state", "session__workspace"]
    list_select_related = ["session"]


@admin.register(Share)
class ShareAdmin(ReadOnlyOfSessions):
    texts: ClassVar[tuple[str, ...]] = ("title", "body")
    fields = ["kind", "shown_title", "session", "created_at", "resolved_at", "resolved_by"]
    list_display = ["kind", "shown_title", "session", "created_at", "resolved_at", "resolved_by"]
    list_filter = ["kind", "workspace"]
    list_select_related = ["session", "resolved_by"]

    @admin.display(description=_("title"))
    def shown_title(self, share: Share) -> str:
        return MASK if share.is_hidden else share.title  # type: ignore[attr-defined]


@admin.register(Tick)
class TickAdmin(ReadOnly):
    fields = ["agent", "workspace", "due_at", "made_at", "is_by_hand", "outcome", "reason", "session"]
    list_display = ["agent", "workspace", "due_at", "made_at", "outcome", "reason"]
    list_filter = ["outcome", "workspace"]
    list_select_related = ["workspace"]


@admin.register(AgentSchedule)
class AgentScheduleAdmin(ReadOnly):
    """Its file owns the times. Here it is switched off and on, and run by hand."""

    fields = ["agent", "workspace", "cron", "time_zone", "is_on", "since"]
    list_display = ["agent", "workspace", "cron", "time_zone", "is_on", "next_time"]
    list_filter = ["is_on", "workspace"]
    list_select_related = ["workspace"]
    actions = ["switch_off", "switch_on", "run_now"]

    @admin.display(description=_("next"))
    def next_time(self, row: AgentSchedule) -> Any:
        return schedules.next_of(row)

    @admin.action(description=_("Switch off"), permissions=["view"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[AgentSchedule]) -> None:
        for row in queryset:
            schedules.switch(_caller(request), row.pk, is_on=False)
            self.message_user(request, _("%(agent)s is switched off.") % {"agent": row.agent})

    @admin.action(description=_("Switch on"), permissions=["view"])
    def switch_on(self, request: HttpRequest, queryset: QuerySet[AgentSchedule]) -> None:
        for row in queryset:
            schedules.switch(_caller(request), row.pk, is_on=True)
            self.message_user(request, _("%(agent)s is switched on.") % {"agent": row.agent})

    @admin.action(description=_("Run now"), permissions=["view"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[AgentSchedule]) -> None:
        for row in queryset:
            made = schedules.run_now(_caller(request), row.pk)
            self.message_user(request, f"{row.agent}: {made.get_outcome_display()} {made.reason}")


def _caller(request: HttpRequest) -> Caller:
    assert isinstance(request.user, User)
    return caller_of_user(request.user)


for _theirs in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    if admin.site.is_registered(_theirs):
        admin.site.unregister(_theirs)  # a row there could start any task of ours, with any arguments
