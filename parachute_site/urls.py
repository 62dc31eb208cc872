from django.contrib import admin
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, path, register_converter
from django.views.generic import RedirectView

from parachute_site.api import api
from parachute_site.pages import (
    agents,
    bots,
    curator,
    search,
    settings,
    signing_in,
    views,
    welcome,
    workspaces,
)

admin.site.site_title = admin.site.site_header = "Parachute"

register_converter(curator.DayConverter, "day")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.chats, name="chats"),
    path("chat/<uuid:session_id>", views.chat, name="chat"),
    path("chat/<uuid:session_id>/earlier", views.earlier, name="earlier"),
    path("chat/<uuid:session_id>/curator", curator.runs, name="curator-runs"),
    path("days", curator.days, name="days"),
    path("days/<day:day>", curator.days, name="day"),
    path("inbox", views.inbox, name="inbox"),
    path("rail", views.rail, name="rail"),
    path("agents", agents.show, name="agents"),
    path("agents/new", agents.new, name="agent-new"),
    path("agents/of/<str:slug>", agents.one, name="agent"),
    path("agents/of/<str:slug>/told", agents.told, name="agent-told"),
    path("agents/of/<str:slug>/edit", agents.edit, name="agent-edit"),
    path("agents/of/<str:slug>/accept", agents.accept, name="agent-accept"),
    path("agents/of/<str:slug>/delete", agents.delete, name="agent-delete"),
    path("bots", bots.show, name="bots"),
    path("bots/link", bots.link, name="bots-link"),
    path("bots/unlink/<int:user_id>", bots.unlink, name="bots-unlink"),
    path("bots/on/<str:platform>", bots.platform, name="bot"),
    path("bots/on/<str:platform>/token", bots.token, name="bot-token"),
    path("bots/on/<str:platform>/<str:order>", bots.order, name="bot-order"),
    path("bots/knocking/<uuid:request_id>", bots.knocking, name="bots-knocking"),
    path("bots/knocking/<uuid:request_id>/approve", bots.approve, name="bots-approve"),
    path("bots/knocking/<uuid:request_id>/deny", bots.deny, name="bots-deny"),
    path("bots/people/<int:user_id>", bots.person, name="bots-person"),
    path("bots/people/<int:user_id>/revoke", bots.revoke, name="bots-revoke"),
    path("bots/groups/<int:chat_id>", bots.group, name="bots-group"),
    path("bots/unsent/<int:delivery_id>/again", bots.again, name="bots-again"),
    path("search", search.show, name="search"),
    path("search/found", search.found, name="search-found"),
    path("signin", signing_in.sign_in, name="signin"),
    path("signin/<str:token>", signing_in.sign_in_by_link, name="signin-link"),
    path("signout", signing_in.sign_out, name="signout"),
    path("settings", settings.show, name="settings"),
    path("settings/password", settings.password, name="settings-password"),
    path("settings/keys", settings.make_key, name="settings-keys"),
    path("settings/keys/<int:key_id>/revoke", settings.revoke, name="settings-revoke"),
    path("settings/model", settings.save_model, name="settings-model"),
    path("settings/model/remove", settings.remove_model, name="settings-model-remove"),
    path("welcome", welcome.show, name="welcome"),
    path("welcome/vault", welcome.vault, name="welcome-vault"),
    path("welcome/model", welcome.model, name="welcome-model"),
    path("workspaces", workspaces.show, name="workspaces"),
    path("workspaces/new", workspaces.new, name="workspace-new"),
    path("workspaces/of/<slug:slug>", workspaces.one, name="workspace"),
    path("workspaces/of/<slug:slug>/archive", workspaces.archive, name="workspace-archive"),
    path("workspaces/of/<slug:slug>/remove", workspaces.take_away, name="workspace-remove"),
    path("workspaces/of/<slug:slug>/members", workspaces.add, name="workspace-add"),
    path("workspaces/of/<slug:slug>/invite", workspaces.invitation, name="workspace-invite"),
    path("workspaces/of/<slug:slug>/members/<int:user_id>", workspaces.change, name="workspace-change"),
    path(
        "workspaces/of/<slug:slug>/members/<int:user_id>/remove",
        workspaces.remove,
        name="workspace-put-out",
    ),
    path("favicon.ico", RedirectView.as_view(url=static("icon.svg"))),
    path("api/", api.urls),
    path("admin/login/", signing_in.admin_sign_in),
    path("admin/password_change/", RedirectView.as_view(pattern_name="settings")),
    path("admin/", admin.site.urls),
]
