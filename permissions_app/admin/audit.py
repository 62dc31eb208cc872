import logging
from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions_app.admin.read_only import ReadOnlyAdmin, ReadOnlyOfSessions
from permissions_app.audit.any_value import NOT_READABLE, any_text
from permissions_app.audit.chain import NOBODYS
from permissions_app.audit.exporting import lines
from permissions_app.models.audit import AuditRow, AuditSeal
from sessions_app.console import MASK
from sessions_app.models import Session
from sessions_app.models.session import Visibility

log = logging.getLogger(__name__)


class ValuesFilter(admin.AllValuesFieldListFilter):
    """A link for each value, with words for the empty one: what people do comes under no rule."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield choice if choice["display"] != "" else {**choice, "display": _("(none)")}


class AnyValueAdmin(ReadOnlyAdmin):
    """SQLite keeps any value in any column: where one cannot be read, the page says so, and shows no row."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        try:
            with any_text():
                return self._page(request, extra_context)
        except NOT_READABLE:
            log.exception("A page of the audit could not be shown.")
        said = _(
            "Something here cannot be read, so nothing is shown. Run manage.py verify_audit: it names it."
        )
        self.message_user(request, said, messages.ERROR)
        request.shows_nothing = True  # type: ignore[attr-defined]
        return self._page(request, extra_context)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows.none() if hasattr(request, "shows_nothing") else rows

    def _page(self, request: HttpRequest, extra_context: Any) -> HttpResponse:
        """Rendered at once: rows are read while it is."""
        answer: HttpResponse = super().changelist_view(request, extra_context)
        return answer.render() if isinstance(answer, TemplateResponse) else answer


@admin.register(AuditRow)
class AuditRowAdmin(AnyValueAdmin, ReadOnlyOfSessions):
    """A session that is gone may have been private: its rows are read by `manage.py export_audit`."""

    list_display = ["at", "kind", "outcome", "tool", "about", "rule", "who", "session_id", "latency_ms"]
    list_filter = ["kind", "outcome", "at", ("tool", ValuesFilter), ("rule", ValuesFilter)]
    search_fields = ["=session_id", "=turn_id", "=tool_use_id", "who", "tool", "rule", "summary", "pattern"]
    date_hierarchy = "at"
    list_per_page = 50
    show_full_result_count = False
    actions = ["export"]
    texts = ("summary", "pattern", "arguments_hash")

    def hidden_from(self, request: HttpRequest) -> Any:
        readable = Q(visibility=Visibility.WORKSPACE) | Q(created_by=request.user.pk)
        session = Session.objects.filter(readable, pk=OuterRef("session_id"))
        hidden = ~Q(session_id=NOBODYS) & ~Exists(session)
        return ExpressionWrapper(hidden, output_field=BooleanField())

    @admin.display(description=_("Summary"))
    def about(self, row: AuditRow) -> str:
        return MASK if row.is_hidden else row.summary  # type: ignore[attr-defined]

    @admin.action(description=_("Export the chosen rows as JSONL"), permissions=["view"])
    def export(self, request: HttpRequest, queryset: QuerySet[AuditRow]) -> StreamingHttpResponse:
        """But for those of private chats of others."""
        name = f"audit-{timezone.now():%Y%m%d-%H%M%S}.jsonl"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingHttpResponse(
            lines(queryset.exclude(self.hidden_from(request))),
            content_type="application/jsonl",
            headers=headers,
        )


@admin.register(AuditSeal)
class AuditSealAdmin(AnyValueAdmin):
    list_display = ["number", "at", "mac"]
    date_hierarchy = "at"
