"""Records of our own in Kafka's internal topics: types from 1000 on, which Kafka's brokers and tools pass over."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.wire import Array, Int16, Int32, Int64, String

OWN_RECORDS = 1000


@message(api_key=1000, versions="0")
class TransactionGroupKey(Message):
    """Key, in `__transaction_state`, of a group whose offsets are part of a transaction (KIP-447's first draft)."""

    transactional_id: str = field(String, "0")
    group_id: str = field(String, "0")


@nested
class TransactionGroupTopic(Message):
    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(api_key=1000, versions="0", flexible="0+")
class TransactionGroupValue(Message):
    """Who sent a group's offsets, and for which partitions; what the member did not say is -1, empty or null."""

    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    generation_id_or_member_epoch: int = field(Int32, default=-1)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, nullable="0+", default=None)
    client_id: str | None = field(String, nullable="0+", default=None)
    topics: list[TransactionGroupTopic] = field(Array(TransactionGroupTopic))
