from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from permissions_app.admin.read_only import ReadOnlyAdmin
from permissions_app.grants import decide_request, revoke_grant
from permissions_app.models.grants import GrantRequest, GrantScope, PermissionGrant
from sessions_app.access.caller import Caller
from sessions_app.access.services import caller_of_user
from sessions_app.errors import ParachuteError


def each_of(
    console: ReadOnlyAdmin, request: HttpRequest, rows: QuerySet[Any], act: Callable[[Caller, Any], object]
) -> None:
    """Does it for one row after the other, and says of how many, and why not of the others."""
    caller = caller_of_user(request.user)  # type: ignore[arg-type]
    done, refused = 0, list[str]()
    for row in rows.select_related("workspace"):
        try:
            act(caller, row)
            done += 1
        except ParachuteError as error:
            refused.append(f"{row}: {error.message}")
    if done:
        console.message_user(request, ngettext("%(n)d done.", "%(n)d done.", done) % {"n": done})
    for why in refused[:10]:
        console.message_user(request, why, messages.WARNING)


@admin.register(PermissionGrant)
class PermissionGrantAdmin(ReadOnlyAdmin):
    list_display = ["agent", "child_agent", "scope", "session_id", "workspace", "granted_by", "created_at"]
    list_display += ["revoked_at"]
    list_filter = ["workspace", "scope", ("revoked_at", admin.EmptyFieldListFilter)]
    list_select_related = ["workspace", "granted_by"]
    search_fields = ["agent", "child_agent", "=session__id"]
    actions = ["revoke"]

    @admin.action(description=_("Take the chosen grants back"), permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[PermissionGrant]) -> None:
        each_of(self, request, queryset, lambda caller, row: revoke_grant(caller, row.workspace.slug, row.pk))


@admin.register(GrantRequest)
class GrantRequestAdmin(ReadOnlyAdmin):
    list_display = ["agent", "child_agent", "reason", "status", "session_id", "workspace", "created_at"]
    list_display += ["decided_by", "decided_at"]
    list_filter = ["status", "workspace"]
    list_select_related = ["workspace", "decided_by"]
    search_fields = ["agent", "child_agent", "reason", "=session__id"]
    actions = ["approve_for_session", "approve_always", "deny"]

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
        each_of(
            self,
            request,
            queryset,
            lambda caller, row: decide_request(caller, row.workspace.slug, row.pk, scope),
        )
