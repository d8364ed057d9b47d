"""The control plane as HTTP: its index, its OpenAPI description held against the server, keep-alive, and the token."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable

import pytest
from described import fits
from test_control import momus
from test_control_requests import exchange, post

from momus import Broker
from momus.control import Control, ControlError

NAMES = {
    "cluster": "default",
    "id": "2",
    "name": "gate",
    "topic": "orders",
    "group": "g",
    "snapshot": "s",
    "user": "alice",
    "file": "index.html",
    "number": "1",
    "transactional_id": "tx",
    "subject": "orders-value",
}


@pytest.mark.parametrize(
    ("value", "is_right"),
    [({"a": 1}, True), ({"a": True}, False), ({}, False), ({"a": 1, "b": 1}, False), ([], False), ({"a": None}, False)],
)
def test_validator_of_these_tests_can_say_no(value, is_right):
    one_number = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert bool(fits(value, {**one_number, "additionalProperties": False})) == is_right


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_methods_and_fields_that_no_description_has_are_refused(shared_broker, method):
    described = shared_broker.control.ask("GET", "/openapi.json")
    for path, operations in described["paths"].items():
        if method.lower() not in operations:
            with pytest.raises(ControlError, match="takes"):
                shared_broker.control.ask(method, path.format(**NAMES))
        elif "requestBody" in operations[method.lower()]:
            with pytest.raises(ControlError, match="no such field"):
                shared_broker.control.ask(method, path.format(**NAMES), {"surprise": 1})


def test_requests_follow_one_another_on_one_connection(shared_broker):
    get = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    requests = get % b"/healthz" + get % b"/nowhere" + post("/_admin/clock", b'{"back": 1}') + get % b"/healthz"
    answers = exchange(shared_broker.control.address, requests)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"404", b"400", b"200"]
    last = exchange(
        shared_broker.control.address, get[:-2] % b"/healthz" + b"Connection: close\r\n\r\n" + get % b"/healthz"
    )
    assert re.findall(rb"HTTP/1.1 (\d+)", last) == [b"200"]


def test_client_keeps_its_connection_and_finds_a_closed_one_out(shared_broker):
    control = Control(shared_broker.control.address)
    control.ask("GET", "/healthz")
    (kept,) = control._unused
    control.ask("GET", "/healthz")
    assert control._unused == [kept]
    kept._socket.shutdown(socket.SHUT_RDWR)
    assert control.ask("GET", "/healthz") == {"status": "ok"}
    assert control._unused != [kept]


@pytest.fixture
def guarded(tmp_path, serve_with: Callable[..., str]) -> str:
    return serve_with("--control", "0.0.0.0:0", "--control-anyone", "--control-token", "sesame")


@pytest.mark.parametrize(
    ("header", "status"), [("", 401), ("Bearer wrong", 401), ("sesame", 401), ("Bearer sesame", 200)]
)
def test_endpoint_on_other_than_loopback_asks_for_its_token(guarded, header, status):
    address = guarded.replace("0.0.0.0", "127.0.0.1")
    field = f"Authorization: {header}\r\n" if header else ""
    request = f"GET /healthz HTTP/1.1\r\nHost: broker.example:1\r\n{field}\r\n"
    head, _, body = exchange(address, request.encode()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body).keys() == ({"status"} if status == 200 else {"error"})
    if status == 200:
        assert Control(address, "sesame").ask("GET", "/healthz") == {"status": "ok"}


def test_endpoint_on_other_than_loopback_is_not_opened_without_a_token(tmp_path):
    done = momus("serve", "--control", "0.0.0.0:0", "--control-anyone", "--data-dir", str(tmp_path))
    assert done.returncode == 2
    assert "--control-token" in done.stderr


def test_frozen_clock_stands_until_it_is_moved_or_resumed():
    with Broker() as broker:
        broker.clock.freeze()
        at = broker.clock.now()
        assert broker.clock.stands()
        assert broker.clock.now() == at
        broker.clock.advance(seconds=45)
        assert (broker.clock.now() - at).total_seconds() == 45
        broker.clock.resume()
        assert not broker.clock.stands()
