"""Sessions and what hangs on them, in the console: to look at. Of a private chat of somebody else it is shown
that it is there and how it went, and no words."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from sessions_app.console import MASK, OfSessions, ReadOnly, title_of
from sessions_app.models import Message, Session, SessionEvent, Turn
from sessions_app.models.session import Visibility

LONGEST = 120


class OfOneSession(ReadOnly, OfSessions):
    list_select_related: ClassVar[Any] = ["session__created_by"]
    list_per_page = 50
    show_full_result_count = False

    @admin.display(description=_("Chat"))
    def chat(self, row: Any) -> SafeString:
        return _link("session", row.session_id, title_of(row))


@admin.register(Session)
class SessionAdmin(ReadOnly, OfSessions):
    list_display = ["name", "created_by", "visibility", "workspace", "agent_slug", "status", "message_count"]
    list_display += ["cost_usd", "last_accessed", "turns", "messages"]
    list_filter = ["visibility", "status", "kind", "source", "archived", "trust_level", "workspace"]
    list_select_related = ["workspace", "created_by"]
    search_fields = ["=id", "title", "summary", "created_by__username"]
    date_hierarchy = "last_accessed"
    list_per_page = 50
    show_full_result_count = False
    texts = ("title", "summary", "metadata", "system_prompt", "working_directory")

    def hidden_from(self, request: HttpRequest) -> Any:
        others = Q(visibility=Visibility.PRIVATE) & ~Q(created_by=request.user.pk)
        return ExpressionWrapper(others, output_field=BooleanField())

    @admin.display(description=_("Title"), ordering="pk")
    def name(self, session: Session) -> str:
        return MASK if session.is_hidden else session.title or str(session.pk)  # type: ignore[attr-defined]

    @admin.display(description=_("Turns"))
    def turns(self, session: Session) -> SafeString:
        return _list("turn", session)

    @admin.display(description=_("Messages"))
    def messages(self, session: Session) -> SafeString:
        return _list("message", session)


@admin.register(Turn)
class TurnAdmin(OfOneSession):
    list_display = ["id", "chat", "status", "created_at", "started_at", "ended_at", "restarts", "error_code"]
    list_display += ["cost_usd", "events"]
    list_filter = ["status", "error_code"]
    search_fields = ["=id", "=session__id"]
    date_hierarchy = "created_at"

    @admin.display(description=_("Events"))
    def events(self, turn: Turn) -> SafeString:
        where = f"{reverse('admin:sessions_app_sessionevent_changelist')}?turn__id__exact={turn.pk}"
        return format_html('<a href="{}">{}</a>', where, _("Events"))


@admin.register(Message)
class MessageAdmin(OfOneSession):
    list_display = ["created_at", "chat", "source", "author", "words"]
    list_filter = ["source"]
    list_select_related: ClassVar[Any] = ["session__created_by", "author"]
    search_fields = ["=id", "=session__id", "content"]
    date_hierarchy = "created_at"
    texts = ("content", "context", "prior_conversation")

    @admin.display(description=_("What was said"))
    def words(self, message: Message) -> str:
        return MASK if message.is_hidden else message.content[:LONGEST]  # type: ignore[attr-defined]


@admin.register(SessionEvent)
class SessionEventAdmin(OfOneSession):
    list_display = ["seq", "chat", "type", "created_at", "told"]
    list_filter = ["type"]
    search_fields = ["=session__id", "=turn__id"]
    texts = ("payload",)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup in ("turn__id__exact", "session__id__exact") or super().lookup_allowed(
            lookup, value, request
        )

    @admin.display(description=_("What was told"))
    def told(self, event: SessionEvent) -> str:
        return MASK if event.is_hidden else str(event.payload)[:LONGEST]  # type: ignore[attr-defined]


def _link(model: str, pk: Any, text: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', reverse(f"admin:sessions_app_{model}_change", args=[pk]), text)


def _list(model: str, session: Session) -> SafeString:
    """Of one session."""
    where = f"{reverse(f'admin:sessions_app_{model}_changelist')}?session__id__exact={session.pk}"
    return format_html('<a href="{}">{}</a>', where, _("show"))
