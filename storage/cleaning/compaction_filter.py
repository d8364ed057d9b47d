"""What is left of one batch after compaction: itself, a smaller one, a bare header, or nothing."""

from __future__ import annotations

from collections.abc import Generator

from protocol.record import Headers, Record, decode_keys, encode_record
from protocol.record_batch import CODEC_MASK, DELETE_HORIZON, LOG_APPEND_TIME, BatchHeader, assemble_batch
from storage.cleaning.compaction_plan import SLICE_KEYS, SLICE_RECORDS, Plan, raw_records, section_of
from storage.segments.spans import SPAN_HEADERS

_ALL, _NONE, _SOME = True, False, None


def filter_batch(
    plan: Plan,
    header: BatchHeader,
    batch: memoryview,
    delete_retention_ms: int,
) -> Generator[None, None, bytes | memoryview | None]:
    """The batch itself when all of it survives, a smaller one, a bare header, or None."""
    if header.base_offset >= plan.end_offset:
        return batch
    horizon = header.delete_horizon_ms
    past_horizon = horizon is not None and horizon <= plan.now_ms
    empty_marker = header.base_offset in plan.empty_markers
    holds_state = header.producer_id >= 0 and plan.last_by_producer.get(header.producer_id) == header.last_offset
    # Kafka empties the marker that holds a producer's state; then a start does not find the epoch
    marker_goes = empty_marker and past_horizon and not holds_state
    if marker_goes and header.base_offset >= plan.tombstones_end:  # an image may hold its transaction as open
        marker_goes, plan.held_tombstones = False, True
    discard = marker_goes or plan.is_aborted(header) or header.base_offset in plan.partial
    strip = header.base_offset in plan.whole  # what survives no longer shows whether it is all
    kept: list[Record] = []
    provenance: Headers = ()  # who made this commit: on the first record there is
    tombstones = empty_marker
    if not discard:
        section = section_of(batch, header)
        fate = _SOME if strip else (yield from _fate(plan, header, section))
        if fate is _ALL:
            return batch
        if fate is _SOME:
            kept, provenance, has_tombstones = yield from _survivors(plan, header, section, past_horizon)
            tombstones = tombstones or has_tombstones
    new_horizon = plan.now_ms + delete_retention_ms if tombstones and kept and horizon is None else None
    if kept and len(kept) == header.record_count and new_horizon is None and not strip:
        return batch
    if kept:
        if plan.commits and len(kept) < header.record_count:
            kept[0] = kept[0]._replace(headers=tuple(provenance))
        return (yield from _rebuild(header, kept, new_horizon, SPAN_HEADERS if strip else frozenset()))
    ends_range = header.next_offset == plan.end_offset
    if ends_range or holds_state:
        return batch if not header.record_count else _bare(header)
    return None


def _fate(plan: Plan, header: BatchHeader, section: bytes) -> Generator[None, None, bool | None]:
    """Whether all records of a batch stay as they are, by their keys, or none; else each must be looked at."""
    if header.is_control:
        return _SOME
    kept = 0
    keeps = plan.keeps
    for seen, (offset, key, is_null) in enumerate(decode_keys(section, header.record_count, header.base_offset)):
        if seen % SLICE_KEYS == SLICE_KEYS - 1:
            yield
        if keeps(offset, key):
            if is_null or kept != seen:
                return _SOME
            kept += 1
        elif kept:
            return _SOME
    return _ALL if kept else _NONE


def _survivors(
    plan: Plan, header: BatchHeader, section: bytes, past_horizon: bool
) -> Generator[None, None, tuple[list[Record], Headers, bool]]:
    """The records that stay, the headers of the first there is, and whether a tombstone stays."""
    kept: list[Record] = []
    provenance: Headers = ()
    has_tombstones = False
    keeps, is_control = plan.keeps, header.is_control
    for count, record in enumerate(raw_records(section, header), 1):
        if count == 1:
            provenance = record.headers
        if count % SLICE_RECORDS == 0:
            yield
        if not is_control:
            if not keeps(record.offset, record.key):
                continue
            if record.value is None:
                if past_horizon:
                    if record.offset < plan.tombstones_end:
                        continue
                    plan.held_tombstones = True
                has_tombstones = True
        kept.append(record)
    return kept, provenance, has_tombstones


def _bare(header: BatchHeader) -> bytes:
    """The header of a batch of which nothing else is left."""
    return assemble_batch(
        b"",
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON),
        last_offset_delta=header.last_offset_delta,
        base_timestamp=-1,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=0,
    )


def _rebuild(
    header: BatchHeader,
    kept: list[Record],
    new_horizon: int | None,
    drop_headers: frozenset[str],
) -> Generator[None, None, bytes]:
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp if new_horizon is None else new_horizon
    max_timestamp = -1
    parts: list[bytes] = []
    for offset, timestamp, key, value, headers in kept:
        if drop_headers and headers:
            headers = tuple(each for each in headers if each[0] not in drop_headers)
        parts.append(encode_record(offset - base_offset, timestamp - base_timestamp, key, value, headers))
        max_timestamp = max(max_timestamp, timestamp)
        if len(parts) % SLICE_RECORDS == 0:
            yield
    return assemble_batch(
        b"".join(parts),
        base_offset=base_offset,
        leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes | (0 if new_horizon is None else DELETE_HORIZON),
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if header.attributes & LOG_APPEND_TIME else max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=len(kept),
    )
