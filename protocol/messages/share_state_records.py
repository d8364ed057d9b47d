"""Keys and values of `__share_group_state`, as Kafka's share coordinator writes them (KIP-932)."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.wire import Array, Int8, Int16, Int32, Int64, String, Uuid


@message(api_key=0, versions="0")
class ShareSnapshotKey(Message):
    """Key of the whole state of a share partition."""

    group_id: str = field(String, "0")
    topic_id: bytes = field(Uuid, "0")
    partition: int = field(Int32, "0")


@nested
class ShareSnapshotValueStateBatch(Message):
    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    delivery_state: int = field(Int8)
    delivery_count: int = field(Int16)


@message(api_key=0, versions="0", flexible="0+")
class ShareSnapshotValue(Message):
    """The whole state of a share partition."""

    snapshot_epoch: int = field(Int32)
    state_epoch: int = field(Int32)
    leader_epoch: int = field(Int32)
    start_offset: int = field(Int64)
    delivery_complete_count: int = field(Int32, tag=0, tagged="0+", default=-1)
    create_timestamp: int = field(Int64)
    write_timestamp: int = field(Int64)
    state_batches: list[ShareSnapshotValueStateBatch] = field(Array(ShareSnapshotValueStateBatch))


@message(api_key=1, versions="0")
class ShareUpdateKey(Message):
    """Key of a change of a share partition's state."""

    group_id: str = field(String, "0")
    topic_id: bytes = field(Uuid, "0")
    partition: int = field(Int32, "0")


@nested
class ShareUpdateValueStateBatch(Message):
    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    delivery_state: int = field(Int8)
    delivery_count: int = field(Int16)


@message(api_key=1, versions="0", flexible="0+")
class ShareUpdateValue(Message):
    """What has changed in a share partition since its last snapshot or update."""

    snapshot_epoch: int = field(Int32)
    leader_epoch: int = field(Int32)
    start_offset: int = field(Int64)
    delivery_complete_count: int = field(Int32, tag=0, tagged="0+", default=-1)
    state_batches: list[ShareUpdateValueStateBatch] = field(Array(ShareUpdateValueStateBatch))
