from django.apps import AppConfig


class CuratorConfig(AppConfig):
    name = "curator_app"
    verbose_name = "Curator"
