"""The console's view of the curator. Runs are looked at, and changed by nobody."""

from typing import ClassVar

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from curator_app.models import CuratorRun
from permissions_app.admin.read_only import ReadOnlyOfSessions
from sessions_app.console import title_of


@admin.register(CuratorRun)
class CuratorRunAdmin(ReadOnlyOfSessions):
    texts: ClassVar[tuple[str, ...]] = (
        "title_before",
        "title_after",
        "summary_before",
        "summary_after",
        "activity",
        "error",
    )
    fields = ["chat", "exchange_number", "is_by_hand", "status", "created_at", "started_at", "ended_at"]
    fields += ["took", "actions", *texts, "day", "undone_at", "model", "usage", "cost_usd"]
    list_display = ["chat", "exchange_number", "status", "actions", "created_at", "took", "model", "cost_usd"]
    list_select_related = ["session__created_by"]
    list_filter = ["status", "created_at"]
    search_fields = ["session__title", "activity"]
    date_hierarchy = "created_at"

    @admin.display(description=_("chat"))
    def chat(self, run: CuratorRun) -> str:
        return title_of(run)

    @admin.display(description=_("seconds"))
    def took(self, run: CuratorRun) -> str:
        return "" if run.seconds is None else f"{run.seconds:.1f}"
