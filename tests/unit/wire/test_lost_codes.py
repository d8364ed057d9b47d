"""What a request is answered whose effects were thrown away with a failed write."""

from __future__ import annotations

import pytest

from broker.handlers import make_routes
from broker.wire.errors import lost_code
from protocol.api import ApiKey, api_name
from protocol.errors import ErrorCode

COORDINATED = [
    "OffsetCommit",
    "OffsetFetch",
    "OffsetDelete",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "ConsumerGroupHeartbeat",
    "StreamsGroupHeartbeat",
    "DescribeGroups",
    "ConsumerGroupDescribe",
    "StreamsGroupDescribe",
    "ShareGroupHeartbeat",
    "ShareGroupDescribe",
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
    "DeleteGroups",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
    "DescribeTransactions",
]


@pytest.mark.parametrize("key", [route.api_key for route in make_routes()], ids=api_name)
def test_only_requests_to_a_coordinator_are_told_to_look_it_up_again(key):
    assert (lost_code(key) == ErrorCode.NOT_COORDINATOR) is (api_name(key) in COORDINATED)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (ApiKey.LIST_TRANSACTIONS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ApiKey.LIST_GROUPS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ApiKey.DESCRIBE_PRODUCERS, ErrorCode.KAFKA_STORAGE_ERROR),
        (ApiKey.WRITE_TXN_MARKERS, ErrorCode.KAFKA_STORAGE_ERROR),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, ErrorCode.LEADER_NOT_AVAILABLE),
        (ApiKey.DESCRIBE_CONFIGS, ErrorCode.REQUEST_TIMED_OUT),
        (ApiKey.DESCRIBE_CLUSTER, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_requests_to_others_are_told_what_kafka_tells_them(key, code):
    assert lost_code(key) == code
