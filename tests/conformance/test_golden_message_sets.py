"""Message sets that Apache Kafka's own classes wrote are read as the records they are, and written the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.compression import CODEC_NAMES
from protocol.message_set import build_message_set, read_message_set
from protocol.record import Record
from protocol.record_batch import LOG_APPEND_TIME

_LINES = [
    line.split(" ")
    for line in (Path(__file__).parent / "golden_message_sets.txt").read_text().splitlines()
    if not line.startswith("#")
]
NOW_MS = 1_700_000_000_000
RECORDS = [(b"k0", b"v0" * 50), (None, b"v1"), (b"k2", None)]
MANY = 1 << 20


def times(magic: str, kind: str) -> list[int]:
    if magic == "0":
        return [-1] * 3
    return [NOW_MS + 9] * 3 if kind == "append" else [NOW_MS, NOW_MS + 1, NOW_MS + 2]


@pytest.mark.parametrize(("magic", "codec", "kind", "written"), _LINES, ids=["-".join(line[:3]) for line in _LINES])
def test_message_sets_of_kafka_are_read_and_written_as_kafka_does(
    magic: str, codec: str, kind: str, written: str
) -> None:
    data, number, is_append = bytes.fromhex(written), CODEC_NAMES.index(codec), kind == "append"
    expected = [(*each, (), time) for each, time in zip(RECORDS, times(magic, kind), strict=True)]
    found = read_message_set(data, MANY)
    assert found.records == expected
    assert (found.codec, found.append_ms) == (number, NOW_MS + 9 if is_append else None)

    records = [Record(5 + at, time, key, value) for at, (key, value, _, time) in enumerate(expected)]
    made = build_message_set(records, int(magic), codec=number, is_append_time=is_append)
    if number == 0:
        assert made.hex() == written
        return
    again = read_message_set(made, MANY)
    assert (again.records, again.codec, again.append_ms) == (expected, number, found.append_ms)
    # all of the wrapper but the compressed bytes, whose size differs from one compressor to another
    head = 30 if magic == "0" else 38
    assert made[:8] == data[:8], "the offset of the last message"
    assert made[16 : head - 8] == data[16 : head - 8], "magic, attributes and timestamp"
    assert made[17] & LOG_APPEND_TIME == (LOG_APPEND_TIME if is_append else 0)
    if codec == "lz4":
        assert made[head : head + 7] == data[head : head + 7], (
            "the frame's header, with the checksum that old clients expect"
        )
