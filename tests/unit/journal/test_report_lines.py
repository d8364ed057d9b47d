"""A request in the report of a failed test, as the broker writes it and as the Python kit does: the same line."""

from __future__ import annotations

from typing import Any

import pytest

from broker.journal.lines import one_line
from broker.journal.message_json import as_json, shown_uuid
from broker.journal.reading import _topic_names
from broker.shell.control.calls.verifying import in_words
from momus.faults import _in_words
from momus.journal import one_line as one_line_of_the_kit
from protocol.messages.classic_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

ID = bytes(range(16))
HEAD = {"at_ms": 0, "latency_ms": 1.5, "client_id": "c", "connection": "127.0.0.1:1", "errors": []}
CASES: dict[str, tuple[Any, int, str]] = {
    "Produce": (
        ProduceRequest(
            acks=-1, topic_data=[TopicProduceData(topic_id=ID, partition_data=[PartitionProduceData(index=0)])]
        ),
        13,
        "topic=orders",
    ),
    "OffsetFetch": (
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="billing", topics=[OffsetFetchRequestTopics(topic_id=ID, partition_indexes=[0])]
                )
            ]
        ),
        10,
        "group=billing  topic=orders",
    ),
    "ConsumerGroupHeartbeat": (
        ConsumerGroupHeartbeatRequest(
            group_id="billing",
            member_id="m",
            topic_partitions=[ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=ID, partitions=[0])],
        ),
        1,
        "group=billing  topic=orders",
    ),
    "LeaveGroup": (
        LeaveGroupRequest(
            group_id="billing", members=[MemberIdentity(member_id="m-1"), MemberIdentity(member_id="m-2")]
        ),
        5,
        "group=billing  member=m-1,m-2",
    ),
}


@pytest.mark.parametrize("api", CASES)
def test_line_names_topics_that_are_asked_for_by_id_and_members(api: str):
    request, version, words = CASES[api]
    names = _topic_names(request, lambda topic_id: "orders" if topic_id == ID else "")
    entry = {**HEAD, "api": api, "version": version, "request": as_json(request, version), **names}
    assert one_line(entry) == one_line_of_the_kit(entry)
    assert words in one_line(entry)
    assert shown_uuid(ID) not in one_line(entry)


def test_request_of_the_registry_has_its_route():
    request = {"route": "RegisterSchema", "method": "POST", "path": "/subjects/orders-value/versions"}
    entry = {**HEAD, "api": "Registry", "version": 0, "request": {**request, "subject": "orders-value"}}
    line = one_line(entry)
    assert "Registry RegisterSchema POST /subjects/orders-value/versions  1.50 ms" in line
    assert line == one_line_of_the_kit(entry)


def test_fault_is_written_in_words_of_no_language():
    fault = {
        "name": "fault-1",
        "fault": "hold",
        "api": ["EndTxn", "OffsetFetch"],
        "on_call": 2,
        "group": "g",
        "hits": 0,
    }
    fault |= {"held": 0, "calls": 0, "enabled": True}
    assert in_words(fault) == _in_words(fault) == "hold api=EndTxn,OffsetFetch on_call=2 group=g enabled=true"
