"""A partition over restarts and failures: what it still knows of its records and producers."""

from __future__ import annotations

import pytest
from fastcrc.crc32 import iscsi as crc32c
from partition_life_kit import encode_snapshot, run, snapshots
from unit.partitions.data_path import NOW_MS, DataPath, batch, values_of

from broker.partitions.producer_files import ProducerFiles
from broker.partitions.producer_snapshots import UNTOLD, ProducerSnapshots, decode_snapshot
from broker.partitions.producer_table import ProducerSnapshot
from protocol.errors import ErrorCode
from protocol.record_batch import ABORT, TRANSACTIONAL, BatchHeader, assemble_batch, control_batch

# ---------------------------------------------------------------- restarts


def test_records_and_watermark_survive_a_restart(latest: DataPath) -> None:
    latest.topic()
    latest.produce(batch(b"a", b"b"))
    for clean in (True, False):
        latest = latest.reopened(clean=clean)
        answer = latest.fetch()
        assert (answer.high_watermark, values_of(answer.records)) == (2, [b"a", b"b"])
    assert latest.produce(batch(b"c")).base_offset == 2


def test_clean_restart_remembers_the_last_batch_of_each_producer(latest: DataPath) -> None:
    latest.topic()
    for seq in range(3):
        latest.produce(batch(b"a", pid=1, epoch=0, seq=seq))
    latest = latest.reopened()
    assert snapshots(latest) == [3]
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=2)).base_offset == 2
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=1)).error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=3)).base_offset == 3


def test_killed_broker_knows_all_five_batches_from_the_log() -> None:
    path = DataPath(producer_state="batches")
    topic = path.topic()
    for seq in range(7):
        path.produce(batch(b"a", pid=1, epoch=0, seq=seq))
    before = path.partition(topic, 0).producers.fingerprint()
    path = path.reopened(clean=False)
    assert path.partition(path.metadata.topics["t"], 0).producers.fingerprint() == before
    assert path.produce(batch(b"a", pid=1, epoch=0, seq=2)).base_offset == 2


