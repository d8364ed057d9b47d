"""What consumers put into the opaque bytes of JoinGroup and SyncGroup: subscription and assignment."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.wire import Array, Bytes, Int32, String


@nested
class ConsumerProtocolSubscriptionTopicPartition(Message):
    topic: str = field(String, "1+")
    partitions: list[int] = field(Array(Int32), "1+")


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    """What a classic consumer subscribes to.

    1 owned partitions; 2 generation; 3 rack.
    """

    topics: list[str] = field(Array(String))
    user_data: bytes | None = field(Bytes, nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = field(
        Array(ConsumerProtocolSubscriptionTopicPartition), "1+"
    )
    generation_id: int = field(Int32, "2+", default=-1)
    rack_id: str | None = field(String, "3+", nullable="3+", default=None)


@nested
class ConsumerProtocolAssignmentTopicPartition(Message):
    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(versions="0-3")
class ConsumerProtocolAssignment(Message):
    """What the leader assigned to a classic consumer."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = field(
        Array(ConsumerProtocolAssignmentTopicPartition)
    )
    user_data: bytes | None = field(Bytes, nullable="0+", default=None)
