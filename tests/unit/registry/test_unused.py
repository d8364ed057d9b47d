"""Who does not use the registry pays nothing for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
LIBRARIES = (
    "avro",
    "jsonschema",
    "referencing",
    "google.protobuf",
    "grpc_tools",
    "broker.registry",
    "broker.shell.registry",
)


def loaded_by(*modules):
    program = f"import {', '.join(modules)}, sys, json; print(json.dumps(sorted(sys.modules)))"
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120)
    return [name for name in json.loads(done.stdout) if name.startswith(LIBRARIES)]


@pytest.mark.heavy
def test_broker_and_its_control_endpoint_load_nothing_of_the_registry():
    assert loaded_by("broker.shell.server", "broker.shell.control.endpoint", "broker.shell.page.messages") == []


@pytest.mark.heavy
def test_registry_loads_the_libraries_of_formats_in_its_other_process_alone():
    found = loaded_by("broker.shell.registry.open", "broker.registry.registering.register", "broker.registry.reading")
    assert [name for name in found if not name.startswith("broker.")] == []
    assert [name for name in found if name.startswith("broker.registry.formats")] == []
