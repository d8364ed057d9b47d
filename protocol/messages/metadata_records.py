"""Records of `__cluster_metadata`, as KRaft writes them: all in the value, the key is null.

A value is three varints (frame version 1, record type, version), then the record, always flexible. The message's
API_KEY is the record type.
"""

from __future__ import annotations

from typing import Final

from protocol.codec_support import read_uvarint, uvarint
from protocol.codegen import codec
from protocol.declare import Message, field, message, nested
from protocol.errors import MalformedError
from protocol.messages.registration_records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from protocol.wire import Array, Bool, Bytes, Float64, Int8, Int16, Int32, Int64, String, Uuid


@message(api_key=2, versions="0", flexible="0+")
class TopicRecord(Message):
    """A topic exists."""

    name: str = field(String)
    topic_id: bytes = field(Uuid)


@message(api_key=3, versions="0-2", flexible="0+")
class PartitionRecord(Message):
    """A partition exists."""

    partition_id: int = field(Int32, default=-1)
    topic_id: bytes = field(Uuid)
    replicas: list[int] = field(Array(Int32))
    isr: list[int] = field(Array(Int32))
    removing_replicas: list[int] = field(Array(Int32))
    adding_replicas: list[int] = field(Array(Int32))
    leader: int = field(Int32, default=-1)
    leader_recovery_state: int = field(Int8, tag=0, tagged="0+")
    leader_epoch: int = field(Int32, default=-1)
    partition_epoch: int = field(Int32, default=-1)
    directories: list[bytes] = field(Array(Uuid), "1+")
    eligible_leader_replicas: list[int] | None = field(
        Array(Int32), "2+", nullable="2+", tag=1, tagged="2+", default=None
    )
    last_known_elr: list[int] | None = field(Array(Int32), "2+", nullable="2+", tag=2, tagged="2+", default=None)


