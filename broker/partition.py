"""One topic-partition: the rules of an append, the high watermark, its idempotent producers, and who waits for records.

Durable: nothing is, until the journal has flushed (or synced) the log and called `advance`; the high watermark moves
only there, and no reader is shown a record at or above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final

from fastcrc.crc32 import iscsi as crc32c

from broker.coordinator.producers import Producers, add_to_sequence
from broker.producer_snapshots import ProducerSnapshots
from broker.record_rules import (
    NotOneBatchError,
    TopicRules,
    check_timestamps,
    inflated,
    invalid_record,
    keys_refused,
    not_a_batch,
    one_batch,
    timestamps_refused,
)
from broker.record_scan import Scan, scan_records
from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import (
    CODEC_MASK,
    CONTROL,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    assemble_batch,
    control_type,
    iter_records,
)

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.handlers.fetch import FetchWait
    from broker.journal import Journal
    from broker.metadata import ClusterMetadata, Topic, TopicPartition
    from storage.log import Log

Buffer = bytes | bytearray | memoryview

ZSTD: Final = 4
SNAPSHOT_EVERY_BYTES: Final = 64 * 1024 * 1024  # bounds what a start after a crash has to read again
_MAX_INT64: Final = 2**63 - 1
_PLACE: Final = Struct(">qii")  # base offset, length, leader epoch: what a leader stamps, and the CRC leaves out
_PREFIX: Final = Struct(">qiibI")  # the same with magic and CRC
_HEADER_TAIL: Final = Struct(">hiqqqhii")  # what the CRC covers of the header


class Partition:
    """A partition on the broker that leads it. Timestamps are Unix milliseconds."""

    __slots__ = (
        "_appended_at_snapshot",
        "_leader",
        "_producers",
        "_producers_before",
        "_snapshots",
        "appended_bytes",
        "closed",
        "high_watermark",
        "index",
        "info",
        "journal",
        "log",
        "metadata_version",
        "rules",
        "topic",
        "waiters",
    )

    journal: Journal  # of the log: whoever opens the partition sets it

    def __init__(self, topic: Topic, index: int, log: Log, broker: Broker) -> None:
        self.index = index
        self.log = log
        self._leader = -1
        self.high_watermark = log.end_offset
        self.waiters: dict[FetchWait, None] = {}  # parked fetches, in the order they came
        self.configure(topic, broker.metadata)
        self.appended_bytes = 0  # since this object was made
        self.closed = False
        self._producers: Producers | None = None
        self._producers_before: Producers | None = None  # as they were when a write failed
        self._snapshots = ProducerSnapshots(broker.env.files, log.directory)
        self._snapshots.remove_after(log.end_offset)  # of records that a crash took
        self._appended_at_snapshot = 0

    def configure(self, topic: Topic, metadata: ClusterMetadata) -> None:
        """Take over what the metadata says now of the topic: who asks compares `metadata_version` first."""
        config = metadata.config
        self.metadata_version = metadata.version
        self.topic = topic
        self.info: TopicPartition = topic.partitions[self.index]
        if self.log.leader_epoch != self.info.leader_epoch:
            self.log.set_leader_epoch(self.info.leader_epoch)
        self.rules = TopicRules(
            lambda key: metadata.value(topic, key),
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            max_inflated_bytes=config.decompression_max_bytes,
        )
        if self._leader != self.info.leader:
            self._leader = self.info.leader
            self.wake()  # whoever waits for records here now waits at the wrong node

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index}"

    # ---------------------------------------------------------------- what readers may see

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is open. Clients cannot open any yet, so it is the high watermark."""
        return self.high_watermark

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that touch the range."""
        return []

    # ---------------------------------------------------------------- append

    def append(self, batch: Buffer, now_ms: int, *, zstd_allowed: bool = True) -> tuple[int, int]:
        """Validate one client's batch, give it its offset and buffer it in the log.

        Answers the base offset and the log append time (-1 on CreateTime topics); for a repeated batch of an idempotent
        producer those of the first one, with nothing written.
        Errors:  in Kafka's order: INVALID_RECORD (not one batch of magic 2), UNSUPPORTED_COMPRESSION_TYPE,
                 MESSAGE_TOO_LARGE, CORRUPT_MESSAGE (CRC), INVALID_RECORD (counts, control, keys), INVALID_TIMESTAMP,
                 RECORD_LIST_TOO_LARGE, then those of Producers.decide.
        Source:  Kafka's ProduceRequest.validateRecords, UnifiedLog.append, LogValidator.
        """
        size = len(batch)
        if size < HEADER_BYTES:
            raise not_a_batch(batch)
        header = HEADER.unpack_from(batch)
        base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp, max_timestamp = header[:9]
        producer_id, producer_epoch, base_sequence, count = header[9:]
        if magic != MAGIC or length + LOG_OVERHEAD_BYTES != size:
            return self.append(one_batch(batch), now_ms, zstd_allowed=zstd_allowed)
        rules = self.rules
        codec = attributes & CODEC_MASK
        if codec >= ZSTD and (codec > ZSTD or not zstd_allowed):
            raise NotOneBatchError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Compression type {codec} is not supported")
        if base_offset:
            raise invalid_record(f"The base offset of a produced batch must be 0, not {base_offset}")
        if size > rules.max_message_bytes:
            raise self._too_large(size)
        view = memoryview(batch)
        if crc32c(view[21:]) != crc:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The batch's CRC is not the stored {crc:#010x}")
        if count != last_delta + 1 or count <= 0:
            raise invalid_record(f"The batch spans {last_delta + 1} offsets and declares {count} records")
        if attributes & CONTROL:
            raise invalid_record("Clients are not allowed to write control records")
        if producer_id >= 0 and base_sequence < 0:
            raise invalid_record(f"Sequence {base_sequence} is invalid with producer id {producer_id}")

        records = view[HEADER_BYTES:]
        if codec:
            records = inflated(codec, records, rules.max_inflated_bytes)
        scan = scan_records(records, count, keys_wanted=rules.keys_required)
        if scan.without_key:
            raise keys_refused(scan.without_key)
        append_time = NO_TIMESTAMP
        if rules.log_append_time:
            if attributes & LOG_APPEND_TIME:
                raise timestamps_refused([(i, "Producers may not set LogAppendTime") for i in range(count)])
            largest = append_time = now_ms
            stored = attributes | LOG_APPEND_TIME
        elif attributes & LOG_APPEND_TIME:  # then the batch's time is that of every record; stored as CreateTime
            check_timestamps(rules, records, count, max_timestamp, Scan(0, 0, []), now_ms)
            largest = max_timestamp
            stored = attributes & ~LOG_APPEND_TIME
        else:
            check_timestamps(rules, records, count, base_timestamp, scan, now_ms)
            largest = min(max(base_timestamp + scan.max_timestamp_delta, NO_TIMESTAMP), _MAX_INT64)
            stored = attributes

        log = self.log
        offset = log.end_offset
        buffers: tuple[Buffer, ...]
        if rules.codec is not None and rules.codec != codec:
            stored = stored & ~CODEC_MASK | rules.codec
            whole = assemble_batch(
                bytes(records),
                base_offset=offset,
                leader_epoch=self.info.leader_epoch,
                attributes=stored,
                last_offset_delta=last_delta,
                base_timestamp=base_timestamp,
                max_timestamp=largest,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                record_count=count,
            )
            buffers = (whole,)
            size = len(whole)
            if size > rules.max_message_bytes:
                raise self._too_large(size)
        elif stored != attributes or largest != max_timestamp:
            tail = _HEADER_TAIL.pack(stored, last_delta, base_timestamp, largest, *header[9:])
            payload = view[HEADER_BYTES:]
            crc = crc32c(payload, crc32c(tail))
            buffers = (_PREFIX.pack(offset, length, self.info.leader_epoch, MAGIC, crc) + tail, payload)
        else:
            buffers = (_PLACE.pack(offset, length, self.info.leader_epoch), view[16:])
        if size > rules.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"The batch has {size} bytes, a segment of {self} holds {rules.segment_bytes}",
            )

        if producer_id >= 0:
            producers = self._producers or self.producers
            transactional = bool(attributes & TRANSACTIONAL)
            last_sequence = add_to_sequence(base_sequence, last_delta)
            repeated = producers.decide(
                producer_id, producer_epoch, base_sequence, last_sequence, transactional=transactional
            )
            if repeated is not None:
                return repeated.base_offset, repeated.timestamp_ms
            producers.replay(
                producer_id,
                producer_epoch,
                base_sequence,
                last_sequence,
                offset,
                offset + last_delta,
                largest,
                transactional=transactional,
            )
        log.append(buffers, base_offset=offset, last_offset=offset + last_delta, max_timestamp_ms=largest, size=size)
        self.appended_bytes += size
        return offset, append_time

    def _too_large(self, size: int) -> KafkaError:
        most = self.rules.max_message_bytes
        return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"The batch has {size} bytes, {self} takes up to {most}")

    # ---------------------------------------------------------------- durability

    def advance(self, durable_offset: int) -> None:
        """All below this offset survives a crash at the configured level: readers may see it."""
        if durable_offset > self.high_watermark:
            self.high_watermark = durable_offset
            if self.waiters:
                self.wake()

    def wake(self) -> None:
        """Have the parked fetches look again: there are new records, or no more partition."""
        for wait in list(self.waiters):
            wait.poll()

    def reload(self) -> None:
        """A write has failed and the log was cut back: forget what the lost batches had changed."""
        self._producers, self._producers_before = None, self._producers or self._producers_before
        self._snapshots.remove_after(self.log.end_offset)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        self.log.set_leader_epoch(self.info.leader_epoch)  # its start may have been cut off
        self.wake()

    def close(self, *, clean: bool = True) -> None:
        """No more requests; parked fetches are told at their next poll."""
        if not self.closed:
            self.closed = True
            self.wake()
            if clean:
                self.take_snapshot()
            self.log.close(clean=clean)

    def delete(self) -> None:
        """The topic is gone, with all files of this partition."""
        if not self.closed:
            self.closed = True
            self.wake()
        self.log.delete()

    # ---------------------------------------------------------------- producers

    @property
    def producers(self) -> Producers:
        """Loaded when first needed: many partitions never see an idempotent producer, and starting stays quick."""
        if self._producers is None:
            self._producers = self._load_producers()
            if self._producers_before is not None:
                self._producers.recall(self._producers_before)
                self._producers_before = None
        return self._producers

    def _load_producers(self) -> Producers:
        producers = Producers()
        log = self.log
        latest = self._snapshots.latest(log.flushed_offset)
        offset = log.log_start_offset
        if latest is not None and latest[0] >= offset:
            offset = latest[0]
            producers.load(latest[1])
        for header, batch in log.batches(offset):
            replay_batch(producers, header, batch)
        return producers

    def take_snapshot(self) -> bool:
        """Write the producers beside the log, if the log holds nothing that is not yet written and has grown."""
        log = self.log
        end = log.end_offset
        if log.dirty or end == log.log_start_offset or end in self._snapshots.offsets:
            return False
        self._snapshots.write(end, self.producers.snapshot())
        self._appended_at_snapshot = self.appended_bytes
        return True

    # ---------------------------------------------------------------- housekeeping

    def maintenance(self, now_ms: int) -> Iterator[None]:
        """Retention, expiry of producers and their snapshot, in slices of a few milliseconds."""
        if self.log.retain(now_ms, self.high_watermark):
            self._snapshots.remove_before(self.log.log_start_offset)
            yield
        if self.closed:
            return
        if self._producers is not None:
            self._producers.expire(now_ms, self.rules.producer_id_expiration_ms)
        if self.appended_bytes - self._appended_at_snapshot >= SNAPSHOT_EVERY_BYTES:
            yield
            self.take_snapshot()

    def delete_records(self, offset: int) -> int:
        """Move the log start offset up to offset (-1: the high watermark); the new low watermark.

        Errors:  POLICY_VIOLATION: a topic that is only compacted keeps its records.
                 OFFSET_OUT_OF_RANGE: negative or beyond the high watermark.
        """
        if not self.rules.deletable:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"Records of {self} cannot be deleted: its cleanup.policy is compact"
            )
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} is not within 0..{self.high_watermark} of {self}"
            )
        if offset > self.log.log_start_offset:
            self.log.delete_records_before(offset)
        return self.log.log_start_offset


def replay_batch(producers: Producers, header: BatchHeader, batch: Buffer) -> None:
    """Let one batch of the log change the producers."""
    if header.producer_id < 0:
        return
    if header.attributes & CONTROL:
        for record in iter_records(batch):
            if record.key is not None and control_type(record.key) in (0, 1) and record.value is not None:
                coordinator_epoch = int.from_bytes(record.value[2:6], "big", signed=True)
                producers.replay_marker(header.producer_id, header.producer_epoch, coordinator_epoch, record.timestamp)
        return
    base_sequence = header.base_sequence
    producers.replay(
        header.producer_id,
        header.producer_epoch,
        base_sequence,
        base_sequence if base_sequence < 0 else add_to_sequence(base_sequence, header.last_offset_delta),
        header.base_offset,
        header.last_offset,
        header.max_timestamp,
        transactional=bool(header.attributes & TRANSACTIONAL),
    )
