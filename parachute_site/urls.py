from django.contrib import admin
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from parachute_site.api import api
from parachute_site.pages import signing_in, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.chats, name="chats"),
    path("chat/<uuid:session_id>", views.chat, name="chat"),
    path("signin", signing_in.sign_in, name="signin"),
    path("signin/<str:token>", signing_in.sign_in_by_link, name="signin-link"),
    path("signout", signing_in.sign_out, name="signout"),
    path("favicon.ico", RedirectView.as_view(url=static("icon.svg"))),
    path("api/", api.urls),
    path("admin/login/", signing_in.admin_sign_in),
    path("admin/", admin.site.urls),
]
