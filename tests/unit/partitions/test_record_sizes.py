"""How large a record of a compressed batch may be when decompressed: max.decompressed.message.bytes."""

from __future__ import annotations

import pytest
from unit.partitions.data_path import NOW_MS, DataPath, batch

from protocol.errors import ErrorCode
from protocol.record_batch import assemble_batch


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_compressed_record_above_max_decompressed_message_bytes_is_invalid(path: DataPath, codec: int) -> None:
    """As Apache Kafka 4.4.0: the record's own bytes count, its length field does not; 7 are not the value's."""
    path.topic(max_decompressed_message_bytes="1000")
    for values in ([b"x" * 993], [b"x" * 600, b"y" * 993]):
        assert path.produce(batch(*values, attributes=codec)).error_code == 0
    for values in ([b"x" * 994], [b"x" * 10, b"y" * 994]):
        answer = path.produce(batch(*values, attributes=codec))
        assert answer.error_code == (ErrorCode.INVALID_RECORD if codec else 0)
        assert answer.record_errors == []


@pytest.mark.parametrize("section", [b"\x02\x00" * 600 + b"\x80", b"\x80" * 1200], ids=["cut", "too long"])
def test_section_with_a_length_that_cannot_be_read_is_invalid(path: DataPath, section: bytes) -> None:
    path.topic(max_decompressed_message_bytes="1000")
    data = assemble_batch(
        section,
        base_offset=0,
        leader_epoch=-1,
        attributes=1,
        last_offset_delta=700,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=701,
        level=None,
    )
    assert path.produce(data).error_code == ErrorCode.INVALID_RECORD
