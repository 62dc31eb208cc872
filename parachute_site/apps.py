from django.apps import AppConfig


class ParachuteConfig(AppConfig):
    name = "parachute_site"
    verbose_name = "Parachute"

    def ready(self) -> None:
        """Every process that may ring for a worker knows the app that shared tasks belong to."""
        from parachute_site import celery  # noqa: F401
