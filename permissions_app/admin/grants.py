from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from permissions_app.admin.one_by_one import each_of
from permissions_app.admin.read_only import ReadOnlyAdmin, ReadOnlyOfSessions
from permissions_app.grants import decide_request, revoke_grant, rights
from permissions_app.models.grants import GrantRequest, GrantScope, PermissionGrant
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.console import MASK


def decide_each(
    console: ReadOnlyAdmin, request: HttpRequest, rows: QuerySet[Any], act: Callable[[Caller, Any], object]
) -> None:
    if done := each_of(console, request, rows.select_related("workspace"), act):
        console.message_user(request, ngettext("%(n)d done.", "%(n)d done.", done) % {"n": done})


class GrantsAdmin(ReadOnlyOfSessions):
    """Offers what the person may do in one workspace at least."""

    scopes: ClassVar[dict[str, GrantScope]]  # by the name of the action

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        may = rights.somewhere(caller_of_user(request.user))  # type: ignore[arg-type]
        actions = super().get_actions(request)
        return {name: each for name, each in actions.items() if self.scopes.get(name) in (None, *may)}


class InForceFilter(admin.SimpleListFilter):
    title = _("whether it is in force")
    parameter_name = "in_force"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("in force")), ("no", _("taken back"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        return queryset.filter(revoked_at__isnull=self.value() == "yes")


@admin.register(PermissionGrant)
class PermissionGrantAdmin(GrantsAdmin):
    list_display = ["agent", "child_agent", "scope", "session_id", "workspace", "granted_by", "created_at"]
    list_display += ["revoked_at"]
    list_filter = ["workspace", "scope", InForceFilter]
    list_select_related = ["workspace", "granted_by"]
    search_fields = ["agent", "child_agent", "=session__id"]
    actions = ["revoke"]
    scopes: ClassVar = {"revoke": GrantScope.SESSION}

    @admin.action(description=_("Take the chosen grants back"), permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[PermissionGrant]) -> None:
        decide_each(
            self, request, queryset, lambda caller, row: revoke_grant(caller, row.workspace.slug, row.pk)
        )


@admin.register(GrantRequest)
class GrantRequestAdmin(GrantsAdmin):
    list_display = ["agent", "child_agent", "why", "status", "session_id", "workspace", "created_at"]
    list_display += ["decided_by", "decided_at"]
    list_filter = ["status", "workspace"]
    list_select_related = ["workspace", "decided_by"]
    search_fields = ["agent", "child_agent", "reason", "=session__id"]
    actions = ["approve_for_session", "approve_always", "deny"]
    texts = ("reason",)
    scopes: ClassVar = {
        "approve_for_session": GrantScope.SESSION,
        "approve_always": GrantScope.PERSISTENT,
        "deny": GrantScope.SESSION,
    }

    @admin.display(description=_("Reason"))
    def why(self, row: GrantRequest) -> str:
        return MASK if row.is_hidden else row.reason  # type: ignore[attr-defined]

    @admin.action(description=_("Approve, for its session alone"), permissions=["view"])
    def approve_for_session(self, request: HttpRequest, queryset: QuerySet[GrantRequest]) -> None:
        self._decide(request, queryset, GrantScope.SESSION)

    @admin.action(description=_("Approve, for always"), permissions=["view"])
    def approve_always(self, request: HttpRequest, queryset: QuerySet[GrantRequest]) -> None:
        self._decide(request, queryset, GrantScope.PERSISTENT)

    @admin.action(description=_("Deny"), permissions=["view"])
    def deny(self, request: HttpRequest, queryset: QuerySet[GrantRequest]) -> None:
        self._decide(request, queryset, None)

    def _decide(
        self, request: HttpRequest, queryset: QuerySet[GrantRequest], scope: GrantScope | None
    ) -> None:
        decide_each(
            self,
            request,
            queryset,
            lambda caller, row: decide_request(caller, row.workspace.slug, row.pk, scope),
        )
