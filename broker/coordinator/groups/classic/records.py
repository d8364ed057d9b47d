"""The GroupMetadata records of classic groups: Kafka's key and value schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.records import GROUP_METADATA
from protocol.codegen import codec
from protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

if TYPE_CHECKING:
    from broker.coordinator.groups.classic.group import ClassicGroup
    from broker.coordinator.groups.classic.member import Member
    from broker.turn.decision import Record

GROUP_METADATA_VERSION: Final = 3  # what Kafka writes; 4 would be flexible


def group_key(group_id: str) -> bytes:
    """The key of a group's GroupMetadata record."""
    return GROUP_METADATA.to_bytes(2, "big") + codec(GroupMetadataKey, 0).encode(GroupMetadataKey(group=group_id))


def group_tombstone(group_id: str) -> Record:
    """Deletes a classic group."""
    return group_key(group_id), None


def empty_group_record(group: ClassicGroup, generation_id: int, now_ms: int) -> Record:
    """A group without members."""
    return _group_record(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=generation_id,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        ),
    )


def stable_group_record(group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> Record:
    """A generation with its members and their assignments; a member without one in `assignments` gets empty bytes."""
    return _group_record(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.leader,
            current_state_timestamp=now_ms,
            members=_members(group.members.values(), group.protocol_name, assignments),
        ),
    )


def _members(
    members: Iterable[Member], protocol_name: str | None, assignments: Mapping[str, bytes]
) -> list[MemberMetadata]:
    return [
        MemberMetadata(
            member_id=m.member_id,
            group_instance_id=m.group_instance_id,
            client_id=m.client_id,
            client_host=m.client_host,
            rebalance_timeout=m.rebalance_timeout_ms,
            session_timeout=m.session_timeout_ms,
            subscription=m.metadata(protocol_name),
            assignment=assignments.get(m.member_id, b""),
        )
        for m in members
    ]


def _group_record(group_id: str, value: GroupMetadataValue) -> Record:
    body = codec(GroupMetadataValue, GROUP_METADATA_VERSION).encode(value)
    return group_key(group_id), GROUP_METADATA_VERSION.to_bytes(2, "big") + body
