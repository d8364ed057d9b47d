"""Records that Apache Kafka's own classes wrote are read as the values Kafka says they are, and written the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden_values import as_json

from protocol.api import message_class
from protocol.codegen import codec

_LINES = [
    line.split(" ", 3)
    for line in (Path(__file__).parent / "golden_records.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(
    ("name", "version", "written", "value"), _LINES, ids=[f"{line[0]}-{line[1]}" for line in _LINES]
)
def test_bytes_of_kafka_are_read_and_written_as_kafka_does(name: str, version: str, written: str, value: str) -> None:
    data = bytes.fromhex(written)
    fast = codec(message_class(name), int(version))

    read, end = fast.decode(data)

    assert end == len(data)
    assert as_json(read, int(version)) == json.loads(value)
    assert fast.encode(read) == data
