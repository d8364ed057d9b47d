"""franz-go's client of schema registries, sr."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from registry_clients import run_beside_registry  # noqa: E402 - found by the line above


def prove() -> str:
    made = kit.edition(HERE, "main.go", "go.mod", "go.sum") / "registry_go"
    if not made.exists():
        kit.fetch(("go", "build", "-mod=readonly", "-o", made, "."), cwd=HERE)
    run_beside_registry((made,), broker=False)
    return (
        "schemas, lookup, usages, levels, modes and error codes of Avro and Protobuf; the prefix of a message by Serde"
    )


if __name__ == "__main__":
    found = re.search(r"pkg/sr v(\S+)", (HERE / "go.mod").read_text())
    assert found
    kit.run("franz-go's sr", found[1], prove)
