"""What the pages of the console have in common."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _


class WithTimes(admin.ModelAdmin):  # type: ignore[type-arg]
    """Its pages say in their titles in which zone their times are."""

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        shown = super().get_changelist_instance(request)
        shown.title = _with_zone(shown.title)
        return shown

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *given: Any, **more: Any
    ) -> HttpResponse:
        context["title"] = _with_zone(context["title"])
        return super().render_change_form(request, context, *given, **more)


def _with_zone(title: str) -> str:
    return _("%(title)s (times in %(zone)s)") % {
        "title": title,
        "zone": timezone.get_current_timezone_name(),
    }
