"""python-schema-registry-client, and FastStream and Quix Streams with messages by a schema."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from registry_clients import run_beside_registry  # noqa: E402 - found by the line above


def prove() -> str:
    run_beside_registry((kit.virtual_environment(HERE, hashed=False), HERE / "register.py"))
    return (
        "python-schema-registry-client registers, looks up, tests and serializes; a FastStream subscriber and a Quix "
        "application read Avro messages by the registry"
    )


if __name__ == "__main__":
    versions = re.findall(r"==(\S+)", (HERE / "requirements.txt").read_text())
    kit.run("python-schema-registry-client, FastStream, Quix Streams", ", ".join(versions), prove)
