"""Keys go where Java's producer sends them, and records without keys go round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from protocol.partitioner import choose_partition, partition_of_key

WHOLE = 1 << 31  # so many partitions show the hash itself
# Of Apache Kafka's UtilsTest.testMurmur2.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), JAVA.items())
def test_key_is_hashed_as_by_java(key, hashed):
    assert partition_of_key(key, WHOLE) == hashed & 0x7FFFFFFF


@given(st.binary(max_size=40), st.integers(1, 1000))
def test_key_goes_where_kafka_python_sends_it(key, count):
    assert choose_partition(key, count, 7) == (murmur2(key) & 0x7FFFFFFF) % count


def test_records_without_key_go_round_from_partition_0():
    assert [choose_partition(None, 3, turn) for turn in range(5)] == [0, 1, 2, 0, 1]
