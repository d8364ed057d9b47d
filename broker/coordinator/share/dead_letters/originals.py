"""Reads the records that a share group gave up, to copy them: as many at a time as a bound of bytes allows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from protocol.errors import KafkaError
from protocol.record import encode_record
from protocol.record_batch import iter_batches, iter_records
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.partitions.partition import Partition

logger = logging.getLogger("momus.share")

READ_BYTES: Final = 1 << 20  # at a time, as in Kafka


class Originals:
    """The records of one partition up to an offset, asked for by rising offset. Only what all may read is there.

    `most_bytes`: kept at a time, decompressed. A batch that inflates to more, and a larger record, has no copy.
    """

    def __init__(self, partition: Partition, last: int, most_bytes: int) -> None:
        self._partition = partition
        self._last = last
        self._most_bytes = most_bytes
        self._found: dict[int, tuple[bytes | None, bytes | None]] = {}
        self._until = -1  # up to and with this offset it is known what there is

    def __call__(self, offset: int) -> tuple[bytes | None, bytes | None]:
        """Key and value; None, None: there is no copy."""
        if offset > self._until:
            self._found = {}
            self._until = self._last  # unless a read stops before
            try:
                self._read(offset)
            except (KafkaError, StorageError, OSError) as error:
                logger.warning("%s cannot be read from offset %d on, to be copied: %s", self._partition, offset, error)
        return self._found.get(offset, (None, None))

    def _read(self, offset: int) -> None:
        partition = self._partition
        start = max(offset, partition.log_start_offset)
        if start > self._last:
            return
        found = partition.log.read(start, READ_BYTES, limit_offset=partition.high_watermark)
        if found is None:
            return
        data, left, until = found.read(), self._most_bytes, start - 1
        for at, header in iter_batches(data):
            if header.base_offset > self._last:
                return
            if header.last_offset >= offset and not header.is_control:
                stopped, left = self._take(data[at : at + header.size], offset, left)
                if stopped is not None:
                    self._until = stopped
                    return
            until = header.last_offset
        self._until = until

    def _take(self, batch: bytes, offset: int, left: int) -> tuple[int | None, int]:
        """Keep the records of a batch: the offset at which there was no more room, and how many bytes are left."""
        try:
            for record in iter_records(batch, self._most_bytes):
                if not offset <= record.offset <= self._last:
                    continue
                size = len(encode_record(0, 0, record.key, record.value, record.headers))
                if size > self._most_bytes:
                    continue
                if size > left:
                    return record.offset - 1, left
                left -= size
                self._found[record.offset] = record.key, record.value
        except KafkaError as error:  # more than is allowed, or damaged
            logger.warning("%s has a batch that is not copied: %s", self._partition, error.message)
        return None, left
