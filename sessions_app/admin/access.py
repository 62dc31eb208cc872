"""The console of operators. People are in it by Django's own `UserAdmin`.

Keys and members are made on the settings page and over the API: a key is shown once there, and never here.
"""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sessions_app.access.models import ApiKey, Membership, Role, Workspace
from sessions_app.access.services import checked_vault, revoke_keys
from sessions_app.console import WithTimes
from sessions_app.errors import ParachuteError


class Members(admin.TabularInline):  # type: ignore[type-arg]
    model = Membership
    extra = 0
    autocomplete_fields = ["user"]


class WorkspaceForm(forms.ModelForm):  # type: ignore[type-arg]
    """What no workspace can be is refused here as it is everywhere."""

    agents = forms.JSONField(
        required=False, help_text=_("The slugs of the agents that it offers, as a list; empty: all.")
    )

    def clean_vault_path(self) -> str:
        given = self.cleaned_data["vault_path"]
        if given == self.instance.vault_path:
            return str(given)
        try:
            return checked_vault(given, besides=self.instance.pk)
        except ParachuteError as error:
            raise ValidationError(error.message) from error


@admin.register(Workspace)
class WorkspaceAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["slug", "name", "vault_path", "default_trust", "trust_floor"]
    search_fields = ["slug", "name"]
    readonly_fields = ["created_at", "archived_at"]
    inlines = [Members]
    form = WorkspaceForm

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Whoever makes one owns it, or they could not see what they have made."""
        super().save_related(request, form, formsets, change)
        if not change:
            assert isinstance(request.user, User)
            Membership.objects.get_or_create(
                workspace=form.instance, user=request.user, defaults={"role": Role.OWNER}
            )


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["workspace", "user", "role"]
    list_filter = ["role", "workspace"]
    list_select_related = ["workspace", "user"]
    search_fields = ["user__username", "workspace__slug"]
    autocomplete_fields = ["user", "workspace"]


@admin.register(ApiKey)
class ApiKeyAdmin(WithTimes):
    """To look at and to revoke. The digest is left out: nobody needs it."""

    fields = ["user", "name", "scopes", "is_limited", "workspaces"]
    fields += ["created_at", "expires_at", "last_used_at", "revoked_at"]
    list_display = ["name", "user", "scopes", "last_used_at", "expires_at", "revoked_at"]
    list_filter = ["revoked_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__username"]
    actions = ["revoke"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description=_("Revoke the chosen keys"), permissions=["delete"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        number = revoke_keys(queryset)
        self.message_user(request, _("%(n)d revoked.") % {"n": number})
