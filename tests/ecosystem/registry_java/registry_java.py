"""Java: Confluent's own client, which Maven Central has within a jar of Flink, and Apicurio's serdes in Confluent's
wire format. Apicurio's find schemas by Resolver.java, for they know no API of registries but Apicurio's."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from registry_clients import run_beside_registry  # noqa: E402 - found by the line above


def prove() -> str:
    run_beside_registry((*kit.JVM, "-cp", kit.compiled(HERE, "Resolver.java", "Clients.java"), "Clients"))
    return (
        "Confluent's CachedSchemaRegistryClient registers, looks up, tests, refers, deletes, sets levels and modes; "
        "Apicurio's Avro serializer and deserializer in Confluent's wire format find their schemas by it"
    )


if __name__ == "__main__":
    version = f"{kit.version_in(HERE, 'flink.version')}, {kit.version_in(HERE, 'apicurio.version')}"
    kit.run("Confluent's client in Flink's jar, Apicurio's serdes", version, prove)
