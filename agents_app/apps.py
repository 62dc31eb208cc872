from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents_app"
    verbose_name = "Agents"

    def ready(self) -> None:
        from agents_app import receivers  # noqa: F401 - it connects itself
        from agents_app.orchestration import helpers, waking
        from agents_app.orchestration import tools as orchestration
        from agents_app.tools import own, parachute
        from sessions_app.access import tokens
        from sessions_app.access.tokens import Audience
        from sessions_app.querysets import in_flight

        tokens.alive[Audience.ORCHESTRATION] = helpers.is_alive
        in_flight.append(waking.is_on_its_way)
        own.makers += [parachute.server, orchestration.server]
