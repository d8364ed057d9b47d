"""@kafkajs/confluent-schema-registry and @confluentinc/schemaregistry, the clients of registries for Node."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from registry_clients import run_beside_registry  # noqa: E402 - found by the line above


def prove() -> str:
    made = kit.edition(HERE, "package.json", "package-lock.json", "serialize.js")
    if not (made / "complete").exists():
        for name in ("package.json", "package-lock.json", "serialize.js"):
            shutil.copy(HERE / name, made)
        kit.fetch(("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"), cwd=made)
        (made / "complete").touch()
    run_beside_registry(("node", "serialize.js"), broker=False, cwd=made)
    return (
        "Avro, JSON Schema and Protobuf encoded and decoded by the first, Avro and JSON Schema by the second; "
        "incompatible schemas refused; levels and deletion"
    )


if __name__ == "__main__":
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]
    kit.run(" and ".join(pinned), ", ".join(pinned.values()), prove)
