"""srclient, Go's oldest client of schema registries, with goavro for the records."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from registry_clients import run_beside_registry  # noqa: E402 - found by the line above


def prove() -> str:
    made = kit.edition(HERE, "main.go", "go.mod", "go.sum") / "registry_srclient"
    if not made.exists():
        kit.fetch(("go", "build", "-mod=readonly", "-o", made, "."), cwd=HERE)
    run_beside_registry((made,), broker=False)
    return (
        "Avro, JSON Schema and Protobuf registered, looked up and read, with references and a codec of goavro; levels, "
        "incompatible schemas, deletion and error codes"
    )


if __name__ == "__main__":
    found = re.search(r"srclient v(\S+)", (HERE / "go.mod").read_text())
    assert found
    kit.run("srclient", found[1], prove)
