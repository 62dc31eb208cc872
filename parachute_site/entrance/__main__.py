"""Daphne as a program, with our entrance in the place of its own."""

import sys
from typing import Any

from daphne import server  # before all else of Twisted, whose reactor it chooses
from daphne.cli import CommandLineInterface


class Server(server.Server):
    connections: dict[Any, dict[str, Any]]

    def kill_all_applications(self) -> Any:
        """Daphne asks each connection for its application. One whose request is still coming has none yet,
        and would keep the others from being told."""
        self.connections = {each: known for each, known in self.connections.items() if _is_served(known)}
        return super().kill_all_applications()


class Entrance(CommandLineInterface):
    server_class = Server

    def load_asgi_app(self, asgi_app_path: str) -> Any:
        application = super().load_asgi_app(asgi_app_path)
        from parachute_site.entrance.channel import Factory  # it needs Django, which the application set up

        server.HTTPFactory = Factory  # daphne makes it by this name, and asks nobody
        return application


def _is_served(known: dict[str, Any]) -> bool:
    return "application_instance" in known


if __name__ == "__main__":
    Entrance().run(sys.argv[1:])
