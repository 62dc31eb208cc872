from django.apps import AppConfig


class PermissionsConfig(AppConfig):
    name = "permissions_app"
    verbose_name = "Permissions"
