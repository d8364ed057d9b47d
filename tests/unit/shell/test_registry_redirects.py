"""The login of a schema registry stays with its host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from broker.shell.page.registry import _OPENER


@pytest.fixture
def serve() -> Iterator[Callable[[str | None], tuple[str, list[str | None]]]]:
    """Starts a server that redirects, or answers; its URL, and the logins that it got."""
    servers = []

    def start(to: str | None) -> tuple[str, list[str | None]]:
        seen: list[str | None] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append(self.headers.get("Authorization"))
                is_redirect = to is not None and self.path != "/end"
                self.send_response(302 if is_redirect else 200)
                if is_redirect:
                    self.send_header("Location", to)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", seen

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(url: str) -> None:
    import urllib.request

    asked = urllib.request.Request(url)
    asked.add_header("Authorization", "Basic secret")
    _OPENER.open(asked, timeout=30).close()


def test_redirect_to_another_host_goes_without_the_login(serve):
    other, seen_there = serve(None)
    url, seen = serve(f"{other}/schemas/ids/1")
    ask(f"{url}/schemas/ids/1")
    assert (seen, seen_there) == (["Basic secret"], [None])


def test_redirect_on_the_same_host_keeps_the_login(serve):
    url, seen = serve("/end")
    ask(f"{url}/schemas/ids/1")
    assert seen == ["Basic secret", "Basic secret"]
