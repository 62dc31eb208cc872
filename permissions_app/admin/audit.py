from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions_app.admin.read_only import ReadOnlyAdmin
from permissions_app.audit.exporting import lines
from permissions_app.models.audit import AuditRow, AuditSeal


class ValuesFilter(admin.AllValuesFieldListFilter):
    """A link for each value, with words for the empty one: what people do comes under no rule."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield choice if choice["display"] != "" else {**choice, "display": _("(none)")}


@admin.register(AuditRow)
class AuditRowAdmin(ReadOnlyAdmin):
    list_display = ["at", "kind", "outcome", "tool", "summary", "rule", "who", "session_id", "latency_ms"]
    list_filter = ["kind", "outcome", "at", ("tool", ValuesFilter), ("rule", ValuesFilter)]
    search_fields = ["=session_id", "=turn_id", "=tool_use_id", "who", "tool", "rule", "summary", "pattern"]
    date_hierarchy = "at"
    list_per_page = 50
    show_full_result_count = False
    actions = ["export"]

    @admin.action(description=_("Export the chosen rows as JSONL"), permissions=["view"])
    def export(self, request: HttpRequest, queryset: QuerySet[AuditRow]) -> StreamingHttpResponse:
        name = f"audit-{timezone.now():%Y%m%d-%H%M%S}.jsonl"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingHttpResponse(lines(queryset), content_type="application/jsonl", headers=headers)


@admin.register(AuditSeal)
class AuditSealAdmin(ReadOnlyAdmin):
    list_display = ["number", "at", "mac"]
    date_hierarchy = "at"
