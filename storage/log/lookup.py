"""Offsets by time: the first record at least as late as a timestamp, and the latest record of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from protocol.record import Record
from protocol.record_batch import BatchHeader, iter_records
from storage.segments.batches import read_batches
from storage.segments.segment import Segment

if TYPE_CHECKING:
    from storage.segments.log_writer import LogWriter


def offset_for_timestamp(log: LogWriter, timestamp: int) -> tuple[int, int, int] | None:
    """(timestamp, offset, leader epoch); the time index narrows it to a few batches, the records decide.

    Errors:  KafkaError(INVALID_RECORD): a record in them is larger than max.decompressed.message.bytes.
    """
    start = log.log_start_offset
    for segment in list(log.segments):
        if segment.largest_timestamp < timestamp:
            continue
        index = segment.index
        position = index.position_before(index.offset_before_time(timestamp))
        if start > segment.base_offset:
            position = max(position, segment.position_of(start))
        for at, header in segment.headers(position):
            if header.max_timestamp < timestamp or header.last_offset < start:
                continue
            for record in _records(log, segment, at, header):
                if record.timestamp >= timestamp and record.offset >= start:
                    return record.timestamp, record.offset, header.partition_leader_epoch
    return None


def max_timestamp(log: LogWriter) -> tuple[int, int, int] | None:
    """(timestamp, offset, leader epoch) of the latest record; of several, as in a LogAppendTime batch, the first."""
    segments = [segment for segment in log.segments if segment.file.size]
    if not segments:
        return None
    segment = max(segments, key=lambda each: each.largest_timestamp)
    largest = segment.largest_timestamp
    for at, header in segment.headers(segment.position_of(segment.max_timestamp_offset)):
        if header.max_timestamp < largest:
            continue
        for record in _records(log, segment, at, header):
            if record.timestamp == largest:
                return largest, record.offset, header.partition_leader_epoch
        return None  # as in Kafka: its records are gone, or all of them are older than the time "none"
    return None


def _records(log: LogWriter, segment: Segment, position: int, header: BatchHeader) -> Iterator[Record]:
    _, _, batch = next(read_batches(segment.file, position, position + header.size))
    return iter_records(batch, most_bytes=log.config.max_record_bytes)
