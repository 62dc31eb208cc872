"""A server on the loopback that takes some keys, as a model's API does: for tests that enter one."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Taking:
    """Answers `GET /v1/models`: 200 to a good key, else 401; or `status`, whatever comes."""

    def __init__(self, good: str) -> None:
        self.good, self.status = good, 0
        self.asked: list[dict[str, str]] = []
        self.url = ""

    def answer(self, path: str, headers: dict[str, str]) -> int:
        self.asked.append(headers)
        if path != "/v1/models":
            return 404
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return self.status or (200 if given == self.good else 401)


@contextmanager
def taking(good: str) -> Iterator[Taking]:
    model = Taking(good)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = model.answer(self.path, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            self.send_header("Content-Length", "2")
            if 300 <= status < 400:
                self.send_header("Location", f"{model.url}/elsewhere")
            self.end_headers()
            self.wfile.write(json.dumps({}).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
