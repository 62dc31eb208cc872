from django.apps import AppConfig


class PermissionsConfig(AppConfig):
    name = "permissions_app"
    verbose_name = "Permissions"

    def ready(self) -> None:
        from permissions_app.children import ChildRequests
        from permissions_app.reading import asked_in
        from permissions_app.rules.deny_list import is_closed, is_secret
        from sessions_app.files import closed
        from sessions_app.reading import contributors
        from sessions_app.streaming.stream import beside

        contributors.append(asked_in)
        closed.rules.append(is_closed)
        closed.secrets.append(is_secret)
        beside.append(ChildRequests)
