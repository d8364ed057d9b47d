"""The image serves a schema registry, by a variable of momus or Confluent, with the libraries of all three formats."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable

import pytest
from image_kit import Container

Start = Callable[..., Container]
SCHEMAS = {
    "AVRO": '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}',
    "JSON": '{"type":"object","properties":{"id":{"type":"integer"}}}',
    "PROTOBUF": 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; '
    "message Order { google.protobuf.Timestamp at = 1; }",
}


@pytest.mark.parametrize("variable", ["MOMUS_REGISTRY=0.0.0.0:8081", "SCHEMA_REGISTRY_LISTENERS=http://0.0.0.0:8081"])
def test_registry_of_the_image_takes_all_three_formats(start: Start, variable: str):
    container = start("-p", "127.0.0.1::8081", "-e", variable)
    container.wait_for("momus registry http://")
    url = f"http://{container.address(8081)}"
    for number, (schema_type, schema) in enumerate(SCHEMAS.items(), 1):
        body = json.dumps({"schemaType": schema_type, "schema": schema}).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        asked = urllib.request.Request(f"{url}/subjects/{schema_type.lower()}-value/versions", body, headers)
        with urllib.request.urlopen(asked, timeout=60) as reply:
            assert json.load(reply)["id"] == number
    with urllib.request.urlopen(f"{url}/subjects", timeout=60) as reply:
        assert json.load(reply) == ["avro-value", "json-value", "protobuf-value"]
