"""Frames that Apache Kafka's own classes wrote are read as the values that Kafka was given, and written the same."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from golden_values import golden_value

from protocol.api import message_class
from protocol.codegen import codec

FRAMES = Path(__file__).parent / "golden_frames.txt"


def golden_frames() -> dict[str, list[tuple[int, str, bytes]]]:
    """By message: version, kind of value, bytes."""
    found = defaultdict(list)
    for line in FRAMES.read_text().splitlines():
        if not line.startswith("#"):
            name, version, kind, written = line.split(" ")
            found[name].append((int(version), kind, bytes.fromhex(written)))
    return found


_FRAMES = golden_frames()


@pytest.mark.parametrize("name", _FRAMES)
def test_frames_of_kafka_are_read_and_written_as_kafka_does(name: str) -> None:
    cls = message_class(name)
    for version, kind, written in _FRAMES[name]:
        fast, expected = codec(cls, version), golden_value(cls, version, kind)
        read, end = fast.decode(written)
        assert read == expected, f"{name} v{version} {kind}"
        assert end == len(written), f"{name} v{version} {kind}"
        assert fast.encode(expected).hex() == written.hex(), f"{name} v{version} {kind}"
