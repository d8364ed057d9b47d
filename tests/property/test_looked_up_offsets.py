"""Offsets told to producers that send again, on compacted topics: the true one, or none, whatever the cleaner did."""

from __future__ import annotations

from budget import budget
from hypothesis import given
from hypothesis import strategies as st
from unit.partitions.data_path import DataPath, batch

from protocol.errors import ErrorCode

WRITES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2)), min_size=4, max_size=40)


@budget(40)
@given(writes=WRITES, cleaned_after=st.integers(1, 40), is_killed=st.booleans(), first=st.sampled_from([0, 2**31 - 9]))
def test_offset_told_again_is_the_first_one_or_none(
    writes: list[tuple[int, int, int]], cleaned_after: int, is_killed: bool, first: int
) -> None:
    path = DataPath()
    topic = path.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
    next_: dict[int, int] = {}
    told: list[tuple[int, bytes, int]] = []

    def clean() -> None:
        partition = path.partition(path.metadata.topics["t"], 0)
        partition.log.roll()
        for _ in partition.clean(path.now_ms, partition.last_stable_offset):
            pass

    for number, (pid, count, key) in enumerate(writes, 1):
        seq = next_.get(pid, first)
        data = batch(*[(b"%d" % key, b"%d" % number)] * count, pid=pid, epoch=0, seq=seq)
        answer = path.produce(data)
        assert answer.error_code == 0
        told.append((pid, data, answer.base_offset))
        next_[pid] = (seq + count) & 0x7FFFFFFF
        if number == cleaned_after:
            clean()
    end = path.partition(topic, 0).log.end_offset
    path = path.reopened(clean=not is_killed)
    without_offset = 0
    without = {ErrorCode.DUPLICATE_SEQUENCE_NUMBER}
    if is_killed:  # before a snapshot: the gaps that the cleaner made are all that a start finds
        without.add(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    for _, data, offset in told:
        answer = path.produce(data)
        if answer.error_code in without:
            assert answer.base_offset == -1
            without_offset += 1
        else:
            assert (answer.error_code, answer.base_offset) == (0, offset)
    if cleaned_after > len(writes):
        assert without_offset == 0
    for pid in next_:
        last = [each for each in told if each[0] == pid][-1]
        assert path.produce(last[1]).base_offset == last[2]
    assert path.partition(path.metadata.topics["t"], 0).log.end_offset == end
