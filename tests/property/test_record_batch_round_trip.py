"""Any records, any codec: what is built is read back, by us and by another decoder."""

from __future__ import annotations

from budget import budget
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from protocol.record_batch import build_batch, iter_batches, iter_records

data = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3)
times = st.integers(0, 2**41)
records = st.lists(
    st.tuples(data, data) | st.tuples(data, data, headers) | st.tuples(data, data, headers, st.none() | times),
    min_size=1,
    max_size=20,
)


@budget(40)
@given(records=records, codec=st.integers(0, 4), base_offset=st.integers(0, 2**40), timestamp_ms=times)
def test_batch_round_trip(records, codec, base_offset, timestamp_ms):
    batch = build_batch(records, base_offset=base_offset, timestamp_ms=timestamp_ms, attributes=codec)
    expected = []
    for delta, record in enumerate(records):
        key, value, found, time = (*record, [], None)[:4] if len(record) != 3 else (*record, None)
        time = timestamp_ms if time is None else time
        expected.append((base_offset + delta, time, key, value, list(found or [])))
    ours = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in iter_records(batch)]
    assert ours == expected
    theirs = DefaultRecordBatch(batch)
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in theirs] == expected
    ((position, header),) = iter_batches(batch)
    assert (position, header.size, header.last_offset) == (0, len(batch), base_offset + len(records) - 1)
    assert header.max_timestamp == max(record[1] for record in expected)
