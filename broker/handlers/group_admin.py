"""DescribeGroups, ListGroups and DeleteGroups.

DescribeGroups  v3: authorized operations. v4: instance ids. v6: GROUP_ID_NOT_FOUND for an unknown group (KIP-1043),
                which is Dead in earlier versions.
ListGroups      v4: filter by state (KIP-518). v5: filter by type (KIP-848). Both ignore case.
DeleteGroups    Groups without members, with their offsets (KIP-229).

Behaviour: the empty group id is a group like any other. A node lists the groups that it coordinates. Each group
           is deleted with its offsets in one batch. A simple group (committed
           offsets only) is listed and described as Empty, without protocol type; when its last offset is gone, it
           stays until the next check of expired offsets. DescribeGroups knows classic groups only; the other types have
           APIs of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.base.context import Context
from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.states import DEAD, EMPTY, STABLE
from broker.coordinator.groups.kinds import SHARE
from broker.coordinator.written import Records
from broker.handlers.admin_view import GROUP_OPERATIONS
from broker.turn.decision import Decision, Record
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.group_admin import (
    DeletableGroupResult,
    DeleteGroupsResponse,
    DescribedGroupMember,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    ListedGroup,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.machine import GroupMachine
    from broker.coordinator.share.table import SharePartitions
    from protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest

NOT_FOUND_SINCE: Final = 6
CLASSIC: Final = ClassicGroup.group_type


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def groups(self) -> GroupShards: ...
    @property
    def share(self) -> SharePartitions: ...


def describe_groups(broker: View, ctx: Context, request: DescribeGroupsRequest) -> Decision:
    """Describe classic groups: state and members.

    Errors:  per group: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS; GROUP_ID_NOT_FOUND from v6 on.
    """
    groups = []
    for group_id in request.groups:
        try:
            described = _describe(broker.groups.require(group_id, ctx), ctx, group_id)
        except KafkaError as error:
            described = DescribeGroupsResponseDescribedGroup(group_id=group_id, error_code=error.code)
        if request.include_authorized_operations and described.error_code == ErrorCode.NONE:
            described.authorized_operations = GROUP_OPERATIONS
        groups.append(described)
    return Decision(DescribeGroupsResponse(groups=groups))


def _describe(shard: Any, ctx: Context, group_id: str) -> DescribeGroupsResponseDescribedGroup:
    machine: GroupMachine = shard.machine
    group = machine.groups.get(group_id)
    is_classic = group is None or group.group_type == CLASSIC
    if group is not None and is_classic:
        return DescribeGroupsResponseDescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type,
            protocol_data=(group.protocol_name or "") if group.state is STABLE else "",
            members=_members(group),
        )
    if is_classic and machine.simple.is_shown(group_id, shard.log.end_offset):
        return DescribeGroupsResponseDescribedGroup(group_id=group_id, group_state=EMPTY.value)
    described = DescribeGroupsResponseDescribedGroup(group_id=group_id, group_state=DEAD.value)
    if ctx.api_version >= NOT_FOUND_SINCE:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = f"Group {group_id} {'not found' if is_classic else 'is not a classic group'}."
    return described


def _members(group: ClassicGroup) -> list[DescribedGroupMember]:
    """The members; their metadata only in Stable: during a rebalance it may belong to another generation."""
    return [
        DescribedGroupMember(
            member_id=m.member_id,
            group_instance_id=m.group_instance_id,
            client_id=m.client_id,
            client_host=m.client_host,
            member_metadata=m.metadata(group.protocol_name) if group.state is STABLE else b"",
            member_assignment=m.assignment,
        )
        for m in group.members.values()
    ]


def list_groups(broker: View, ctx: Context, request: ListGroupsRequest) -> Decision:
    """List the groups that this node coordinates. Errors: COORDINATOR_LOAD_IN_PROGRESS."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {type_.lower() for type_ in request.types_filter}
    groups = [
        ListedGroup(
            group_id=group_id,
            protocol_type=protocol_type,
            group_state=state,
            group_type=group_type,
        )
        for shard in broker.groups.own(ctx)
        for group_id, protocol_type, state, group_type in listed(shard.machine, shard.log.end_offset)
        if (not states or state.lower() in states) and (not types or group_type in types)
    ]
    return Decision(ListGroupsResponse(groups=groups))


def listed(machine: GroupMachine, log_end: int) -> Iterator[tuple[str, str, str, str]]:
    """(group id, protocol type, state, type) of each group."""
    for group_id in machine.group_ids():
        group = machine.groups.get(group_id)
        if group is None:
            if machine.simple.is_shown(group_id, log_end):
                yield group_id, "", EMPTY.value, CLASSIC
        else:
            yield group_id, group.protocol_type, group.state.value, group.group_type


def delete_groups(broker: View, ctx: Context, request: DeleteGroupsRequest) -> Decision:
    """Delete groups without members, with their offsets.

    Shape:   tombstones of the group's offsets and of the group, one batch per group.
    Errors:  per group: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS;
             COORDINATOR_NOT_AVAILABLE: what a share group has read cannot be deleted now.
    """
    results: list[DeletableGroupResult] = []
    writes: list[tuple[Any, Any]] = []
    for group_id in dict.fromkeys(request.groups_names):
        code = ErrorCode.NONE
        try:
            shard = broker.groups.require(group_id, ctx)
            records = _deletion(shard, group_id)
            if getattr(shard.machine.groups.get(group_id), "group_type", "") == SHARE:
                _delete_share_state(broker, shard.machine.groups[group_id])
            writes.append((shard, Records(records)))
        except KafkaError as error:
            code = error.code
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
    return Decision(DeleteGroupsResponse(results=results), writes=tuple(writes))


def _delete_share_state(broker: View, group: Any) -> None:
    """Delete what a share group has read, before the group itself. Errors: COORDINATOR_NOT_AVAILABLE."""
    from broker.coordinator.share.state import Key  # 3 ms: most groups are no share groups

    partitions = group.state_partitions
    keys = [
        Key(group.group_id, topic_id, index)
        for topics in (partitions.initialized, partitions.initializing)
        for topic_id, (_, indexes) in topics.items()
        for index in indexes
    ]
    known = broker.metadata.topics_by_id
    for topic_id in partitions.deleting:  # by DeleteShareGroupOffsets, which could not write it
        if topic_id in known:
            keys += [Key(group.group_id, topic_id, index) for index in range(len(known[topic_id].partitions))]
    if keys:
        broker.share.drop_group(group.group_id)
        failed: list[bool] = []
        broker.share.coordinator.delete(keys, lambda durable: None if durable else failed.append(True))
        if failed:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _deletion(shard: Any, group_id: str) -> list[Record]:
    machine: GroupMachine = shard.machine
    group = machine.groups.get(group_id)
    if not machine.has_group(group_id):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None:
        if not group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        for member_id in group.pending_joins:
            shard.deadlines.set(("session", group_id, member_id), None)
    return machine.delete_group_records(group_id)
