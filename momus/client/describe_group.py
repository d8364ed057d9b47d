"""Describes a group of any type over the wire: its epochs, members and what they have, and its offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

TOPIC, GROUP = 2, 32  # of DescribeConfigs
DEAD_LETTERS = "errors.deadletterqueue"
Row = dict[str, object]
Call = Callable[[Any], Any]  # sends a request to the group's coordinator
Check = Callable[[str, int, str | None], None]  # raises for an error: what was asked, code, message


def describe_by_type(call: Call, check: Check, group_id: str) -> Row | None:
    """State, epochs and members of a consumer, streams or share group; None: of a classic or an unknown one.

    Shape:   type, state, group_epoch, assignment_epoch, members; of a share group also offsets, and dead_letter_queue:
             topic, copies, accepts (None: the topic is not there); None: the group has none, or its configs are hidden.
    Errors:  what `call` and `check` raise.
    """

    def ask(request: Any) -> Any:
        (group,) = call(request).groups
        check(f"group {group_id}", group.error_code, getattr(group, "error_message", None))
        return group

    kind = _kind(call, group_id)
    if kind == "share":
        return {"type": kind, **_share(ask, group_id, call)}
    describe = {"consumer": _consumer, "streams": _streams}.get(kind)
    return None if describe is None else {"type": kind, **describe(ask, group_id)}


def _kind(call: Call, group_id: str) -> str:
    from protocol.messages.group_admin import ListGroupsRequest

    for listed in call(ListGroupsRequest()).groups:
        if listed.group_id == group_id:
            return str(listed.group_type or "").lower()
    return ""


def _head(described: Any) -> Row:
    return {
        "state": described.group_state,
        "group_epoch": described.group_epoch,
        "assignment_epoch": described.assignment_epoch,
    }


def _member(member: Any, assignment: list[str], target: list[str] | None = None) -> Row:
    row: Row = {
        "member_id": member.member_id,
        "instance_id": getattr(member, "instance_id", None),
        "client_id": member.client_id,
        "host": member.client_host,
        "epoch": member.member_epoch,
        "assignment": assignment,
    }
    if target is not None:
        row["target"] = target
    return row


def _partitions(topics: Iterable[Any]) -> list[str]:
    return sorted(f"{topic.topic_name}-{index}" for topic in topics for index in topic.partitions)


def _consumer(ask: Call, group_id: str) -> Row:
    from protocol.messages.consumer_group import ConsumerGroupDescribeRequest

    described = ask(ConsumerGroupDescribeRequest(group_ids=[group_id]))
    members = [
        _member(m, _partitions(m.assignment.topic_partitions), _partitions(m.target_assignment.topic_partitions))
        for m in described.members
    ]
    return {**_head(described), "protocol": described.assignor_name, "members": members}


def _tasks(assignment: Any) -> list[str]:
    """Task ids, as Kafka Streams writes them: 0_1, and 0_2 (standby)."""
    marks = {"active_tasks": "", "standby_tasks": " (standby)", "warmup_tasks": " (warm-up)"}
    return [
        f"{task.subtopology_id}_{index}{mark}"
        for name, mark in marks.items()
        for task in getattr(assignment, name)
        for index in task.partitions
    ]


def _streams(ask: Call, group_id: str) -> Row:
    from protocol.messages.streams_group import StreamsGroupDescribeRequest

    described = ask(StreamsGroupDescribeRequest(group_ids=[group_id]))
    members = [_member(m, _tasks(m.assignment), _tasks(m.target_assignment)) for m in described.members]
    return {**_head(described), "members": members}


def _configs(call: Call, kind: int, name: str, *keys: str) -> dict[str, str] | None:
    """Values of a resource; None: it is not there, or not for this client."""
    from protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource

    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
    (found,) = call(DescribeConfigsRequest(resources=[resource])).results
    return None if found.error_code else {row.name: row.value or "" for row in found.configs}


def _dead_letter_queue(call: Call, group_id: str) -> Row | None:
    """Where what the group gives up goes. A release before 4.4 does not know the settings."""
    topic, copies = f"{DEAD_LETTERS}.topic.name", f"{DEAD_LETTERS}.copy.record.enable"
    group = _configs(call, GROUP, group_id, topic, copies) or {}
    name = group.get(topic, "").strip()
    if not name:
        return None
    accepts = _configs(call, TOPIC, name, f"{DEAD_LETTERS}.group.enable")
    return {
        "topic": name,
        "copies": group.get(copies) == "true",
        "accepts": None if accepts is None else accepts.get(f"{DEAD_LETTERS}.group.enable") == "true",
    }


def _share(ask: Call, group_id: str, call: Call) -> Row:
    from protocol.messages.share_group import ShareGroupDescribeRequest
    from protocol.messages.share_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
    )

    described = ask(ShareGroupDescribeRequest(group_ids=[group_id]))
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    offsets = ask(DescribeShareGroupOffsetsRequest(groups=[asked]))
    return {
        **_head(described),
        "protocol": described.assignor_name,
        "members": [_member(m, _partitions(m.assignment.topic_partitions)) for m in described.members],
        "dead_letter_queue": _dead_letter_queue(call, group_id),
        "offsets": [
            {
                "topic": topic.topic_name,
                "partition": p.partition_index,
                "start": None if p.start_offset < 0 else p.start_offset,
                "lag": None if p.lag < 0 else p.lag,
            }
            for topic in sorted(offsets.topics, key=lambda t: str(t.topic_name))
            for p in sorted(topic.partitions, key=lambda p: int(p.partition_index))
        ],
    }
