"""All API keys, and where the messages of those we know are declared; nothing is imported until it is asked for."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import ModuleType

    from protocol.declare import Message


class ApiKey(IntEnum):
    """Every key of Kafka 4.3.1, served or not."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


NEVER: Final = 1 << 15  # "flexible since" of an API that never was

# key: (module under protocol.messages, name of the API, first flexible version)
_DECLARED: Final[dict[int, tuple[str, str, int]]] = {
    0: ("produce", "Produce", 9),
    1: ("fetch", "Fetch", 12),
    2: ("fetch", "ListOffsets", 6),
    3: ("cluster", "Metadata", 9),
    8: ("offsets", "OffsetCommit", 8),
    9: ("offsets", "OffsetFetch", 6),
    10: ("cluster", "FindCoordinator", 3),
    11: ("classic_group", "JoinGroup", 6),
    12: ("classic_group", "Heartbeat", 4),
    13: ("classic_group", "LeaveGroup", 4),
    14: ("classic_group", "SyncGroup", 4),
    15: ("group_admin", "DescribeGroups", 5),
    16: ("group_admin", "ListGroups", 3),
    17: ("sasl", "SaslHandshake", NEVER),
    18: ("cluster", "ApiVersions", 3),
    19: ("topics", "CreateTopics", 5),
    20: ("topics", "DeleteTopics", 4),
    21: ("topics", "DeleteRecords", 2),
    22: ("transactions", "InitProducerId", 2),
    23: ("fetch", "OffsetForLeaderEpoch", 4),
    24: ("transactions", "AddPartitionsToTxn", 3),
    25: ("transactions", "AddOffsetsToTxn", 3),
    26: ("transactions", "EndTxn", 3),
    27: ("transactions", "WriteTxnMarkers", 1),
    28: ("transactions", "TxnOffsetCommit", 3),
    32: ("configs", "DescribeConfigs", 4),
    33: ("configs", "AlterConfigs", 2),
    35: ("cluster", "DescribeLogDirs", 2),
    36: ("sasl", "SaslAuthenticate", 2),
    37: ("topics", "CreatePartitions", 2),
    42: ("group_admin", "DeleteGroups", 2),
    43: ("reassign", "ElectLeaders", 2),
    44: ("configs", "IncrementalAlterConfigs", 1),
    45: ("reassign", "AlterPartitionReassignments", 0),
    46: ("reassign", "ListPartitionReassignments", 0),
    47: ("offsets", "OffsetDelete", NEVER),
    48: ("quotas", "DescribeClientQuotas", 1),
    49: ("quotas", "AlterClientQuotas", 1),
    50: ("scram", "DescribeUserScramCredentials", 0),
    51: ("scram", "AlterUserScramCredentials", 0),
    55: ("quorum", "DescribeQuorum", 0),
    57: ("cluster", "UpdateFeatures", 0),
    60: ("cluster", "DescribeCluster", 0),
    61: ("transaction_admin", "DescribeProducers", 0),
    65: ("transaction_admin", "DescribeTransactions", 0),
    66: ("transaction_admin", "ListTransactions", 0),
    68: ("consumer_group", "ConsumerGroupHeartbeat", 0),
    69: ("consumer_group", "ConsumerGroupDescribe", 0),
    74: ("configs", "ListConfigResources", 0),
    75: ("cluster", "DescribeTopicPartitions", 0),
    88: ("streams_group", "StreamsGroupHeartbeat", 0),
    89: ("streams_group", "StreamsGroupDescribe", 0),
}

_classes: dict[str, type[Message]] = {}


def is_declared(api_key: int) -> bool:
    """Whether there are messages for this key."""
    return api_key in _DECLARED


def flexible_since(api_key: int) -> int:
    """The first version whose headers and bodies are flexible; NEVER for keys without messages."""
    declared = _DECLARED.get(api_key)
    return declared[2] if declared else NEVER


def family(api_key: int) -> ModuleType:
    """The module that declares an API's messages and its error_response."""
    return import_module(f"protocol.messages.{_DECLARED[api_key][0]}")


def _declared_class(api_key: int, suffix: str) -> type[Message]:
    name = _DECLARED[api_key][1] + suffix
    found = _classes.get(name)
    if found is None:
        found = _classes[name] = getattr(family(api_key), name)
    return found


def request_class(api_key: int) -> type[Message]:
    """The request of an API; KeyError if it has no messages here."""
    return _declared_class(api_key, "Request")


def response_class(api_key: int) -> type[Message]:
    """The response of an API; KeyError if it has no messages here."""
    return _declared_class(api_key, "Response")


def message_class(name: str) -> type[Message]:
    """A request, response or record by its name."""
    for api_key, (_, api, _) in _DECLARED.items():
        if name in (api + "Request", api + "Response"):
            return _declared_class(api_key, name[len(api) :])
    for module_name in (
        "coordinator_records",
        "streams_group_records",
        "metadata_records",
        "consumer_protocol",
    ):
        module: Any = import_module(f"protocol.messages.{module_name}")
        if hasattr(module, name):
            return module.__dict__[name]  # type: ignore[no-any-return]  # a message by its own name
    raise KeyError(name)
