"""Finds in a partition's log the batch that a client sends again: its offset and time, as they were answered first.

The state of a producer is one row: it proves that a batch was written, and does not say where. The log does, since it
holds every batch with its sequences. It is read backwards from the producer's last batch, for 8 MB or 10,000 batches.

Differs: With `producer.state=lookup`, the default, a batch sent again is answered with its offset and time, as by
         Kafka, and without Kafka's limit of five batches. Where more than 8 MB or 10,000 batches were written since, or
         the batch is no longer in the log, the answer is DUPLICATE_SEQUENCE_NUMBER, which clients take as success.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.partitions.producer_snapshots import MOST_WRITTEN
from broker.partitions.producer_table import CachedBatch, add_to_sequence
from broker.partitions.record_rules import WrittenBeforeError
from storage.files.errors import StorageError
from storage.log.backwards import SLICE_BYTES, headers_below

if TYPE_CHECKING:
    from broker.partitions.incoming_batch import ClientBatch
    from protocol.record_batch import BatchHeader
    from storage.log.log import Log

MOST_BYTES: Final = 8 * 1024 * 1024  # read for one batch
MOST_BATCHES: Final = 10_000
READ_BYTES: Final = 8192  # of a large batch, whose records are passed over


class Sought(NamedTuple):
    """A batch that was written before: whose, its sequences, and the offset below which it is."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    end_offset: int

    def is_after(self, header: BatchHeader) -> bool:
        """Whether a batch of the same producer and epoch has later sequences only."""
        return 0 < (header.base_sequence - self.last_sequence) & 0x7FFFFFFF <= MOST_WRITTEN


def sought(batch: ClientBatch, error: WrittenBeforeError) -> Sought:
    """What to look for, where a producer's row has refused a batch as written before."""
    return Sought(batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence, error.end_offset)


def find(log: Log, wanted: Sought) -> Generator[None, None, CachedBatch | None]:
    """Look for the batch, in slices. None: it is too far back, was removed, or was sent in another cut.

    Errors:  StorageError, OSError: the log cannot be read, or was cut back below the place where the search begins.
    """
    while log.flushed_offset < wanted.end_offset:
        if log.end_offset < wanted.end_offset:
            raise StorageError(f"{log.directory} was cut back")
        yield
    read = count = paused = 0
    for headers in headers_below(log, wanted.end_offset):
        for header in headers:
            if read >= MOST_BYTES or count >= MOST_BATCHES:
                return None
            count += 1
            read += min(header.size, READ_BYTES)
            if header.producer_id != wanted.producer_id or header.is_control:
                continue
            if header.producer_epoch != wanted.producer_epoch:
                return None
            if not wanted.is_after(header):
                return _if_same(header, wanted)
        if read - paused >= SLICE_BYTES:
            paused = read
            yield
    return None


def _if_same(header: BatchHeader, wanted: Sought) -> CachedBatch | None:
    """The batch, if it has the sequences that are sought: all of them, and no others."""
    first, last = header.base_sequence, add_to_sequence(header.base_sequence, header.last_offset_delta)
    if (first, last) != (wanted.base_sequence, wanted.last_sequence):
        return None
    return CachedBatch(first, last, header.base_offset, header.last_offset, header.max_timestamp)