def test_snapshot_and_the_log_after_it_make_the_state(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a", pid=1, epoch=0, seq=0))
    latest.produce(batch(b"a", pid=2, epoch=5, seq=0))
    assert latest.partition(topic, 0).take_snapshot()
    latest.produce(batch(b"a", b"b", pid=1, epoch=0, seq=1))
    before = latest.partition(topic, 0).producers.fingerprint()
    latest = latest.reopened(clean=False)
    assert latest.partition(latest.metadata.topics["t"], 0).producers.fingerprint() == before


def test_snapshot_behind_the_end_of_the_log_is_not_believed(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a", pid=1, epoch=0, seq=0))
    latest.produce(batch(b"b", pid=1, epoch=0, seq=1))
    partition = latest.partition(topic, 0)
    partition.take_snapshot()
    partition.log.cut_back(1)
    partition.reload()
    assert snapshots(latest) == []
    assert (partition.log.end_offset, partition.high_watermark) == (1, 1)
    assert latest.produce(batch(b"B", pid=1, epoch=0, seq=1)).base_offset == 1


def test_snapshot_of_lost_records_is_deleted_before_others_take_their_place(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a", pid=1, epoch=0, seq=0))
    latest.partition(topic, 0).log.sync()
    latest.produce(batch(b"b", pid=1, epoch=0, seq=1))
    latest.partition(topic, 0).take_snapshot()
    files = latest.env.files.crash(lose_unsynced=True)  # a power cut: the snapshot was synced, the record was not
    latest = latest.reopened(clean=False, files=files)
    assert latest.partition(latest.metadata.topics["t"], 0).log.end_offset == 1
    latest.produce(batch(b"x"))  # of no producer: the state is not loaded for it
    latest = latest.reopened(clean=False)
    assert latest.produce(batch(b"b", pid=1, epoch=0, seq=1)).base_offset == 2


def test_snapshot_of_lost_records_is_not_back_after_a_loss_of_power(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a", pid=1, epoch=0, seq=0))
    latest.produce(batch(b"b", pid=1, epoch=0, seq=1))
    partition, files = latest.partition(topic, 0), latest.env.files
    partition.log.sync()
    partition.take_snapshot()
    for name in files.listdir("data/t-0"):
        files.open_append(f"data/t-0/{name}").sync()  # as a disk does some time after
    files.sync_dir("data/t-0")
    partition.log.cut_back(1)
    partition.reload(lost=True)  # another replica leads, which has missed the second batch
    for value in (b"x", b"y"):
        latest.produce(batch(value))
    partition.log.sync()
    latest = latest.reopened(clean=False, files=files.crash(lose_unsynced=True))
    assert latest.partition(latest.metadata.topics["t"], 0).log.end_offset == 3
    assert latest.produce(batch(b"b", pid=1, epoch=0, seq=1)).base_offset == 3


def test_damaged_snapshot_falls_back_to_the_one_before_or_the_log() -> None:
    path = DataPath(producer_state="batches")
    topic = path.topic()
    for seq in range(3):
        path.produce(batch(b"a", pid=1, epoch=0, seq=seq))
        path.partition(topic, 0).take_snapshot()
    assert snapshots(path) == [2, 3]
    newest = f"data/t-0/{3:020d}.snapshot"
    data = path.env.files.read_file(newest)
    for damaged in (b"", data[:20], data[:-1], data[:7] + b"\xff" + data[8:], data + b"\0"):
        path.env.files.write_file_atomic(newest, damaged)
        again = path.reopened(clean=False, files=path.env.files.crash())
        kept = again.partition(again.metadata.topics["t"], 0).producers.batches(1)
        assert [entry.base_sequence for entry in kept] == [1, 2]
        assert snapshots(again) == [2]


def test_snapshot_codec_keeps_every_field() -> None:
    producers = [
        ProducerSnapshot(1, 2, 3, 4, 5, 6, 7, 8, 9, -10),
        ProducerSnapshot(2**63 - 1, 32767, -1, -1, 0, -1, -1, -1, 2**30, -(2**31)),
    ]
    kafkas, ours = encode_snapshot(producers, 77)
    assert decode_snapshot(kafkas, ours) == (producers, 77)
    assert len(kafkas) == 2 + 4 + 4 + 2 * 46
    assert len(ours) == 8 + 4 + 4 + 8 + 2 * (4 + 4)
    alone = [producer._replace(written=0, marker_delay_ms=0) for producer in producers], UNTOLD
    assert decode_snapshot(kafkas) == alone
    longer = kafkas[6:] + bytes(16)  # as earlier versions of momus wrote them; Kafka ignores it
    assert decode_snapshot(kafkas[:2] + crc32c(longer).to_bytes(4, "big") + longer) == alone
    others = encode_snapshot([producer._replace(last_sequence=1) for producer in producers], 77).ours
    for at in range(len(ours)):
        assert decode_snapshot(kafkas, ours[:at] + bytes([ours[at] ^ 1]) + ours[at + 1 :]) == alone
    for wrong in (ours[:-1], ours + b"\0", others, b""):
        assert decode_snapshot(kafkas, wrong) == alone
    for broken in (b"\0\2" + kafkas[2:], kafkas[:5], b""):
        with pytest.raises(ValueError, match=r"version|early"):
            decode_snapshot(broken, ours)


def test_snapshot_without_our_file_tells_of_the_last_batch(latest: DataPath) -> None:
    latest.topic()
    for seq in range(3):
        latest.produce(batch(b"a", pid=1, epoch=0, seq=seq))
    latest = latest.reopened()
    ours = f"data/t-0/{3:020d}.momus-producers"
    again = latest.reopened(files=latest.env.files.crash())
    assert again.produce(batch(b"a", pid=1, epoch=0, seq=1)).error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    latest.env.files.remove(ours)
    latest = latest.reopened()
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=2)).base_offset == 2
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=1)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=3)).base_offset == 3
    assert latest.produce(batch(b"a", pid=1, epoch=0, seq=2)).error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER


def test_cleaner_that_merges_segments_keeps_what_is_known_of_their_producers(latest: DataPath) -> None:
    """A snapshot may lie where a segment began that is merged into the one before it."""
    topic = latest.topic(cleanup_policy="compact", segment_bytes=str(1 << 20))
    log = latest.partition(topic, 0).log
    for seq in range(8):
        latest.produce(batch((b"%d" % max(seq, 4), b"v" * 600_000), pid=1, epoch=0, seq=seq))
        if seq == 4:
            latest.partition(topic, 0).take_snapshot()
    assert 5 in [segment.base_offset for segment in log.segments]
    log.config = log.config._replace(segment_bytes=16 << 20)
    for _ in log.clean(latest.now_ms, log.end_offset):
        pass
    assert [segment.base_offset for segment in log.segments] == [0, 7]
    latest.produce(batch((b"k", b"v"), pid=1, epoch=0, seq=8))
    latest = latest.reopened(clean=False)
    assert latest.partition(latest.metadata.topics["t"], 0).producers.table[1].written == 9
    assert latest.produce(batch((b"k", b"v"), pid=1, epoch=0, seq=0)).error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER


def test_our_file_goes_with_its_snapshot(latest: DataPath) -> None:
    topic = latest.topic()
    for seq in range(4):
        latest.produce(batch(b"a", pid=1, epoch=0, seq=seq))
        latest.partition(topic, 0).take_snapshot()
    assert snapshots(latest) == [3, 4]
    latest.env.files.remove(f"data/t-0/{4:020d}.snapshot")  # Kafka did so
    latest = latest.reopened(clean=False)
    latest.partition(latest.metadata.topics["t"], 0)
    ours = [name for name in latest.env.files.listdir("data/t-0") if name.endswith(".momus-producers")]
    assert ours == [f"{3:020d}.momus-producers"]


