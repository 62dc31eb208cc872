"""What the pages of the console have in common."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.models import Session
from sessions_app.models.session import Visibility

MASK = "•••"


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


class ReadOnly(WithTimes):
    """To look at. What can be done there is an action, which calls a service."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class OfSessions(WithTimes):
    """Rows that hang on a session. Of a private chat of somebody else it is shown that they are there, and
    not what is in them: neither in `texts`, nor by a search that finds them."""

    texts: ClassVar[tuple[str, ...]] = ()

    def hidden_from(self, request: HttpRequest) -> Any:
        """The condition."""
        others = Q(session__visibility=Visibility.PRIVATE) & ~Q(session__created_by=request.user.pk)
        return ExpressionWrapper(others, output_field=BooleanField())

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset(request).annotate(is_hidden=self.hidden_from(request))
        return found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_fields(request, obj)
        if obj is None or not obj.is_hidden:
            return fields
        return [name for name in fields if name not in self.texts]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """A filter in the address would tell what is masked, letter by letter."""
        if lookup == "session__id__exact":
            return True
        is_text = lookup.split("__")[0] in self.texts
        return not is_text and super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        return found.filter(is_hidden=False) if search_term else found, may_repeat


def title_of(row: Any) -> str:
    """Of the session of a row of `OfSessions`."""
    session: Session = row.session
    if row.is_hidden:
        return _("a private chat of %(author)s") % {"author": session.author or "…"}
    return session.title or str(session.pk)


def _with_zone(title: str) -> str:
    return _("%(title)s (times in %(zone)s)") % {
        "title": title,
        "zone": timezone.get_current_timezone_name(),
    }
