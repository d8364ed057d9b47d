"""The batches of a commit that is too large for one: each record names its commit and the commit's size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.turn.decision import Headers, Record
from protocol.record_batch import HEADER_BYTES, build_batch
from storage.segments.spans import span_headers

# of a record: lengths, deltas and the two headers
_RECORD_BYTES = 64


def are_offsets(records: Sequence[Record]) -> bool:
    """Whether all records set or delete committed offsets: an incomplete commit of them can be repaired."""
    return all(key is not None and key[0] == 0 and key[1] <= 1 for key, *_ in records)


def span_batches(
    records: Sequence[Record], *, base_offset: int, leader_epoch: int, timestamp_ms: int, max_bytes: int
) -> list[tuple[bytes, int]]:
    """(batch, last offset) of each batch. The offset of the commit's first record is its id.

    The first record of every batch has the headers that say who made the commit.
    """
    span = span_headers(base_offset, len(records))
    provenance = records[0][2] if len(records[0]) == 3 else ()
    batches = []
    for part in _parts(records, max_bytes - HEADER_BYTES - sum(len(n) + len(v or b"") + 8 for n, v in provenance)):
        headers: list[Headers] = [(*provenance, *span), *(span for _ in part[1:])]
        batch = build_batch(
            [(record[0], record[1], each) for record, each in zip(part, headers, strict=True)],
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            timestamp_ms=timestamp_ms,
        )
        base_offset += len(part)
        batches.append((batch, base_offset - 1))
    return batches


def _parts(records: Sequence[Record], max_bytes: int) -> Iterator[list[Record]]:
    part: list[Record] = []
    size = 0
    for record in records:
        record_bytes = _RECORD_BYTES + len(record[0] or b"") + len(record[1] or b"")
        if part and size + record_bytes > max_bytes:
            yield part
            part, size = [], 0
        part.append(record)
        size += record_bytes
    yield part
