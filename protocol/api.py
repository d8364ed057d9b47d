"""All API keys, and the messages that modules of protocol/messages declare for them.

A message is known once its module is imported. The name of an API is that of its key: OFFSET_COMMIT has
OffsetCommitRequest and OffsetCommitResponse. Handlers import the messages that they use, so a broker finds them among
those imported; only what is not found there makes this module import the rest.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from importlib import import_module

from protocol.declare import DECLARED, NEVER, Message


class ApiKey(IntEnum):
    """Every key of Kafka 4.4.0, served or not."""

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
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


@cache
def api_name(api_key: int) -> str:
    """The name of an API as its messages have it: "OffsetCommit". Errors: LookupError: Kafka has no such key."""
    try:
        key = ApiKey(api_key)
    except ValueError:
        raise LookupError(f"Kafka has no API {api_key}") from None
    return "".join([word.capitalize() for word in key.name.split("_")])


def api_label(api_key: int) -> str:
    """The name of an API, or the key where Kafka has no such API."""
    try:
        return api_name(api_key)
    except LookupError:
        return str(api_key)


def message_class(name: str) -> type[Message]:
    """A request, response or record by its name. Errors: LookupError: no module of protocol/messages declares it."""
    if name not in DECLARED:
        _import_messages()
    found = DECLARED.get(name)
    if found is None:
        raise LookupError(f"no module of protocol/messages declares {name}")
    return found


def _import_messages() -> None:
    from pkgutil import iter_modules  # 1 ms: serving does without it

    import protocol.messages  # with all its modules 25 ms: serving imports those that its handlers use

    for module in iter_modules(protocol.messages.__path__):
        import_module(f"protocol.messages.{module.name}")


@cache
def request_class(api_key: int) -> type[Message]:
    """The request of an API. Errors: LookupError: it is not declared."""
    return message_class(api_name(api_key) + "Request")


@cache
def response_class(api_key: int) -> type[Message]:
    """The response of an API. Errors: LookupError: it is not declared."""
    return message_class(api_name(api_key) + "Response")


def is_declared(api_key: int) -> bool:
    """Whether there are messages for this key."""
    try:
        request_class(api_key)
    except LookupError:
        return False
    return True


@cache
def flexible_since(api_key: int) -> int:
    """The first version whose headers and bodies are flexible; NEVER for keys without messages."""
    try:
        return request_class(api_key).FLEXIBLE_SINCE
    except LookupError:
        return NEVER
