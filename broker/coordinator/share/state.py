"""The stored state of a share partition, as a value, and its records.

A ShareSnapshot record holds all of it, a ShareUpdate what has changed since. The start offset is the first record that
may still be delivered; batches say what has become of records from there on. What is acquired is not stored, as in
Kafka: after a start such records can be acquired again, with the delivery count that was stored last.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from broker.coordinator.share.combine import StateBatch, combine
from broker.turn.decision import Record
from protocol.codec_support import uvarint
from protocol.codegen import codec
from protocol.messages.coordinator_records import encode_key, encode_record
from protocol.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareSnapshotValueStateBatch,
    ShareUpdateKey,
    ShareUpdateValue,
)

NOT_STARTED: Final = -1  # the start offset before the first read: then the group's share.auto.offset.reset says it
NOT_COUNTED: Final = -1
SNAPSHOT: Final = 0  # record types
UPDATE: Final = 1
_SHORT: Final = Struct(">h")
_UPDATE: Final = Struct(">hiiq")  # version, snapshot epoch, leader epoch, start offset
_BATCH: Final = Struct(">qqbhB")  # a StateBatch; no tags
_COUNT: Final = Struct(">BBBi")  # one tagged field, 0, of four bytes


class Key(NamedTuple):
    """Names a share partition."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def text(self) -> str:
        """As Kafka writes it in a FindCoordinator request; its hash places the share partition."""
        return f"{self.group_id}:{urlsafe_b64encode(self.topic_id).decode().rstrip('=')}:{self.partition}"


class ShareState(NamedTuple):
    """What the log says of a share partition."""

    snapshot_epoch: int  # counts the snapshots
    state_epoch: int  # the group epoch when the state was made, or its offset altered
    leader_epoch: int  # of the partition, when it was last read or written
    start_offset: int
    delivery_complete_count: int  # records from the start offset on that are acknowledged or archived
    create_ms: int
    write_ms: int
    batches: tuple[StateBatch, ...] = ()

    def changed(self, leader_epoch: int, start_offset: int, count: int, batches: Sequence[StateBatch]) -> ShareState:
        """With what an update says; -1 stands for unchanged."""
        start = self.start_offset if start_offset == -1 else start_offset
        return self._replace(
            leader_epoch=self.leader_epoch if leader_epoch == -1 else leader_epoch,
            start_offset=start,
            delivery_complete_count=count,
            batches=tuple(combine([*self.batches, *batches], start)),
        )


def snapshot_record(key: Key, state: ShareState) -> Record:
    """All of a state."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_ms,
        write_timestamp=state.write_ms,
        state_batches=[
            ShareSnapshotValueStateBatch(first_offset=b[0], last_offset=b[1], delivery_state=b[2], delivery_count=b[3])
            for b in state.batches
        ],
    )
    return _snapshot_key(key), encode_record(value, 0)


def update_value(
    snapshot_epoch: int, leader_epoch: int, start_offset: int, count: int, batches: Sequence[StateBatch]
) -> bytes:
    """What has changed since the last snapshot or update: the bytes that the codec makes of a ShareUpdateValue."""
    return b"".join(
        (
            _UPDATE.pack(0, snapshot_epoch, leader_epoch, start_offset),
            uvarint(len(batches) + 1),
            *[_BATCH.pack(*batch, 0) for batch in batches],
            b"\0" if count == NOT_COUNTED else _COUNT.pack(1, 0, 4, count),
        )
    )


@lru_cache(4096)
def update_key(key: Key) -> bytes:
    """The key of the records with changes."""
    return encode_key(ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition))


def tombstone(key: Key) -> Record:
    """Deletes a state."""
    return _snapshot_key(key), None


def _snapshot_key(key: Key) -> bytes:
    return encode_key(ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition))


def decode_key(data: bytes) -> Key:
    """The share partition that a record is about; both record types have the same key."""
    found, _ = codec(ShareSnapshotKey, 0).decode(data, 2)
    return Key(found.group_id, found.topic_id, found.partition)


def decode_snapshot(value: bytes) -> ShareState:
    """The state in a snapshot record."""
    found, _ = codec(ShareSnapshotValue, _SHORT.unpack_from(value)[0]).decode(value, 2)
    return ShareState(
        found.snapshot_epoch,
        found.state_epoch,
        found.leader_epoch,
        found.start_offset,
        found.delivery_complete_count,
        found.create_timestamp,
        found.write_timestamp,
        tuple(
            StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in found.state_batches
        ),
    )


def decode_update(value: bytes) -> tuple[int, int, int, list[StateBatch]]:
    """(leader epoch, start offset, delivery complete count, batches) of an update record."""
    found, _ = codec(ShareUpdateValue, _SHORT.unpack_from(value)[0]).decode(value, 2)
    batches = [
        StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in found.state_batches
    ]
    return found.leader_epoch, found.start_offset, found.delivery_complete_count, batches
