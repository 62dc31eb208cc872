"""A server on the loopback that writes down who calls, for tests in which nobody may."""

import http.server
import threading
from collections.abc import Callable
from typing import Any


class Listener:
    """Stands where the traps would send the agent, and hears nothing."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        listener = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def __getattr__(self, name: str) -> Callable[[], None]:
                if not name.startswith("do_"):
                    raise AttributeError(name)
                return lambda: listener.heard.append(f"{self.requestline} {self.headers}")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
