"""confluent-kafka's client of schema registries, with its serializers for Avro, JSON Schema and Protobuf."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from registry_clients import run_beside_registry  # noqa: E402 - found by the line above


def prove() -> str:
    run_beside_registry((kit.virtual_environment(HERE, hashed=False), HERE / "serialize.py"))
    return (
        "records by AvroSerializer, JSONSerializer and ProtobufSerializer are read back by their ids, with references "
        "and well-known types, under the subject that an association names; subjects, lookup, levels, incompatible "
        "schemas and deletion by SchemaRegistryClient"
    )


if __name__ == "__main__":
    found = re.search(r"==(\S+)", (HERE / "requirements.txt").read_text())
    assert found
    kit.run("confluent-kafka's schema_registry", found[1], prove)
