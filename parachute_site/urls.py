from django.contrib import admin
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, path, register_converter
from django.views.generic import RedirectView

from parachute_site.api import api
from parachute_site.pages import (
    agents,
    curator,
    runs,
    search,
    settings,
    shares,
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
    path("agents/of/<str:slug>/starts", agents.starts, name="agent-starts"),
    path("agents/of/<str:slug>/run", runs.run, name="agent-run"),
    path("agents/of/<str:slug>/delete", agents.delete, name="agent-delete"),
    path("orchestrators", runs.show, name="runs"),
    path("orchestrators/<uuid:session_id>", runs.one, name="run"),
    path("orchestrators/<uuid:session_id>/pause", runs.pause, name="run-pause"),
    path("orchestrators/<uuid:session_id>/resume", runs.resume, name="run-resume"),
    path("orchestrators/<uuid:session_id>/cancel", runs.cancel, name="run-cancel"),
    path("shares", shares.show, name="shares"),
    path("shares/<uuid:share_id>", shares.show, name="share"),
    path("shares/<uuid:share_id>/resolve", shares.resolve, name="share-resolve"),
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
