"""What OffsetCommit and TxnOffsetCommit have in common: rows of offsets to commit, and their codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.commit_run import Commit, Run
from broker.requests.expected_offsets import TAG
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic

_INDEX, _OFFSET = attrgetter("partition_index"), attrgetter("committed_offset")
_EPOCH, _METADATA = attrgetter("committed_leader_epoch"), attrgetter("committed_metadata")
_TIME, _TAGS = attrgetter("commit_timestamp"), attrgetter("unknown_tags")


class Row:
    """What a request commits on one topic, in columns. A column is None where the request has nothing of the kind."""

    __slots__ = (
        "conflicts",
        "expected",
        "leader_epochs",
        "metadata",
        "name",
        "offsets",
        "partitions",
        "times",
        "topic_id",
    )

    def __init__(self, name: str, partitions: Sequence[Any], topic_id: bytes = b"", *, has_times: bool = False) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = list(map(_INDEX, partitions))
        self.offsets = list(map(_OFFSET, partitions))
        self.leader_epochs = list(map(_EPOCH, partitions))
        self.metadata: list[str | None] | None = None
        if any(map(_METADATA, partitions)):
            self.metadata = list(map(_METADATA, partitions))
        self.times: list[int] | None = list(map(_TIME, partitions)) if has_times else None
        self.conflicts: dict[int, bytes] = {}  # places where another offset is committed than the client expects
        self.expected: list[bytes | None] | None = None
        if any(map(_TAGS, partitions)):
            self.expected = [(each.unknown_tags or {}).get(TAG) for each in partitions]

    def fits(self, place: int, most_units: int) -> bool:
        """Whether the metadata of one partition is small enough, in UTF-16 code units as Kafka counts."""
        text = (self.metadata[place] if self.metadata is not None else None) or ""
        return len(text) <= most_units // 2 or utf16_length(text) <= most_units


Codes = list[list[int]]  # of each row, in order: an error code for each of its partitions
Found = list[tuple[Row, "Topic", Sequence[int], list[int]]]  # rows, their topics, the places that exist, the codes


def find(topics: Sequence[Topic | None], rows: Sequence[Row], codes: Codes, unknown: ErrorCode) -> Found:
    """The rows of topics that exist (`topics`: of each row); the codes of all other partitions are set to `unknown`."""
    found: Found = []
    for topic, row, row_codes in zip(topics, rows, codes, strict=True):
        if topic is None:
            row_codes[:] = [unknown] * len(row_codes)
        elif row_codes:
            count = len(topic.partitions)
            places: Sequence[int] = range(len(row_codes))
            if min(row.partitions) < 0 or max(row.partitions) >= count:
                places = [at for at, index in enumerate(row.partitions) if 0 <= index < count]
                row_codes[:] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(row_codes)
                for at in places:
                    row_codes[at] = ErrorCode.NONE
            if places:
                found.append((row, topic, places, row_codes))
    return found


def find_topics(metadata: ClusterMetadata, rows: Sequence[Row], codes: Codes, *, by_id: bool) -> Found:
    """As `find`, by the ids or the names of the rows."""
    if by_id:
        return find([metadata.topics_by_id.get(row.topic_id) for row in rows], rows, codes, ErrorCode.UNKNOWN_TOPIC_ID)
    named = [metadata.topics.get(row.name) for row in rows]
    return find(named, rows, codes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def refuse(found: Found, code: int) -> None:
    """All partitions that exist get the same code."""
    for _, _, places, row_codes in found:
        for at in places:
            row_codes[at] = code


def checked(found: Found, most_units: int) -> Iterator[tuple[str, bytes, int]]:
    """The partitions whose assignment epoch is checked: those that are not refused for their metadata."""
    for row, topic, places, _ in found:
        for at in places:
            if row.fits(at, most_units):
                yield topic.name, topic.topic_id, row.partitions[at]


def add_runs(commit: Commit, found: Found, most_units: int, now_ms: int, expire_ms: int = -1) -> None:
    """Put the offsets into a Commit; one with too much metadata is refused alone, by its code."""
    for row, topic, places, codes in found:
        if row.metadata is None and row.times is None and expire_ms < 0 and len(places) == len(codes):
            commit.runs.append(Run(topic.name, topic.topic_id, row.partitions, row.offsets, row.leader_epochs))
            continue
        run = Run(topic.name, topic.topic_id)
        commit.runs.append(run)
        for at in places:
            if not row.fits(at, most_units):
                codes[at] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                _add(run, row, at, now_ms, expire_ms)


def _add(run: Run, row: Row, at: int, now_ms: int, expire_ms: int) -> None:
    """One offset, which may have metadata or times of its own."""
    metadata = (row.metadata[at] if row.metadata is not None else None) or ""
    if not metadata and row.times is None and expire_ms < 0:
        run.add(row.partitions[at], row.offsets[at], row.leader_epochs[at])
        return
    commit_ms = row.times[at] if row.times is not None else -1
    commit_ms = now_ms if commit_ms < 0 else commit_ms
    committed = Committed(row.offsets[at], row.leader_epochs[at], metadata, commit_ms, expire_ms, run.topic_id)
    run.add_other(row.partitions[at], committed)


def utf16_length(text: str) -> int:
    """The length as Kafka counts it: UTF-16 code units."""
    return len(text) + sum(ch > "\uffff" for ch in text)
