"""The parts that commits pass through, at their edges: batches, columns, runs, spans, images."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request
from log_kit import commit_batch, put

from broker.coordinator.offsets import imaging, rows, snapshots
from broker.coordinator.offsets.columns import Committed, Pending
from broker.coordinator.offsets.commit_batch import RECORD_BYTES, CommitBatch, OneCommit
from broker.coordinator.offsets.commit_run import Commit, Run, commit_of
from broker.coordinator.offsets.pending import PendingOffsets
from broker.coordinator.offsets.replay_run import MOST_RECORDS, offset_key, replay_commit
from broker.coordinator.offsets.rows import LARGEST_SHARED, MOST_EPOCH
from broker.coordinator.offsets.snapshots import COLUMNS, RARE, SINGLES, Labels, Reader, encode_head, encode_offsets
from broker.coordinator.offsets.spans import are_offsets, span_batches
from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.runtime import CLOSED, READY
from protocol.record_batch import HEADER_BYTES, BatchHeader, build_batch, iter_records
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig

ID = bytes([1] * 16)
BUILDERS = (OneCommit, CommitBatch)


# -- batches


@pytest.mark.parametrize("builder", BUILDERS)
def test_dense_means_that_each_partition_follows_the_one_before(builder: Any) -> None:
    for start, n in product(range(9), range(1, 9)):
        partitions = list(range(start, start + n))
        assert builder("g", "t", ID, partitions).dense
        assert builder("g", "t", ID, tuple(partitions)).dense
        if n > 1:
            assert not builder("g", "t", ID, partitions[::-1]).dense
            assert not builder("g", "t", ID, [*partitions[:-1], start + n]).dense
            assert not builder("g", "t", ID, [start] * n).dense


@pytest.mark.parametrize("topic_id", [ID, bytes(16)])
@pytest.mark.parametrize("headers", [b"\0", b"\2\2c\2d", b"\2" + b"\xf8\1" + b"c" * 124 + b"\2d"])
def test_size_that_is_promised_for_a_batch_is_enough_and_no_more(topic_id: bytes, headers: bytes) -> None:
    for n, name in product([1, 2, 63, 64, 65, 300], ["t", "t" * 60, "t" * 249]):
        partitions = range(5, 5 + n)
        one, many = (builder("group", name, topic_id, partitions, headers) for builder in BUILDERS)
        data = commit_batch(one, 7, 3, 99, range(n), [4] * n)
        assert data == commit_batch(many, 7, 3, 99, range(n), [4] * n)
        assert len(data) == many.size
        assert len(data) == BatchHeader.from_buffer(data).size
        assert 0 <= one.most_bytes - len(data) <= n * 16
        transactional = commit_batch(one, 7, 3, 99, range(n), [4] * n, (5, 6))
        assert transactional == commit_batch(many, 7, 3, 99, range(n), [4] * n, (5, 6))
        header = BatchHeader.from_buffer(transactional)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 6, -1)
        assert header.is_transactional
    assert RECORD_BYTES == 48


# -- columns


@pytest.mark.parametrize(("n", "is_shared"), [(LARGEST_SHARED, True), (LARGEST_SHARED + 1, False)])
def test_few_partitions_in_a_row_are_one_object_for_all_topics(n: int, is_shared: bool) -> None:
    one, other = (rows.cells(rows.of_cells(range(n), range(n), [-1] * n, [9] * n))[0] for _ in range(2))
    assert one == other == range(n)
    assert (one is other) is is_shared


@pytest.mark.parametrize("epoch", [-1, 0, 1, MOST_EPOCH - 1, MOST_EPOCH])
def test_offset_of_one_partition_is_one_number_whatever_its_usual_epoch(epoch: int) -> None:
    made = rows.put(None, 3, 7, epoch, 99)
    assert isinstance(made, int) is (epoch < MOST_EPOCH)  # 48 bytes instead of 120
    assert rows.get(made, 3) == (7, epoch, 99)


def test_columns_of_many_separate_partitions_are_searched_to_their_end() -> None:
    columns = OffsetTable().topic_or_new("g", "t")
    wanted = range(0, 1_200, 2)
    for partition in wanted:
        columns.replay(partition, Committed(partition, -1, "", 5, -1, bytes(16)))
    for partition in range(-1, 1_205):
        found = columns.get(partition)
        assert (found.offset if found else None) == (partition if partition in wanted else None)


def test_columns_with_nothing_but_a_pending_offset_have_no_row() -> None:
    table = OffsetTable()
    columns = table.topic_or_new("g", "t")
    columns.replay_pending(3, 9, Pending(Committed(5), 0))
    assert (columns.live, columns.partitions(), columns.get(3), columns.get(0)) == (0, [], None, None)


@pytest.mark.parametrize(("before", "run", "dense"), [([], [3, 4], True), ([3, 4], [3, 4], True), ([3], [3], True)])
def test_run_takes_the_topic_id_of_an_only_commit(before: list[int], run: list[int], dense: bool) -> None:
    table = OffsetTable()
    for partition in before:
        table.replay("g", "t", partition, Committed(1, -1, "", 5, -1, bytes(16)))
    table.replay_run("g", "t", ID, run, [7] * len(run), [1] * len(run), 6, dense=dense)
    assert table.fingerprint() == {("g", "t", p): Committed(7, 1, "", 6, -1, ID) for p in run}


# -- replaying a run


class Table(OffsetTable):
    """Keeps what it was told of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.dense: list[bool] = []

    def replay_run(self, *args: Any, dense: bool) -> None:
        self.dense.append(dense)
        super().replay_run(*args, dense=dense)


