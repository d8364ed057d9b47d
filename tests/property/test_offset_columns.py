"""Columns of offsets behave as a dict, whatever form their cells take; the log's fast reader as the slow one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import commit_batch

from broker.coordinator.offsets.columns import Committed, Pending
from broker.coordinator.offsets.commit_batch import CommitBatch
from broker.coordinator.offsets.replay_run import offset_key, replay_commit
from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.records import committed_value
from broker.coordinator.replay import Replay
from protocol.record import encode_record
from protocol.record_batch import HEADER_BYTES, BatchHeader, build_batch, iter_records

IDS = [bytes(16), bytes([1] * 16), bytes([2] * 16)]
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
PARTITIONS = st.integers(0, 12)
COMMITTED = st.builds(
    Committed,
    INT64,
    st.just(-1) | INT32,
    st.sampled_from(["", "", "m"]),
    st.integers(0, 3),
    st.sampled_from([-1, -1, 5]),
    st.sampled_from(IDS),
)


@st.composite
def runs(draw):
    if draw(st.booleans()):
        start = draw(PARTITIONS)
        partitions = list(range(start, start + draw(st.integers(1, 6))))
    else:
        partitions = draw(st.lists(PARTITIONS, min_size=1, max_size=5, unique=True))
    n = len(partitions)
    epochs = draw(st.lists(INT32, min_size=n, max_size=n) | st.just([7] * n))
    return partitions, draw(st.lists(INT64, min_size=n, max_size=n)), epochs, draw(st.integers(0, 3))


STEPS = st.lists(
    st.tuples(st.just("put"), PARTITIONS, COMMITTED)
    | st.tuples(st.just("remove"), PARTITIONS, st.none())
    | st.tuples(st.just("run"), runs(), st.sampled_from(IDS[1:])),
    max_size=25,
)


@given(STEPS)
def test_columns_hold_what_a_dict_would(steps):
    columns = OffsetTable().topic_or_new("g", "t")
    model: dict[int, Committed] = {}
    for kind, where, what in steps:
        seen = columns.mark()
        if kind == "put":
            columns.replay(where, what)
            model[where] = what
        elif kind == "remove":
            columns.replay_removal(where)
            model.pop(where, None)
        else:
            partitions, offsets, epochs, time_ms = where
            dense = partitions == list(range(partitions[0], partitions[0] + len(partitions)))
            columns.replay_run(tuple(partitions), tuple(offsets), tuple(epochs), time_ms, what, dense=dense)
            for partition, offset, epoch in zip(partitions, offsets, epochs, strict=True):
                model[partition] = Committed(offset, epoch, "", time_ms, -1, what)
        assert not seen.is_valid
        assert columns.partitions() == sorted(model)
        assert columns.live == len(model)
        assert {p: columns.get(p) for p in range(-1, 20)} == {p: model.get(p) for p in range(-1, 20)}
        if model:
            assert columns.oldest_ms <= min(c.commit_timestamp_ms for c in model.values())
        assert bool(columns.expire) == any(c.expire_timestamp_ms >= 0 for c in model.values())


def test_pending_offsets_keep_columns_alive_and_go():
    table = OffsetTable()
    columns = table.topic_or_new("g", "t")
    columns.replay_pending(3, 9, Pending(Committed(5), 0))
    table.drop_empty("g", "t", columns)
    assert table.has_pending("g")
    assert columns.replay_ended(3, 9).committed == Committed(5)
    assert columns.replay_ended(3, 9) is None
    table.drop_empty("g", "t", columns)
    assert not table.has_group("g")


class Machine:
    """Replays single records; what is under test must not need it."""

    def __init__(self):
        self.offsets = OffsetTable()
        self.records = 0

    def replay(self, key, value, offset, producer_id=-1):
        self.records += 1


@given(runs(), st.sampled_from(IDS), st.sampled_from(["g", "ünï-😀", "x" * 300]), st.sampled_from([b"\0", b"\2\2c\2d"]))
def test_batch_of_a_commit_is_read_back_in_columns(run, topic_id, group_id, headers):
    partitions, offsets, epochs, now_ms = run
    batch = commit_batch(CommitBatch(group_id, "topic", topic_id, partitions, headers), 5, 1, now_ms, offsets, epochs)
    machine = Machine()
    Replay(machine).batch(BatchHeader.from_buffer(batch), memoryview(batch))
    assert machine.records == 0
    assert machine.offsets.fingerprint() == {
        (group_id, "topic", p): Committed(offset, epoch, "", now_ms, -1, topic_id)
        for p, offset, epoch in zip(partitions, offsets, epochs, strict=True)
    }


@given(st.data())
def test_batch_that_differs_anywhere_is_left_to_the_general_reader(data):
    """Change one byte of the records: either it is another commit of the same shape, read right, or it is not taken."""
    n = data.draw(st.integers(1, 4))
    batch = bytearray(
        commit_batch(CommitBatch("group", "topic", IDS[1], range(n), b"\2\2c\2d"), 0, 0, 9, range(n), [3] * n)
    )
    headers = batch.index(b"\2\2c\2d")  # not read again: the CRC stands for them
    at = data.draw(st.integers(61, headers - 1) | st.integers(headers + 5, max(headers + 5, len(batch) - 1)))
    if at >= len(batch):
        return
    batch[at] ^= data.draw(st.integers(1, 255))
    taken_as_one_by_one(bytes(batch))


def cleaned(n: int, kept: list[int], headers: bytes = b"\0", group_id: str = "group") -> bytearray:
    """What a cleaner leaves of a commit on n partitions."""
    whole = commit_batch(CommitBatch(group_id, "topic", IDS[1], range(n), headers), 0, 0, 9, range(n), range(n))
    records = list(iter_records(whole))
    left = [encode_record(each, 0, records[each].key, records[each].value, records[each].headers) for each in kept]
    batch = bytearray(whole[: HEADER_BYTES - 4] + len(kept).to_bytes(4, "big") + b"".join(left))
    assert list(iter_records(bytes(batch))) == [records[each] for each in kept]
    return batch


def taken_as_one_by_one(batch: bytes) -> bool:
    """Whether the fast reader takes a batch. If it does, it reads what the slow one reads."""
    table = OffsetTable()
    try:
        taken = replay_commit(table, BatchHeader.from_buffer(batch), memoryview(batch))
    except UnicodeDecodeError:
        return False
    if taken:
        expected = {offset_key(each.key): committed_value(each.value) for each in iter_records(bytes(batch))}
        assert table.fingerprint() == expected
    return taken


@given(st.data(), st.sampled_from([b"\0", b"\2\2c\2d"]))
def test_what_a_cleaner_left_of_a_batch_is_read_in_columns(data, headers):
    n = data.draw(st.sampled_from([2, 3, 60, 64, 65, 66, 70, 130, 300]))
    kept = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n)))
    assert taken_as_one_by_one(cleaned(n, kept, headers))


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_batch_that_has_lost_a_few_records_is_read_in_columns(gone):
    for first in range(9 - gone):
        kept = [each for each in range(8) if not first <= each < first + gone]
        assert taken_as_one_by_one(cleaned(8, kept)), kept


@pytest.mark.parametrize("kept", [[0, 2, 4], [3, 62, 66, 68], [80, 90, 95]])
def test_byte_that_differs_in_a_cleaned_batch_is_no_other_commit(kept):
    whole = cleaned(100, kept)
    taken = 0
    for at in range(len(cleaned(100, kept[:1])), len(whole)):
        for flip in (1, 2, 0x40, 0x80, 0xFF):
            batch = bytearray(whole)
            batch[at] ^= flip
            taken += taken_as_one_by_one(batch)
    assert taken


@pytest.mark.parametrize("kept", [[0, 2, 4], [3, 62, 66, 68], [80, 90, 95]])
@pytest.mark.parametrize("group_id", ["group", ""])
def test_cleaned_batch_of_another_length_is_left_to_the_general_reader(kept, group_id):
    """Without a group id a record with a delta of one byte has 63 bytes, with two its length takes two bytes too."""
    whole = bytes(cleaned(100, kept, group_id=group_id))
    assert replay_commit(OffsetTable(), BatchHeader.from_buffer(whole), memoryview(whole))
    for length in range(len(cleaned(100, kept[:1], group_id=group_id)), len(whole)):
        assert not replay_commit(OffsetTable(), BatchHeader.from_buffer(whole), memoryview(whole[:length]))
    for more in range(1, 200):
        longer = whole + bytes(more)
        assert not replay_commit(OffsetTable(), BatchHeader.from_buffer(whole), memoryview(longer))


def test_commit_with_metadata_is_left_to_the_general_reader():
    batch = build_batch([(b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\4" + bytes(12) + b"\2m" + bytes(9))], timestamp_ms=1)
    assert not replay_commit(OffsetTable(), BatchHeader.from_buffer(batch), memoryview(batch))
