"""The control endpoint from Python: what a broker's answer becomes."""

from __future__ import annotations

import gc
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from momus.control import Clock, Control, ControlError


class Answering(Control):
    """A broker that gives one answer to everything."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.prefix = "/_admin"

    def ask(self, method: str, path: str, body: object = None) -> object:
        return self.answer


@pytest.mark.parametrize(
    "move", [lambda clock: clock.advance(days=8), lambda clock: clock.set(datetime(2026, 1, 31, tzinfo=UTC))]
)
def test_clock_that_has_moved_with_work_left_undone_is_an_error(move):
    move(Clock(Answering({"now_ms": 1, "stands": False, "settled": True})))
    with pytest.raises(ControlError, match="the clock has moved, but not all"):
        move(Clock(Answering({"now_ms": 1, "stands": False, "settled": False})))


class Hello(BaseHTTPRequestHandler):
    """Answers every GET, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # http.server calls it so
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


def test_connections_of_a_control_that_is_forgotten_are_closed():
    """An unclosed socket is a ResourceWarning, which is an error here; a cycle's order of finalizers is not ours."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        kept = []
        for _ in range(20):
            control = Control(f"127.0.0.1:{server.server_address[1]}")
            assert control.of_cluster("c").ask("GET", "/") == {}
            assert len(control._unused) == 1
            kept.append(control._unused[0]._socket)
            del control
        gc.collect()
        assert [each.fileno() for each in kept] == [-1] * 20
        server.shutdown()
        thread.join()
