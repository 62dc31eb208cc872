from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from parachute_site.api import api
from parachute_site.pages import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.chats, name="chats"),
    path("chat/<uuid:session_id>", views.chat, name="chat"),
    path("signin", views.sign_in, name="signin"),
    path("signin/<str:token>", views.sign_in_by_link, name="signin-link"),
    path("signout", views.sign_out, name="signout"),
    path("api/", api.urls),
    path("admin/", admin.site.urls),
]