def a_batch(partitions: Any) -> bytes:
    n = len(partitions)
    return commit_batch(CommitBatch("group", "topic", ID, partitions), 0, 0, 9, range(n), [3] * n)


@pytest.mark.parametrize(
    ("partitions", "dense"),
    [([4], True), ([0, 1], True), ([3, 4, 5], True), ([3, 5], False), ([5, 4], False), ([1, 0], False)],
)
def test_run_is_replayed_as_dense_when_it_is(partitions: list[int], dense: bool) -> None:
    table, data = Table(), a_batch(partitions)
    assert replay_commit(table, BatchHeader.from_buffer(data), memoryview(data))
    assert table.dense == [dense]
    assert {offset_key(record.key)[2] for record in iter_records(data)} == set(partitions)
    assert sorted(key[2] for key in table.fingerprint()) == sorted(partitions)


@pytest.mark.parametrize(
    "other",
    [
        {"attributes": 16},
        {"producer_id": 0},
        {"producer_id": 5},
        {"record_count": 0},
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": 2},
        {"record_count": MOST_RECORDS + 1, "last_offset_delta": MOST_RECORDS},
    ],
)
def test_batch_with_another_header_is_left_to_the_general_reader(other: dict[str, int]) -> None:
    data = a_batch([0, 1, 2])
    header = BatchHeader.from_buffer(data)
    table = Table()
    assert not replay_commit(table, header._replace(**other), memoryview(data))
    assert table.fingerprint() == {}
    assert replay_commit(table, header, memoryview(data))


def test_largest_run_that_is_replayed_at_once() -> None:
    for n in (MOST_RECORDS, MOST_RECORDS + 1):
        data = a_batch(range(n))
        assert replay_commit(Table(), BatchHeader.from_buffer(data), memoryview(data)) is (n == MOST_RECORDS)


# -- pending offsets


def test_sender_of_pending_offsets_is_kept_with_its_headers() -> None:
    pending = PendingOffsets(OffsetTable())
    pending.replay(9, "g", "t", 0, Committed(5), 0)
    pending.replay_sender(9, "g", [("client", b"c"), ("member", None)])
    assert list(pending.groups(9)) == [("g", {"client": b"c", "member": b""}, {"t": [0]})]
    assert pending.fingerprint() == {(9, "g", "t", 0): (0, Committed(5))}


