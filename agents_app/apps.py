from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents_app"
    verbose_name = "Agents"
