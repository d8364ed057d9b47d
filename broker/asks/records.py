"""Which records of a log a consumer sees: the one rule for what became of a batch's transaction.

The Fetch handler and share groups decide what is sent; this is the reader's side of it, as clients have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from protocol.record_batch import ABORT, control_type, iter_batches, iter_records

if TYPE_CHECKING:
    from protocol.messages.fetch import AbortedTransaction
    from protocol.record import Buffer, Record
    from protocol.record_batch import BatchHeader

NONE, OPEN, COMMITTED, ABORTED, MARKER = "", "open", "committed", "aborted", "marker"
NO_OFFSET: Final = 1 << 62
NOTHING_OPEN: Final[Mapping[int, int]] = {}


class Outcomes:
    """Tells the outcome of each batch of one partition; batches are asked about in the order of their offsets.

    ahead    (first offset, producer id) of aborted transactions, as a Fetch reply names them.
    opened   producer id -> first offset of its open transaction.
    stable   from this offset on, what is in a transaction is open.
    """

    def __init__(
        self,
        ahead: Iterable[tuple[int, int]] = (),
        opened: Mapping[int, int] = NOTHING_OPEN,
        stable: int = NO_OFFSET,
    ) -> None:
        self.expect(ahead)
        self._aborting: set[int] = set()
        self._opened = opened
        self._stable = stable

    def expect(self, ahead: Iterable[tuple[int, int]]) -> None:
        """Take the aborted transactions of the next reply in place of those of the one before."""
        self._ahead = sorted(ahead)

    def of(self, header: BatchHeader, batch: Buffer) -> str:
        """NONE outside transactions, MARKER of a control batch, else OPEN, COMMITTED or ABORTED.

        An aborted transaction goes from the first offset that is named for its producer to the producer's abort marker.

        Source:  KIP-98; the consumer's fetcher.
        """
        ahead, producer = self._ahead, header.producer_id
        while ahead and ahead[0][0] <= header.last_offset:
            self._aborting.add(ahead.pop(0)[1])
        if header.is_control:
            marker = next(iter_records(batch), None)
            if marker is not None and marker.key is not None and control_type(marker.key) == ABORT:
                self._aborting.discard(producer)
            return MARKER
        if not header.is_transactional:
            return NONE
        if header.base_offset >= self._stable:
            return OPEN
        if producer in self._aborting:
            return ABORTED
        return OPEN if header.base_offset >= self._opened.get(producer, NO_OFFSET) else COMMITTED


def named(aborted: Iterable[AbortedTransaction] | None) -> list[tuple[int, int]]:
    """(first offset, producer id) of the aborted transactions that a Fetch reply names."""
    return [(each.first_offset, each.producer_id) for each in aborted or ()]


def committed_records(data: bytes, aborted: Iterable[AbortedTransaction] | None) -> Iterator[tuple[int, Record | None]]:
    """(offset, record) of all records of a Fetch reply; None: a marker, or a record of an aborted transaction."""
    outcomes, view = Outcomes(named(aborted)), memoryview(data)
    for place, header in iter_batches(data):
        batch = view[place : place + header.size]
        is_seen = outcomes.of(header, batch) not in (MARKER, ABORTED)
        for record in iter_records(batch):
            yield record.offset, record if is_seen else None
        yield header.last_offset, None  # the cleaner may have removed the last records of a batch
