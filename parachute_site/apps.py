from django.apps import AppConfig


class ParachuteConfig(AppConfig):
    name = "parachute_site"
    verbose_name = "Parachute"
