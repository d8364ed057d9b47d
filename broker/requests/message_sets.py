"""Records for clients of before record batches: message sets into a batch at a Produce, batches into sets at a Fetch.

Behaviour: the messages of a partition become one batch, with the codec of the last compressed one. At a Fetch every
           batch becomes messages, in one compressed message if it was compressed; headers are dropped and control
           batches left out. Records of aborted transactions are data to these clients, as in Kafka: they know no
           isolation level. A batch of zstd ends the answer, and is refused if it is the first.
Differs:   the first batch of a Fetch before v3 is whole even if it is larger than the client's limit; from Kafka the
           client gets a part of it, and gives up. A Fetch before v4 that finds nothing but control batches reads on,
           and waits at the end. Kafka answers an empty set at once, as often as the client asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.partitions.fetch_read import FetchReader, Found, Unusual
from broker.partitions.record_rules import one_batch
from protocol.errors import ErrorCode, KafkaError
from protocol.message_set import MAGIC_AT, build_message_set, read_message_set
from protocol.record_batch import LOG_APPEND_TIME, MAGIC, build_batch, iter_batches, iter_records
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.partitions.fetch_session import Wanted
    from broker.partitions.incoming_batch import Buffer
    from broker.partitions.partition import Partition
    from storage.log.log import FileSlice

PRODUCE_BATCHES_SINCE: Final = 3
FETCH_BATCHES_SINCE: Final = 4
_MAGIC_1_SINCE: Final = 2  # of Fetch


def as_one_batch(records: Buffer, max_inflated_bytes: int) -> Buffer:
    """The batch of magic 2 for what a Produce before v3 brings, which may be one already.

    Errors:  those of read_message_set and of one_batch; INVALID_RECORD: there is no message.
    """
    if len(records) > MAGIC_AT and records[MAGIC_AT] == MAGIC:
        return one_batch(records, False)
    found = read_message_set(records, max_inflated_bytes)
    if not found.records:
        raise KafkaError(ErrorCode.INVALID_RECORD, "There is no whole message")
    attributes, first_ms = found.codec, found.records[0][3]
    if found.append_ms is not None:
        attributes |= LOG_APPEND_TIME
    return build_batch(found.records, leader_epoch=-1, timestamp_ms=first_ms, attributes=attributes)


def as_message_set(batches: bytes, magic: int, from_offset: int, max_inflated_bytes: int) -> bytes:
    """The records of batches as messages, without plain ones below an offset.

    Errors:  UNSUPPORTED_COMPRESSION_TYPE: the first batch with records is of zstd.
    Source:  Kafka's RecordsUtil.downConvert.
    """
    parts: list[bytes] = []
    view = memoryview(batches)
    for at, header in iter_batches(view):
        if header.is_control or not header.record_count:
            continue
        records = list(iter_records(view[at : at + header.size], max_inflated_bytes))
        if not header.codec:
            records = [each for each in records if each.offset >= from_offset]
        try:
            parts.append(
                build_message_set(records, magic, codec=header.codec, is_append_time=header.is_log_append_time)
            )
        except KafkaError:
            if any(parts):
                break
            raise
    return b"".join(parts)


class MessageSetReader(FetchReader):
    """A reader for one Fetch before v4: what it finds are message sets, whose bytes count."""

    __slots__ = ("magic",)

    magic: int

    @staticmethod
    def of(reader: FetchReader, api_version: int) -> MessageSetReader:
        """The same for a client of an old version."""
        made = MessageSetReader(
            reader.partitions,
            reader.node_id,
            by_id=False,
            committed=False,
            max_bytes=reader.max_bytes,
            replica_id=reader.replica_id,
        )
        made.magic = int(api_version >= _MAGIC_1_SINCE)
        return made

    def read(self, wants: Collection[Wanted]) -> tuple[list[Found], list[Found], int, bool]:
        """See FetchReader."""
        found, unknown, _, failed = super().read(wants)
        converted: list[Found] = []
        size = 0
        for wanted, partition, batches, unusual in found:
            if partition is None or batches is None:
                converted.append((wanted, partition, batches, unusual))
                continue
            try:
                records = self._convert(wanted, partition, batches)
            except (KafkaError, StorageError, OSError) as error:
                wanted.source, failed = None, True
                code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
                converted.append((wanted, None, None, Unusual(code)))
                continue
            size += len(records)
            converted.append((wanted, partition, records or None, unusual))
        return converted, unknown, size, failed

    def _convert(self, wanted: Wanted, partition: Partition, batches: FileSlice | bytes | None) -> bytes:
        """The message set of batches, or of the next ones where these have no records for clients."""
        log, limit, most = partition.log, partition.high_watermark, partition.rules.max_inflated_bytes
        while batches is not None and not isinstance(batches, bytes):
            records = as_message_set(batches.read(), self.magic, wanted.fetch_offset, most)
            after = batches.end_offset
            if records or after >= limit:
                return records
            batches = log.read(after, wanted.partition_max_bytes, limit_offset=limit)
        return b""
