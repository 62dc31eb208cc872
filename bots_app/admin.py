"""The console's view of bots. What can be done there calls the services, as whoever presses."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from bots_app.models import Bot, BotChat, BotUser, Delivery, PairingRequest
from bots_app.services import bots, pairing, revoking, saying
from bots_app.services.pairing import Approval
from bots_app.suspicion import looks_like_orders
from permissions_app.admin.one_by_one import each_of
from permissions_app.admin.read_only import ReadOnlyAdmin
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.access.services import caller_of_user
from sessions_app.errors import ParachuteError


class Masked(ReadOnlyAdmin):
    """Of `texts` nothing is shown, and a filter in the address does not tell them letter by letter."""

    texts: ClassVar[tuple[str, ...]] = ()

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        is_text = lookup.split("__")[0] in self.texts
        return not is_text and super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]


class TokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """A token goes in, and none comes out."""

    token = forms.CharField(
        required=False,
        max_length=300,
        label=_("Token"),
        help_text=_("Encrypted, tried at once, and never shown again. Empty: the one that is kept stays."),
        widget=forms.PasswordInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    remove = forms.BooleanField(required=False, label=_("Take the token away"))


@admin.register(Bot)
class BotAdmin(Masked):
    """One row a platform; they are there from the first look on."""

    form = TokenForm
    texts = ("sealed",)
    readonly_fields = ["platform", "state", "problem", "account", "is_on", "state_at", "seen_at", "saved_by"]
    readonly_fields += ["saved_at"]
    fields = ["platform", "token", "remove", *readonly_fields[1:]]
    list_display = ["platform", "state", "account", "is_on", "problem", "state_at"]
    actions = ["start", "stop"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Bot]:
        bots.all_bots()
        return super().get_queryset(request)

    def save_model(self, request: HttpRequest, obj: Bot, form: Any, change: bool) -> None:
        token = "" if form.cleaned_data["remove"] else form.cleaned_data["token"]
        if not token and not form.cleaned_data["remove"]:
            return
        try:
            bots.save_token(caller_of_user(request.user), obj.platform, token)  # type: ignore[arg-type]
        except ParachuteError as error:
            self.message_user(request, error.message, messages.ERROR)

    @admin.action(description=_("Start the chosen ones"), permissions=["change"])
    def start(self, request: HttpRequest, queryset: QuerySet[Bot]) -> None:
        self._order(request, queryset, bots.start)

    @admin.action(description=_("Stop the chosen ones"), permissions=["change"])
    def stop(self, request: HttpRequest, queryset: QuerySet[Bot]) -> None:
        self._order(request, queryset, bots.stop)

    def _order(self, request: HttpRequest, queryset: QuerySet[Bot], order: Any) -> None:
        if done := each_of(self, request, queryset, lambda caller, row: order(caller, row.platform)):
            self.message_user(request, ngettext("%(n)d done.", "%(n)d done.", done) % {"n": done})


class Choices(ActionForm):
    """With what those who are chosen are let in."""

    workspace = forms.ModelChoiceField(
        Workspace.objects.filter(archived_at=None),
        required=False,
        label=_("Workspace"),
        empty_label=_("oldest"),
    )
    trust_level = forms.ChoiceField(
        required=False,
        label=_("Reaches"),
        choices=[(each.value, each.label) for each in (TrustLevel.SANDBOXED, TrustLevel.VAULT)],
    )


@admin.register(PairingRequest)
class PairingRequestAdmin(ReadOnlyAdmin):
    action_form = Choices
    list_display = ["platform_user_display", "platform", "status", "said", "looks_odd", "created_at"]
    list_display += ["expires_at", "resolved_by", "resolved_at"]
    list_filter = ["status", "platform"]
    list_select_related = ["resolved_by"]
    search_fields = ["platform_user_display", "platform_user_id"]
    fields = ["platform", "platform_user_id", "platform_user_display", "platform_chat_id", "status"]
    fields += ["whole", "looks_odd", "created_at", "expires_at", "resolved_at", "resolved_by"]
    fields += ["approved_trust_level"]
    actions = ["approve", "deny"]

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        shown = super().get_changelist_instance(request)
        waiting = pairing.pending().count()
        shown.title = f"{ngettext('%d waits', '%d wait', waiting) % waiting}: {shown.title}"
        return shown

    @admin.display(description=_("first message"))
    def said(self, row: PairingRequest) -> str:
        """Whole: it is answered as it is, so whoever lets them in here has it before them."""
        return row.first_message

    @admin.display(description=_("messages"))
    def whole(self, row: PairingRequest) -> str:
        return "\n\n".join(each["text"] for each in row.messages)

    @admin.display(description=_("reads as"))
    def looks_odd(self, row: PairingRequest) -> str:
        is_odd = any(looks_like_orders(each["text"]) for each in row.messages)
        return _("⚠ meant for an agent?") if is_odd else _("ordinary")  # type: ignore[return-value]

    @admin.action(description=_("Let the chosen ones in"), permissions=["view"])
    def approve(self, request: HttpRequest, queryset: QuerySet[PairingRequest]) -> None:
        workspace = Workspace.objects.filter(pk=request.POST.get("workspace") or 0).first()
        wanted = Approval(
            trust_level=request.POST.get("trust_level") or TrustLevel.SANDBOXED,
            workspace=workspace.slug if workspace else None,
        )
        self._each(request, queryset, lambda caller, row: pairing.approve(caller, row.pk, wanted))

    @admin.action(description=_("Turn the chosen ones away"), permissions=["view"])
    def deny(self, request: HttpRequest, queryset: QuerySet[PairingRequest]) -> None:
        self._each(request, queryset, lambda caller, row: pairing.deny(caller, row.pk))

    def _each(self, request: HttpRequest, queryset: QuerySet[Any], act: Any) -> None:
        if done := each_of(self, request, queryset, act):
            self.message_user(request, ngettext("%(n)d done.", "%(n)d done.", done) % {"n": done})


class IsInFilter(admin.SimpleListFilter):
    title = _("whether they are let in")
    parameter_name = "is_in"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("let in")), ("no", _("put out"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = self.value()
        return queryset if wanted is None else queryset.filter(revoked_at__isnull=wanted == "yes")


@admin.register(BotUser)
class BotUserAdmin(ReadOnlyAdmin):
    list_display = ["display", "platform", "workspace", "trust_level", "agent", "user", "approved_by"]
    list_display += ["created_at", "expires_at", "revoked_at"]
    list_filter = [IsInFilter, "platform", "workspace"]
    list_select_related = ["workspace", "user", "approved_by"]
    search_fields = ["display", "platform_user_id", "user__username"]
    actions = ["revoke"]

    @admin.action(description=_("Put the chosen ones out"), permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[BotUser]) -> None:
        rows = queryset.filter(revoked_at=None)
        done = each_of(
            self,
            request,
            rows,
            lambda caller, row: revoking.revoke(caller, row.platform, row.platform_user_id),
        )
        if done:
            self.message_user(request, ngettext("%(n)d done.", "%(n)d done.", done) % {"n": done})


@admin.register(BotChat)
class BotChatAdmin(Masked):
    """Not what is spoken there: that is read where it may be read."""

    texts = ("recent",)
    fields = ["platform", "chat_id", "thread_id", "chat_type", "title", "workspace", "trust_level", "agent"]
    list_display = ["__str__", "platform", "chat_type", "workspace", "trust_level", "created_at"]
    list_filter = ["platform", "chat_type", "workspace"]
    list_select_related = ["workspace"]


@admin.register(Delivery)
class DeliveryAdmin(Masked):
    """That something is to be said, and how it went; not the words."""

    texts = ("text", "card", "messages")
    fields = ["chat", "kind", "state", "attempts", "problem", "created_at", "next_at", "sent_at"]
    list_display = ["__str__", "chat", "state", "attempts", "problem", "created_at", "sent_at"]
    list_filter = ["state", "kind", "chat__platform"]
    list_select_related = ["chat"]
    actions = ["send_again"]

    @admin.action(description=_("Send the chosen ones again"), permissions=["view"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        done = sum(saying.again(row) for row in queryset)
        self.message_user(
            request, ngettext("%(n)d is sent again.", "%(n)d are sent again.", done) % {"n": done}
        )