def test_pending_offsets_with_metadata_know_the_offsets_of_their_records() -> None:
    world = World("os", offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", 3)
    client.call(commit_request("g", {0: 1}), 8)
    shard = world.broker.groups.shards[0]
    base = shard.log.end_offset
    run = Run("t", bytes(16))
    for partition in range(3):
        run.add_other(partition, Committed(5, -1, "m", 9))
    shard.write(Commit("g", producer=(9, 0), runs=[run]), 99)
    found = shard.machine.pending.fingerprint()
    assert {key[3]: at for key, (at, _) in found.items()} == {0: base, 1: base + 1, 2: base + 2}


# -- commits over several batches


@pytest.mark.parametrize("provenance", [(), (("client", b"c" * 150), ("member", b""), ("instance", None))])
@pytest.mark.parametrize("max_bytes", [600, 700, 1_000])
def test_batches_of_a_span_are_as_large_as_they_may_be(provenance: Any, max_bytes: int) -> None:
    records: list[Any] = [(b"\0\1k%03d" % n, b"v" * 20) for n in range(40)]
    if provenance:
        records[0] = (*records[0], provenance)
    batches = span_batches(records, base_offset=10, leader_epoch=0, timestamp_ms=5, max_bytes=max_bytes)
    found = [record for batch, _ in batches for record in iter_records(batch)]
    assert [(record.key, record.value) for record in found] == [record[:2] for record in records]
    assert [record.offset for record in found] == list(range(10, 50))
    assert [last for _, last in batches] == [BatchHeader.from_buffer(batch).last_offset for batch, _ in batches]
    counts = [BatchHeader.from_buffer(batch).record_count for batch, _ in batches]
    said = sum(len(name) + len(value or b"") + 8 for name, value in provenance)
    most = (max_bytes - HEADER_BYTES - said) // (64 + 6 + 20)
    assert counts == [most] * (40 // most) + [40 % most] * (40 % most > 0)
    for batch, _ in batches:
        assert len(batch) <= max_bytes
        assert next(iter(iter_records(batch))).headers[: len(provenance)] == provenance


def test_only_records_of_offsets_may_span_batches() -> None:
    assert are_offsets([(b"\0\0k", b"v"), (b"\0\1k", None)])
    for key in (b"\0\2k", b"\1\0k", None):
        assert not are_offsets([(b"\0\1k", b"v"), (key, b"v")])


# -- images


def blocks_of(table: OffsetTable) -> tuple[list[bytes], int]:
    """The slices of an image, and how often it yielded."""
    yields = 0
    steps = encode_offsets(table, Labels())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, yields
        yields += 1


def table_of(groups: int, partitions: int, metadata: str = "") -> OffsetTable:
    table = OffsetTable()
    for number in range(groups):
        rows = range(partitions)
        table.replay_run(f"g{number}", "t", ID, rows, [number] * partitions, [-1] * partitions, 5, dense=True)
        if metadata:
            table.replay(f"g{number}", "t", 0, Committed(number, -1, metadata, 5, -1, ID))
    return table


def test_groups_with_one_partition_share_a_block() -> None:
    (blocks,), yields = blocks_of(table_of(5, 1))
    names = b"g0\0g1\0g2\0g3\0g4\0"
    assert blocks[:9] == snapshots._BLOCK.pack(SINGLES, 0, 5)
    assert blocks[13 : 13 + len(names)] == names
    assert len(blocks) == 9 + 4 + len(names) + 5 * 24
    assert yields == 0
    for others in (table_of(1, 2), table_of(1, 1, "m")):
        (blocks,), _ = blocks_of(others)
        assert blocks[0] == COLUMNS
    assert snapshots._BLOCK.pack(RARE, 0, 1) in blocks


@pytest.mark.parametrize(
    ("groups", "partitions", "yields"),
    [(99, 1, 0), (100, 1, 1), (250, 1, 2), (50, 19, 0), (49, 20, 0), (50, 20, 1), (1, 1_979, 0), (1, 1_980, 1)],
)
def test_image_is_written_in_slices(groups: int, partitions: int, yields: int) -> None:
    slices, found = blocks_of(table_of(groups, partitions))
    assert (found, len(slices)) == (yields, yields + 1)


@pytest.mark.parametrize(
    ("groups", "partitions", "yields"), [(999, 1, 0), (1_000, 1, 1), (1, 19_979, 0), (1, 19_980, 1), (2, 9_980, 1)]
)
def test_image_is_read_in_slices(groups: int, partitions: int, yields: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "GROUPS_A_SLICE", 1 << 30)
    table, labels, again = table_of(groups, partitions), Labels(), OffsetTable()
    steps = encode_offsets(table, labels)
    with pytest.raises(StopIteration) as end:
        next(steps)
    payload = encode_head(0, [], labels) + b"".join(end.value.value)
    reader = Reader(memoryview(payload))
    assert list(reader.records()) == []
    assert sum(1 for _ in reader.offsets(again)) == yields
    assert again.fingerprint() == table.fingerprint()


@pytest.mark.parametrize(("groups", "least"), [(0, 10_000), (40_003, 10_000), (40_004, 10_001), (50_000, 12_500)])
def test_image_is_due_after_as_many_records_as_a_quarter_of_the_groups(groups: int, least: int) -> None:
    for behind, due in ((least - 1, False), (least, True), (least + 1, True)):
        shard: Any = SimpleNamespace(state=READY, may_be_cleaned=True, image_offset=7)
        shard.log = SimpleNamespace(broken=None, end_offset=7 + behind)
        shard.machine = SimpleNamespace(offsets=SimpleNamespace(group_count=groups))
        assert imaging.is_due(shard) is due
        for other in ({"state": CLOSED}, {"may_be_cleaned": False}):
            assert not imaging.is_due(SimpleNamespace(**{**vars(shard), **other}))
        shard.log.broken = "it is"
        assert not imaging.is_due(shard)


def test_record_that_the_cleaner_removed_has_no_value_for_an_image() -> None:
    log = Log.open(sim_env(), "/data/log", LogConfig(cleanup_policy=frozenset({"compact"})))
    for value in (b"old", b"new"):
        put(log, (b"k", value), (b"l", value))
    log.roll()
    put(log, (b"m", b"x"))
    log.flush()
    assert [imaging._read_value(log, at, b"k") for at in range(4)] == [b"old", None, b"new", None]
    for _ in log.clean(5_000):
        pass
    assert [imaging._read_value(log, at, b"k") for at in range(4)] == [None, None, b"new", None]
    assert imaging._read_value(log, 3, b"l") == b"new"


# -- a shard that was closed by a failed write


def test_commit_reopens_a_log_that_is_out_of_use() -> None:
    world = World("os", offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client)
    client.call(commit_request("g", {0: 1}), 8)
    shard = world.broker.groups.shards[0]
    shard.log.give_up("is given up")
    world.files.inject(1, forever=True)
    shard.reload()
    assert shard.state is CLOSED
    world.files.heal()
    shard.write(commit_of(Commit("g", runs=[Run("t", bytes(16), [0], [8], [-1])]), b"\0", 1 << 20), 99)
    assert shard.state is READY
    assert shard.machine.offsets.get("g", "t", 0).offset == 8
    world.run()
    world.check_replay()


@pytest.mark.parametrize("head", [b"\0\0", b"\0\2", b"\1\1"])
@pytest.mark.parametrize("n", [1, 3])
def test_key_of_another_type_is_left_to_the_general_reader(head: bytes, n: int) -> None:
    data = a_batch(range(n))
    key = b"\0\1\0\5group\0\5topic"
    assert data.count(key) == n
    other = data.replace(key, head + key[2:])
    assert not replay_commit(OffsetTable(), BatchHeader.from_buffer(other), memoryview(other))
    batch = build_batch([(b"\0\2\0\1g", b"v")], timestamp_ms=1)
    assert not replay_commit(OffsetTable(), BatchHeader.from_buffer(batch), memoryview(batch))


@pytest.mark.parametrize("size", [*range(30), 42, 43])
def test_value_of_another_size_is_left_to_the_general_reader(size: int) -> None:
    whole = next(iter(iter_records(a_batch([0]))))
    value = (whole.value or b"")[:size].ljust(size, b"\1")
    batch = build_batch([(whole.key, value)], timestamp_ms=1)
    taken = replay_commit(OffsetTable(), BatchHeader.from_buffer(batch), memoryview(batch))
    assert taken is (value == whole.value)
    assert whole.value is not None
    assert len(whole.value) == 42