@message(api_key=4, versions="0", flexible="0+")
class ConfigRecord(Message):
    """A dynamic config is set; a null value deletes it."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    name: str = field(String)
    value: str | None = field(String, nullable="0+")


@message(api_key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord(Message):
    """A partition changes; null stands for unchanged."""

    partition_id: int = field(Int32, default=-1)
    topic_id: bytes = field(Uuid)
    isr: list[int] | None = field(Array(Int32), nullable="0+", tag=0, tagged="0+", default=None)
    leader: int = field(Int32, tag=1, tagged="0+", default=-2)
    replicas: list[int] | None = field(Array(Int32), nullable="0+", tag=2, tagged="0+", default=None)
    removing_replicas: list[int] | None = field(Array(Int32), nullable="0+", tag=3, tagged="0+", default=None)
    adding_replicas: list[int] | None = field(Array(Int32), nullable="0+", tag=4, tagged="0+", default=None)
    leader_recovery_state: int = field(Int8, tag=5, tagged="0+", default=-1)
    directories: list[bytes] | None = field(Array(Uuid), "1+", nullable="1+", tag=8, tagged="1+", default=None)
    eligible_leader_replicas: list[int] | None = field(
        Array(Int32), "2+", nullable="2+", tag=6, tagged="2+", default=None
    )
    last_known_elr: list[int] | None = field(Array(Int32), "2+", nullable="2+", tag=7, tagged="2+", default=None)


@message(api_key=18, versions="0", flexible="0+")
class AccessControlEntryRecord(Message):
    """An access rule."""

    id: bytes = field(Uuid)
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    pattern_type: int = field(Int8)
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message(api_key=9, versions="0", flexible="0+")
class RemoveTopicRecord(Message):
    """A topic is deleted."""

    topic_id: bytes = field(Uuid)


@message(api_key=10, versions="0", flexible="0+")
class DelegationTokenRecord(Message):
    """A delegation token."""

    owner: str = field(String)
    requester: str = field(String)
    renewers: list[str] = field(Array(String))
    issue_timestamp: int = field(Int64)
    max_timestamp: int = field(Int64)
    expiration_timestamp: int = field(Int64)
    token_id: str = field(String)


@message(api_key=11, versions="0", flexible="0+")
class UserScramCredentialRecord(Message):
    """A SCRAM credential."""

    name: str = field(String)
    mechanism: int = field(Int8)
    salt: bytes = field(Bytes)
    stored_key: bytes = field(Bytes)
    server_key: bytes = field(Bytes)
    iterations: int = field(Int32)


@message(api_key=12, versions="0", flexible="0+")
class FeatureLevelRecord(Message):
    """A feature is finalized at a level."""

    name: str = field(String)
    feature_level: int = field(Int16)


@nested
class EntityData(Message):
    entity_type: str = field(String)
    entity_name: str | None = field(String, nullable="0+")


@message(api_key=14, versions="0", flexible="0+")
class ClientQuotaRecord(Message):
    """A client quota is set or removed."""

    entity: list[EntityData] = field(Array(EntityData))
    key: str = field(String)
    value: float = field(Float64)
    remove: bool = field(Bool)


@message(api_key=15, versions="0", flexible="0+")
class ProducerIdsRecord(Message):
    """The producer ids up to this one are given out."""

    broker_id: int = field(Int32)
    broker_epoch: int = field(Int64, default=-1)
    next_producer_id: int = field(Int64)


@message(api_key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord(Message):
    """An access rule is deleted."""

    id: bytes = field(Uuid)


@message(api_key=20, versions="0", flexible="0+")
class NoOpRecord(Message):
    """Nothing; moves the log forward."""


@message(api_key=21, versions="0", flexible="0+")
class ZkMigrationStateRecord(Message):
    """State of the migration from ZooKeeper."""

    zk_migration_state: int = field(Int8)


@message(api_key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord(Message):
    """A SCRAM credential is deleted."""

    name: str = field(String)
    mechanism: int = field(Int8)


@message(api_key=23, versions="0", flexible="0+")
class BeginTransactionRecord(Message):
    """Records up to the end or abort hold together."""

    name: str | None = field(String, nullable="0+", tag=0, tagged="0+", default=None)


@message(api_key=24, versions="0", flexible="0+")
class EndTransactionRecord(Message):
    """They hold."""


@message(api_key=25, versions="0", flexible="0+")
class AbortTransactionRecord(Message):
    """They do not."""

    reason: str | None = field(String, nullable="0+", tag=0, tagged="0+", default=None)


@message(api_key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord(Message):
    """A delegation token is deleted."""

    token_id: str = field(String)


@message(api_key=28, versions="0", flexible="0+")
class ClearElrRecord(Message):
    """Forgets eligible leader replicas, of one topic or all."""

    topic_name: str = field(String)


_FRAME_VERSION: Final = 1
_RECORDS: Final[dict[int, type[Message]]] = {
    each.API_KEY: each
    for each in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        AccessControlEntryRecord,
        FenceBrokerRecord,
        UnfenceBrokerRecord,
        RemoveTopicRecord,
        DelegationTokenRecord,
        UserScramCredentialRecord,
        FeatureLevelRecord,
        ClientQuotaRecord,
        ProducerIdsRecord,
        RemoveAccessControlEntryRecord,
        BrokerRegistrationChangeRecord,
        NoOpRecord,
        ZkMigrationStateRecord,
        RemoveUserScramCredentialRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
        RemoveDelegationTokenRecord,
        RegisterControllerRecord,
        ClearElrRecord,
    )
}


def encode_record(record: Message, version: int) -> bytes:
    """The value of a record in the metadata log."""
    prefix = bytes([_FRAME_VERSION]) + uvarint(record.API_KEY) + uvarint(version)
    return prefix + codec(type(record), version).encode(record)


def decode_record(value: bytes) -> Message:
    """The record in a value of the metadata log."""
    try:
        frame_version, record_type, version, position = value[0], value[1], value[2], 3
        if frame_version > 127 or record_type > 127 or version > 127:  # of several bytes, which none of today's are
            frame_version, position = read_uvarint(value, 0)
            record_type, position = read_uvarint(value, position)
            version, position = read_uvarint(value, position)
    except IndexError:
        raise MalformedError("a metadata record ends inside its frame") from None
    if frame_version != _FRAME_VERSION:
        raise MalformedError(f"metadata frame version {frame_version} is not known")
    cls = _RECORDS.get(record_type)
    if cls is None:
        raise MalformedError(f"metadata record type {record_type} is not known")
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise MalformedError(f"{cls.__name__} has no version {version}")
    return codec(cls, version).decode(value, position)[0]
