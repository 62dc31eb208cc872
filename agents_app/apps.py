from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents_app"
    verbose_name = "Agents"

    def ready(self) -> None:
        from agents_app import receivers  # noqa: F401 - it connects itself
        from agents_app.tools import own, parachute

        own.makers.append(parachute.server)
