from django.apps import AppConfig


class CuratorConfig(AppConfig):
    name = "curator_app"
    verbose_name = "Curator"

    def ready(self) -> None:
        from curator_app import changes, receivers, told  # noqa: F401 - the second connects itself
        from sessions_app.access import tokens
        from sessions_app.reading import contributors

        tokens.alive[tokens.Audience.CURATOR] = changes.is_alive
        contributors.append(told.contributed)
