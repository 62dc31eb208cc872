from django.apps import AppConfig


class BotsConfig(AppConfig):
    name = "bots_app"
    verbose_name = "Bots"

    def ready(self) -> None:
        from bots_app import receivers  # noqa: F401 - it connects itself
