"""Asks about groups of any type: described, listed; offsets read, committed and moved; members removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.asks import configs
from broker.asks import topics as topic_asks
from broker.asks.ask import Ask, Group, Node, Question, check, label
from protocol.codegen import codec
from protocol.errors import ErrorCode, MalformedError
from protocol.messages.classic_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.share_group import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.streams_group import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest

if TYPE_CHECKING:
    from broker.asks.rows import DeadLetters, GroupDetails, OffsetRow
    from protocol.messages.configs import DescribeConfigsResult
    from protocol.messages.group_admin import DeletableGroupResult, DeleteGroupsResponse, ListGroupsResponse
    from protocol.messages.offsets import (
        OffsetCommitResponse,
        OffsetDeleteResponse,
        OffsetFetchResponse,
        OffsetFetchResponseTopics,
    )
    from protocol.messages.share_offsets import AlterShareGroupOffsetsResponse, DescribeShareGroupOffsetsResponse

# how a group of each type is described: the request, its field, its version
DESCRIBE: Final[dict[str, tuple[Any, str, int]]] = {
    "classic": (DescribeGroupsRequest, "groups", 6),
    "consumer": (ConsumerGroupDescribeRequest, "group_ids", 1),
    "share": (ShareGroupDescribeRequest, "group_ids", 1),
    "streams": (StreamsGroupDescribeRequest, "group_ids", 1),
}
# how a member of such a group leaves: its own heartbeat with the epoch of those who leave
HEARTBEATS: Final[dict[str, tuple[Any, int]]] = {
    "consumer": (ConsumerGroupHeartbeatRequest, 1),
    "share": (ShareGroupHeartbeatRequest, 1),
    "streams": (StreamsGroupHeartbeatRequest, 0),
}
LEAVING_EPOCH: Final = -1
LIST_VERSION, DELETE_VERSION, LEAVE_VERSION = 5, 2, 5
DELETE_OFFSETS_VERSION: Final = 0
FETCH_VERSION, COMMIT_BY_NAME, COMMIT_BY_ID = 9, 9, 10
SHARE_VERSION, ALTER_SHARE_VERSION = 1, 0
NO_ID: Final = bytes(16)
LETTERS_TO: Final = "errors.deadletterqueue.topic.name"
LETTERS_COPY: Final = "errors.deadletterqueue.copy.record.enable"
LETTERS_TAKEN: Final = "errors.deadletterqueue.group.enable"  # of the topic
MOST_METADATA: Final = 200
TASKS: Final = {"active_tasks": "", "standby_tasks": " (standby)", "warmup_tasks": " (warm-up)"}

PartitionKey = tuple[str, int]


class Listed(NamedTuple):
    """A group as its coordinator lists it. `type` is "" where the cluster does not know types."""

    group: str
    state: str
    type: str
    protocol_type: str
    coordinator: int


class Commit(NamedTuple):
    """An offset to commit."""

    topic: str
    partition: int
    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    topic_id: bytes = NO_ID


class Refused(NamedTuple):
    """A commit that was refused."""

    topic: str
    partition: int
    code: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {label(self.code)}"


def listed() -> Ask[list[Listed]]:
    """The groups of all nodes, by name. Errors: AnswerError."""
    found = []
    for node in (yield from topic_asks.metadata()).brokers:
        found += yield from listed_at(node.node_id)
    return sorted(found)


def listed_at(node_id: int) -> Ask[list[Listed]]:
    """The groups that a node coordinates. Errors: AnswerError."""
    answer: ListGroupsResponse = yield Question(ListGroupsRequest(), LIST_VERSION, Node(node_id))
    check("groups", answer.error_code)
    return [
        Listed(each.group_id, each.group_state, each.group_type.lower(), each.protocol_type, node_id)
        for each in answer.groups
    ]


def type_of(group: str) -> Ask[str]:
    """The type of a group, by what its coordinator lists; classic where it is not told."""
    answer: ListGroupsResponse = yield Question(ListGroupsRequest(), LIST_VERSION, Group(group))
    check("groups", answer.error_code)
    return next((each.group_type.lower() for each in answer.groups if each.group_id == group), "") or "classic"


def describe(group: str, kind: str) -> Ask[GroupDetails]:
    """A group of a type, without its offsets; one that does not exist is Dead. Errors: AnswerError."""
    answer: GroupDetails = {
        "group": group,
        "type": "",
        "state": "Dead",
        "group_epoch": -1,
        "assignment_epoch": -1,
        "protocol": "",
        "members": [],
        "assignments": [],
        "offsets": [],
    }
    request, field, version = DESCRIBE[kind]
    (found,) = (yield Question(request(**{field: [group]}), version, Group(group))).groups
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return answer
    check(f"group {group:.100}", found.error_code, getattr(found, "error_message", None))
    if found.group_state == "Dead":  # as classic groups say before version 6
        return answer
    answer |= {
        "type": kind,
        "state": found.group_state,
        "group_epoch": getattr(found, "group_epoch", -1),
        "assignment_epoch": getattr(found, "assignment_epoch", -1),
        "protocol": found.protocol_data if kind == "classic" else getattr(found, "assignor_name", ""),
    }
    places: Callable[[Any], list[str]] = {"classic": classic_places, "streams": _tasks}.get(kind, _partitions)
    for member in found.members:
        target = getattr(member, "target_assignment", None)
        has = member.member_assignment if kind == "classic" else member.assignment
        _add(answer, member, places(has), None if target is None else places(target))
    return answer


def _add(answer: GroupDetails, member: Any, has: list[str], target: list[str] | None) -> None:
    answer["members"].append(
        {
            "member": member.member_id,
            "instance": getattr(member, "instance_id", None) or getattr(member, "group_instance_id", None) or "",
            "client": member.client_id,
            "host": member.client_host,
            "epoch": getattr(member, "member_epoch", -1),
            "has": len(has),
            "target": len(has if target is None else target),
        }
    )
    coming = [] if target is None else [place for place in target if place not in has]
    for place in [*has, *coming]:
        state = "to come" if place in coming else "has" if target is None or place in target else "to give up"
        answer["assignments"].append(
            {
                "partition": place,
                "member": member.member_id,
                "client": member.client_id,
                "since_epoch": -1,
                "state": state,
            }
        )


def _partitions(assignment: Any) -> list[str]:
    return [f"{topic.topic_name}-{index}" for topic in assignment.topic_partitions for index in topic.partitions]


def _tasks(assignment: Any) -> list[str]:
    """Task ids as Kafka Streams writes them: 0_1."""
    return [
        f"{task.subtopology_id}_{index}{mark}"
        for name, mark in TASKS.items()
        for task in getattr(assignment, name)
        for index in task.partitions
    ]


def classic_places(data: bytes) -> list[str]:
    """What a classic consumer's assignment says; nothing where it is none of a consumer."""
    if len(data) < 2:
        return []
    try:
        version = min(int.from_bytes(data[:2], "big"), 3)
        found = codec(ConsumerProtocolAssignment, version).decode(data, 2)[0]
    except (MalformedError, ValueError, IndexError, LookupError):
        return []
    return [f"{topic.topic}-{index}" for topic in found.assigned_partitions for index in topic.partitions]