@pytest.mark.parametrize("flush_first", [True, False])
def test_failed_write_takes_the_run_back_to_what_is_left_when_retention_removed_it(
    latest: DataPath, flush_first: bool
) -> None:
    topic = latest.topic(segment_bytes=str(1 << 20), retention_bytes=str(1 << 20))
    partition = latest.partition(topic, 0)
    for seq in range(40):
        latest.produce(batch(b"a", pid=1, epoch=0, seq=seq, ts=NOW_MS + seq))
        latest.produce(batch(b"b", pid=2, epoch=0, seq=seq))
    for _ in range(4):
        latest.produce(batch(b"x" * 600_000))
    partition.log.config = partition.log.config._replace(retention_bytes=700_000)
    run(latest)
    assert partition.log_start_offset >= 80
    before = partition.producers.fingerprint()
    if flush_first:
        latest.produce(batch(b"c", pid=1, epoch=0, seq=40))
        before = partition.producers.fingerprint()
    for first in (41, 42) if flush_first else (40, 41):
        latest.produce(batch(b"lost", pid=1, epoch=0, seq=first), end_turn=False)
    latest.produce(batch(b"lost", pid=3, epoch=0, seq=7), end_turn=False)
    latest.produce(batch(b"lost", pid=3, epoch=0, seq=8), end_turn=False)
    latest.produce(batch(b"lost", pid=2, epoch=1, seq=0), end_turn=False)
    latest.env.files.inject(1, short_bytes=10)
    latest.end_turn()
    latest.env.files.heal()
    assert partition.producers.fingerprint() == before
    last = 40 if flush_first else 39
    assert partition.producers.table[1].written == last + 1
    for seq in (last + 2, last + 3):
        assert latest.produce(batch(b"c", pid=1, epoch=0, seq=seq)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert latest.produce(batch(b"c", pid=1, epoch=0, seq=0)).error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert latest.produce(batch(b"c", pid=1, epoch=0, seq=last + 1)).error_code == 0
    assert latest.produce(batch(b"c", pid=2, epoch=0, seq=40)).error_code == 0
    assert latest.produce(batch(b"c", pid=3, epoch=0, seq=8)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert latest.produce(batch(b"c", pid=3, epoch=0, seq=7)).error_code == 0


def test_partition_without_producers_never_loads_them(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a"))
    assert latest.partition(topic, 0)._producers is None
    assert latest.fetch().last_stable_offset == 1
    assert latest.partition(topic, 0)._producers is None


def test_transaction_of_an_older_broker_is_replayed(latest: DataPath) -> None:
    topic = latest.topic()
    latest.produce(batch(b"a"))
    latest = latest.reopened()
    partition = latest.partition(topic, 0)
    data = batch(b"a", pid=1, epoch=0, seq=0, attributes=TRANSACTIONAL)
    marker = control_batch(ABORT, timestamp_ms=NOW_MS, producer_id=1, producer_epoch=1, coordinator_epoch=9)
    for offset, raw in enumerate((data, marker), 1):
        whole = offset.to_bytes(8, "big") + raw[8:]
        header = BatchHeader.from_buffer(whole)
        partition.log.append(
            [whole], base_offset=offset, last_offset=offset, max_timestamp_ms=header.max_timestamp, size=len(whole)
        )
    partition.log.flush()
    assert partition.producers.table[1][:1] + partition.producers.table[1][5:6] == (1, 9)
    assert partition.producers.open == {}
    assert partition.aborted_transactions(0, 3) == [(1, 1)]


def test_snapshot_counts_though_the_cleaner_has_emptied_the_marker_that_it_names(latest: DataPath) -> None:
    """The index names it no more either; to read the log from its start would be slow, and find less."""
    topic = latest.topic()
    latest.produce(batch(b"a", pid=1, epoch=0, seq=0))
    log = latest.partition(topic, 0).log
    marker = control_batch(ABORT, timestamp_ms=NOW_MS, producer_id=1, producer_epoch=0, coordinator_epoch=9)
    header = BatchHeader.from_buffer(marker)
    emptied = assemble_batch(
        b"",
        base_offset=1,
        leader_epoch=0,
        attributes=header.attributes,
        last_offset_delta=0,
        base_timestamp=-1,
        max_timestamp=NOW_MS,
        producer_id=1,
        producer_epoch=0,
        base_sequence=-1,
        record_count=0,
    )
    log.append([emptied], base_offset=1, last_offset=1, max_timestamp_ms=NOW_MS, size=len(emptied))
    log.flush()
    known = [ProducerSnapshot(7, 0, 0, 0, 0, NOW_MS, -1, -1, 1, 0)]
    ProducerSnapshots(latest.env.files, log.directory).write(2, encode_snapshot(known, 1))
    found = ProducerFiles(latest.env.files, log).load(batches=False)
    assert found.table.get(7) is not None
    assert snapshots(latest) == [2]
