"""One batch, changed where a test wants it, and what an append makes of it."""

from __future__ import annotations

from struct import pack

import pytest
from unit.partitions.data_path import DataPath, append_batch

from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import (
    BatchHeader,
    crc32c,
)


def edited(data: bytes, at: int, replacement: bytes, *, crc: bool = True) -> bytes:
    """The batch with some bytes changed, and its CRC put right."""
    out = bytearray(data)
    out[at : at + len(replacement)] = replacement
    if crc:
        out[17:21] = pack(">I", crc32c(bytes(out[21:])))
    return bytes(out)


def refusal(path: DataPath, data: bytes, name: str = "t", **more: object) -> ErrorCode:
    topic = path.metadata.topics[name]
    partition = path.partition(topic, 0)
    before = partition.log.end_offset
    with pytest.raises(KafkaError) as refused:
        append_batch(partition, memoryview(data), path.now_ms, **more)
    assert partition.log.end_offset == before
    return refused.value.code


def stored(path: DataPath, data: bytes, name: str = "t") -> tuple[BatchHeader, bytes]:
    """The batch as it lies in the log."""
    partition = path.partition(path.metadata.topics[name], 0)
    partition.configure(path.metadata.topics[name], path.metadata)
    offset, _ = append_batch(partition, memoryview(data), path.now_ms)
    path.turn.touch(partition.flush_state)
    path.end_turn()
    found = partition.log.read(offset, 1 << 20, limit_offset=partition.log.end_offset)
    assert found is not None
    whole = found.read()
    header = BatchHeader.from_buffer(whole)
    assert header.crc == crc32c(whole[21:])
    return header, whole