def with_offsets(group: str, kind: str, *, has_share_offsets: bool = True) -> Ask[GroupDetails]:
    """A group with its offsets and their lag, as any client may ask. `has_share_offsets`: the cluster tells those."""
    found = yield from describe(group, kind)
    if kind == "share":
        if found["type"] and has_share_offsets:
            found["offsets"] = yield from share_offsets(group)
        return found
    owners = {each["partition"]: each["member"] for each in found["assignments"]}
    rows, held = (yield from committed(group)), held_partitions(owners)
    names = list(dict.fromkeys([*(row.name for row in rows), *(topic for topic, _ in held)]))
    known = (yield from topic_asks.metadata(names)).topics if names else []
    # after the committed offsets: asked before, a group that keeps up would show a negative lag
    ends = yield from topic_asks.known_offsets([each for each in known if not each.error_code], topic_asks.LATEST)
    for topic in rows:
        for each in topic.partitions:
            row: OffsetRow = {
                "topic": topic.name,
                "partition": each.partition_index,
                "committed": each.committed_offset,
                "metadata": (each.metadata or "")[:MOST_METADATA],
                "committed_ms": -1,
                "member": owners.get(f"{topic.name}-{each.partition_index}", ""),
            }
            end = ends.get((topic.name, each.partition_index))
            if end is not None:
                row |= {"end": end, "lag": max(0, end - each.committed_offset)}
            held.pop((topic.name, each.partition_index), None)
            found["offsets"].append(row)
    there = {each.name for each in known if not each.error_code}
    for place, member in held.items():
        if place[0] in there:
            found["offsets"].append(not_committed(place, member, ends.get(place)))
    found["offsets"].sort(key=lambda each: (each["topic"], each["partition"]))
    return found


