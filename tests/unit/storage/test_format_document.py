"""The worked example of FORMAT.md is what the code writes."""

from __future__ import annotations

import re
from pathlib import Path

from protocol.record_batch import build_batch

DOCUMENT = Path(__file__).parents[3] / "storage" / "FORMAT.md"


def test_worked_example_is_what_the_code_writes():
    lines = re.findall(r"^00[0-9a-f]0  ((?:[0-9a-f]{2} ){15,16})", DOCUMENT.read_text(), re.MULTILINE)
    batch = build_batch([(b"k", b"v"), (b"k2", None)], base_offset=7, leader_epoch=3, timestamp_ms=1_700_000_000_000)
    assert bytes.fromhex("".join(lines)) == batch
