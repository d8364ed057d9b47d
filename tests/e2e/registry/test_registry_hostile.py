"""Schemas that are meant to do harm: each is refused, and other clients are served meanwhile."""

from __future__ import annotations

import json
import threading

import pytest
from registry_client import RegistryClient

DEEP = 20_000
HOSTILE = {
    "an Avro schema nested without end": ("AVRO", '{"type":"array","items":' * DEEP + '"int"' + "}" * DEEP),
    "JSON nested without end": ("JSON", '{"not":' * DEEP + "{}" + "}" * DEEP),
    "messages nested without end": ("PROTOBUF", 'syntax="proto3";' + "message A {" * DEEP + "}" * DEEP),
    "a reference to a file": ("JSON", '{"$ref":"file:///etc/passwd"}'),
    "a reference to a host": ("JSON", '{"$ref":"http://127.0.0.1:1/x"}'),
    "an import of a file": ("PROTOBUF", 'syntax="proto3"; import "/etc/passwd";'),
    "a schema of a megabyte that is none": ("AVRO", '"' + "x" * 1_000_000),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_schema_is_refused_and_the_next_one_is_taken(broker, registry, what):
    schema_type, text = HOSTILE[what]
    status, code, message = registry.register("s", text, schemaType=schema_type)
    assert (status, code) == (422, 42201), message
    assert registry.register("s", '"int"')["id"] == 1


def test_body_larger_than_four_megabytes_is_refused(broker, registry):
    assert registry.register("s", "x" * 5_000_000)[:2] == (413, 413)


@pytest.mark.slow  # it ends after the ten seconds that a schema may take
def test_pattern_without_end_ends_after_its_time_while_kafkas_clients_are_served(broker, registry):
    name = "a" * 60
    old = {"type": "object", "properties": {name: {"type": "string"}}, "additionalProperties": False}
    new = {"type": "object", "patternProperties": {"^(?=(a+)+b)": {}}, "additionalProperties": False}
    registry.register("s", json.dumps(old), schemaType="JSON")
    found = []
    thread = threading.Thread(target=lambda: found.append(registry.register("s", json.dumps(new), schemaType="JSON")))
    thread.start()
    broker.create_topic("t")
    served = 0
    while thread.is_alive():
        broker.produce("t", "v")
        assert RegistryClient(broker.registry_url).ask("GET", "/schemas/ids/1")["schemaType"] == "JSON"
        served += 1
    assert found[0][:2] == (422, 42201)
    assert "could not be examined within 10 s" in found[0][2]
    assert served > 10
    assert registry.register("t", '"int"')["id"] == 2