def held_partitions(owners: Mapping[str, str]) -> dict[tuple[str, int], str]:
    """Topic and partition -> member, from "orders-2" -> member; tasks of streams groups are left out."""
    split = ((*place.rpartition("-")[::2], member) for place, member in owners.items())
    return {(topic, int(index)): member for topic, index, member in split if topic and index.isdecimal()}


def not_committed(place: tuple[str, int], member: str, end: int | None) -> OffsetRow:
    """The row of a partition that a member has and for which nothing is committed: no offset (-1), and no lag."""
    row: OffsetRow = {
        "topic": place[0],
        "partition": place[1],
        "committed": -1,
        "metadata": "",
        "committed_ms": -1,
        "member": member,
    }
    return row if end is None else {**row, "end": end}


def dead_letters(group: str) -> Ask[DeadLetters]:
    """Where what a share group gives up goes; a release before Kafka 4.4 does not know the settings."""
    none: DeadLetters = {"queue": "", "exists": False, "copies": False, "why_not": ""}
    of_group = _values(*(yield from configs.describe(configs.GROUP, [group], [LETTERS_TO, LETTERS_COPY])))
    queue = (of_group or {}).get(LETTERS_TO, "").strip()
    if of_group is None or not queue:
        return none
    of_topic = _values(*(yield from configs.describe(configs.TOPIC, [queue], [LETTERS_TAKEN])))
    has_copies, why_not = of_group.get(LETTERS_COPY) == "true", "no such topic"
    if of_topic is not None:
        why_not = "" if of_topic.get(LETTERS_TAKEN) == "true" else "which does not take them"
    return {"queue": queue, "exists": of_topic is not None, "copies": has_copies, "why_not": why_not}


def _values(found: DescribeConfigsResult) -> dict[str, str] | None:
    """The values of a resource; None: it is not there, or not for this client."""
    return None if found.error_code else {row.name: row.value or "" for row in found.configs}


def committed(group: str) -> Ask[list[OffsetFetchResponseTopics]]:
    """What a group has committed, topics and partitions in order. Errors: AnswerError."""
    request = OffsetFetchRequest(
        group_id=group, topics=None, groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]
    )
    answer: OffsetFetchResponse = yield Question(request, FETCH_VERSION, Group(group))
    found: Any = answer.groups[0] if answer.groups else answer  # versions below 8 ask for one
    check(f"group {group:.100}", found.error_code)
    rows: list[OffsetFetchResponseTopics] = sorted(found.topics, key=lambda each: str(each.name))
    for row in rows:
        row.partitions.sort(key=lambda each: each.partition_index)
    return rows


