"""Schemas that are meant to do harm: each is refused, and other clients are served meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
import urllib.parse
from pathlib import Path

import pytest
from registry_client import RegistryClient

DEEP = 20_000
MEGABYTE = 1_000_000
PROTO = 'syntax="proto3"; '


def chain(length):
    """JSON Schemas of which each refers to the next."""
    links = {f"d{number}": {"items": {"$ref": f"#/definitions/d{number + 1}"}} for number in range(length)}
    return json.dumps({"definitions": {**links, f"d{length}": {}}, "$ref": "#/definitions/d0"})


HOSTILE = {
    "an Avro schema nested without end": ("AVRO", '{"type":"array","items":' * DEEP + '"int"' + "}" * DEEP),
    "JSON nested without end": ("JSON", '{"not":' * DEEP + "{}" + "}" * DEEP),
    "messages nested without end": ("PROTOBUF", PROTO + "message A {" * DEEP + "}" * DEEP),
    "references without end": ("JSON", chain(2000)),
    "a reference to itself": ("JSON", '{"$ref":"#"}'),
    "a reference to a file": ("JSON", '{"$ref":"file:///etc/passwd"}'),
    "a reference to a host": ("JSON", '{"$ref":"http://127.0.0.1:1/x"}'),
    "a vocabulary of a host": ("JSON", '{"$schema":"http://127.0.0.1:1/x","$ref":"http://127.0.0.1:1/x#/a"}'),
    "an import of a file": ("PROTOBUF", PROTO + 'import "/etc/passwd";'),
    "an import of a file above": ("PROTOBUF", PROTO + 'import "../../../../etc/passwd";'),
    "an import of a host": ("PROTOBUF", PROTO + 'import "http://127.0.0.1:1/x.proto";'),
    "a megabyte of Avro that is none": ("AVRO", '"' + "x" * MEGABYTE),
    "a megabyte of JSON that is no schema": ("JSON", '{"title":7,"description":"' + "x" * MEGABYTE + '"}'),
    "a megabyte of Protobuf that is none": ("PROTOBUF", PROTO + "message " + "x" * MEGABYTE),
    "a name of a megabyte": ("AVRO", '{"type":"fixed","size":1,"name":"' + "x-" * (MEGABYTE // 2) + '"}'),
}


def examiners(broker):
    """The processes that examine schemas."""
    found = []
    for each in Path(f"/proc/{broker.pid}/task/{broker.pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(each))
    return found


def until(found):
    """Look again until something is found."""
    ends = time.monotonic() + 60
    while not (what := found()):
        assert time.monotonic() < ends
        time.sleep(0.01)
    return what


@contextlib.contextmanager
def asked(broker, registry, subject, text, schema_type):
    """A client of its own registers a schema; its answers so far."""
    found = []

    def ask():
        found.append(RegistryClient(registry.url).register(subject, text, schemaType=schema_type))

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: [row for row in broker.journal.entries(api="Registry") if row["request"].get("subject") == subject])
    yield found
    thread.join(60)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the broker's processes in /proc")
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_schema_is_refused_and_others_are_served_meanwhile(broker, registry, what):
    """Its examination is made to last: what examines it is stopped. Whatever else is served does not wait for it."""
    schema_type, text = HOSTILE[what]
    registry.register("before", '"int"')
    (process,) = until(lambda: examiners(broker) if len(examiners(broker)) == 1 else [])
    os.kill(process, signal.SIGSTOP)
    try:
        with asked(broker, registry, "hostile", text, schema_type) as answers:
            broker.create_topic("t")
            broker.produce("t", "v")
            assert registry.ask("GET", "/schemas/ids/1")["schema"] == '"int"'
            assert registry.register("other", '"long"')["id"] == 2
            assert registry.ask("PUT", "/config/other", {"compatibility": "FULL"}) == {"compatibility": "FULL"}
            assert registry.ask("DELETE", "/subjects/other") == [1]
            assert answers == []
            os.kill(process, signal.SIGCONT)
        status, code, message = answers[0]
        assert (status, code) == (422, 42201)
        assert "has ended" not in message
        assert "could not be examined" not in message
        assert registry.register("hostile", '"int"')["id"] == 1
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def test_body_larger_than_four_megabytes_is_refused(broker, registry):
    assert registry.register("s", "x" * 5_000_000)[:2] == (413, 413)


@pytest.mark.parametrize(
    "body",
    [
        '{"schema":' + "[" * 1_000_000,
        '{"schema":"x","references":' + "[" * 500_000 + "]" * 500_000 + "}",
        '{"schema":"x","metadata":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
    ],
)
def test_body_that_is_nested_without_end_is_refused(broker, registry, body):
    place = urllib.parse.urlsplit(registry.url)
    with socket.create_connection((place.hostname, place.port)) as wire:
        head = f"POST /subjects/s/versions HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
        wire.sendall(head.encode() + body.encode())
        assert wire.recv(65_536).startswith(b"HTTP/1.1 400 ")
    assert registry.register("s", '"int"')["id"] == 1


NAME = "a" * 60
ENDLESS = [
    json.dumps({"type": "object", "properties": {NAME: {"type": "string"}}, "additionalProperties": False}),
    json.dumps({"type": "object", "patternProperties": {"^(?=(a+)+b)": {}}, "additionalProperties": False}),
]


@pytest.mark.slow  # it ends after the ten seconds that a schema may take
def test_pattern_without_end_ends_after_its_time_while_kafkas_clients_are_served(broker, registry):
    registry.register("s", ENDLESS[0], schemaType="JSON")
    served = 0
    with asked(broker, registry, "s", ENDLESS[1], "JSON") as found:
        broker.create_topic("t")
        while not found:
            broker.produce("t", "v")
            assert RegistryClient(registry.url).ask("GET", "/schemas/ids/1")["schemaType"] == "JSON"
            served += 1
    assert found[0][:2] == (422, 42201)
    assert "could not be examined within 10 s" in found[0][2]
    assert served > 10
    assert registry.register("t", '"int"')["id"] == 2


def test_others_register_while_a_pattern_without_end_is_tried(broker, registry):
    """The last of the file: what tries the pattern ends with the broker, seconds before its time."""
    registry.register("s", ENDLESS[0], schemaType="JSON")
    place = urllib.parse.urlsplit(registry.url)
    body = json.dumps({"schema": ENDLESS[1], "schemaType": "JSON"})
    head = f"POST /subjects/s/versions HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((place.hostname, place.port)) as wire:
        wire.sendall((head + body).encode())
        until(lambda: len(broker.journal.entries(api="Registry")) == 2)
        assert registry.register("t", '"int"')["id"] == 2
        assert registry.register("s", '{"title":"s"}', schemaType="JSON")["id"] == 3  # the same subject too
        wire.setblocking(False)
        with pytest.raises(BlockingIOError):
            wire.recv(1)
    assert registry.ask("GET", "/subjects") == ["s", "t"]
