from django.apps import AppConfig


class BotsConfig(AppConfig):
    name = "bots_app"
    verbose_name = "Bots"