def commit(group: str, commits: Iterable[Commit]) -> Ask[list[Refused]]:
    """Commit offsets of a group without members, all in one request. Returns those that were refused.

    Where every commit has a topic id, a topic that has another id by now is refused; clusters before Kafka 4.1 go by
    the names alone.
    """
    topics: dict[tuple[str, bytes], OffsetCommitRequestTopic] = {}
    for each in commits:
        where = each.topic, each.topic_id
        topic = topics.setdefault(where, OffsetCommitRequestTopic(name=where[0], topic_id=where[1], partitions=[]))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=each.partition,
                committed_offset=each.offset,
                committed_leader_epoch=each.leader_epoch,
                committed_metadata=each.metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=list(topics.values())
    )
    version = COMMIT_BY_NAME if any(topic_id == NO_ID for _, topic_id in topics) else COMMIT_BY_ID
    answer: OffsetCommitResponse = yield Question(request, version, Group(group))
    names = {topic_id: name for name, topic_id in topics}
    return [
        Refused(topic.name or names[topic.topic_id], each.partition_index, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code
    ]


def delete_offsets(group: str, topics: Mapping[str, Iterable[int]]) -> Ask[OffsetDeleteResponse]:
    """Delete committed offsets, topic -> partitions. The answer has an error of the group, or one of each partition."""
    wanted = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in partitions],
        )
        for topic, partitions in topics.items()
    ]
    request = OffsetDeleteRequest(group_id=group, topics=wanted)
    answer: OffsetDeleteResponse = yield Question(request, DELETE_OFFSETS_VERSION, Group(group))
    return answer


def delete(group: str) -> Ask[DeletableGroupResult]:
    """Delete a group without members, with its offsets."""
    request = DeleteGroupsRequest(groups_names=[group])
    answer: DeleteGroupsResponse = yield Question(request, DELETE_VERSION, Group(group))
    return answer.results[0]


def remove_member(group: str, kind: str, member: str, instance: str, why: str) -> Ask[None]:
    """Let a member leave, as if it had said so itself. Errors: AnswerError."""
    if kind == "classic":
        leaving = [MemberIdentity(member_id=member, reason=why)]
        answer = yield Question(LeaveGroupRequest(group_id=group, members=leaving), LEAVE_VERSION, Group(group))
        check(f"group {group:.100}", answer.error_code or answer.members[0].error_code)
        return
    request, version = HEARTBEATS[kind]
    words = {"group_id": group, "member_id": member, "member_epoch": LEAVING_EPOCH}
    if kind != "share" and instance:
        words["instance_id"] = instance
    answer = yield Question(request(**words), version, Group(group))
    check(f"group {group:.100}", answer.error_code)


def share_offsets(group: str) -> Ask[list[OffsetRow]]:
    """The start offsets of a share group, with their lag. Errors: AnswerError."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[asked])
    answer: DescribeShareGroupOffsetsResponse = yield Question(request, SHARE_VERSION, Group(group))
    (found,) = answer.groups
    check(f"group {group:.100}", found.error_code, found.error_message)
    rows = [(topic.topic_name, each.partition_index, each) for topic in found.topics for each in topic.partitions]
    offsets: list[OffsetRow] = []
    for name, index, each in sorted(rows, key=lambda row: row[:2]):
        row: OffsetRow = {
            "topic": name,
            "partition": index,
            "committed": each.start_offset,
            "metadata": "",
            "committed_ms": -1,
            "member": "",
        }
        if each.lag >= 0:
            row |= {"end": each.start_offset + each.lag, "lag": each.lag}
        offsets.append(row)
    return offsets


def move_share_group(group: str, starts: Mapping[PartitionKey, int]) -> Ask[None]:
    """Let a share group without members start at these offsets. Errors: AnswerError."""
    topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
    for (name, index), offset in starts.items():
        topic = topics.setdefault(name, AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[]))
        topic.partitions.append(AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset))
    request = AlterShareGroupOffsetsRequest(group_id=group, topics=list(topics.values()))
    answer: AlterShareGroupOffsetsResponse = yield Question(request, ALTER_SHARE_VERSION, Group(group))
    check(f"group {group:.100}", answer.error_code, answer.error_message)
    for found in answer.responses:
        for each in found.partitions:
            what = f"group {group:.100}: {found.topic_name}-{each.partition_index}"
            check(what, each.error_code, each.error_message)
