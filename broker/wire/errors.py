"""The one place where an error becomes a reply, and the table of codes that an old version lacks.

A row of the table acts on every response that leaves, whoever made it: a handler, a guard, an injected fault, a failed
write. `error_counts.settle_errors` replaces the codes, and counts what the client is sent.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from protocol.api import ApiKey
from protocol.errors import ErrorCode


class Answered(Exception):  # noqa: N818  # it is no error
    """A guard answers a request, and its handler is not asked."""

    def __init__(self, response: Any) -> None:
        self.response = response


# API -> code -> first version with the code, and the code for older ones. Source: KafkaApis.
OLDER: Final[dict[int, dict[int, tuple[int, ErrorCode]]]] = {}
for _api, _code, _since, _older in (
    (ApiKey.PRODUCE, ErrorCode.KAFKA_STORAGE_ERROR, 4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ApiKey.FETCH, ErrorCode.KAFKA_STORAGE_ERROR, 6, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.PRODUCER_FENCED, 4, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.PRODUCER_FENCED, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.ADD_OFFSETS_TO_TXN, ErrorCode.PRODUCER_FENCED, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.END_TXN, ErrorCode.PRODUCER_FENCED, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
    # older producers may crash on it
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 2, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.INVALID_TXN_STATE),
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.STALE_MEMBER_EPOCH, 6, ErrorCode.ILLEGAL_GENERATION),
):
    OLDER.setdefault(_api, {})[_code] = _since, _older


def error_response(request: Any, api_key: int, api_version: int, code: ErrorCode, message: str | None = None) -> Any:
    """The response that refuses a whole request.

    Source: Kafka's getErrorResponse of each request.
    """
    if api_key == ApiKey.HEARTBEAT and code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.NONE  # or a member would leave its group because the coordinator has just started
    family = importlib.import_module(type(request).__module__)
    return family.error_response(request, api_version, code, message)


_MODERN_HEARTBEATS: Final = (
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
)
_SYNC_WITH_PROTOCOL: Final = 5  # the first SyncGroup that must name the protocol


def empty_group_id_code(request: Any, api_key: int, api_version: int) -> ErrorCode:
    """The code for a request about a group that has no name."""
    if api_key in _MODERN_HEARTBEATS:
        return ErrorCode.INVALID_REQUEST
    names_protocol = api_key == ApiKey.SYNC_GROUP and api_version >= _SYNC_WITH_PROTOCOL
    if names_protocol and (request.protocol_type is None or request.protocol_name is None):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # Kafka looks at these first
    return ErrorCode.INVALID_GROUP_ID


# The answer to a request whose effects were thrown away with a failed write, or that had read what was. Clients retry
# all of these. Kafka's: the group and transaction coordinators give up, a log directory fails, the controller's write
# takes too long. Admin clients retry lists of groups and transactions on COORDINATOR_NOT_AVAILABLE only.
_LOST: Final[dict[int, ErrorCode]] = {
    **dict.fromkeys(
        (
            ApiKey.OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
            ApiKey.OFFSET_DELETE,
            ApiKey.JOIN_GROUP,
            ApiKey.SYNC_GROUP,
            ApiKey.HEARTBEAT,
            ApiKey.LEAVE_GROUP,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ApiKey.STREAMS_GROUP_DESCRIBE,
            ApiKey.DELETE_GROUPS,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.END_TXN,
            ApiKey.DESCRIBE_TRANSACTIONS,
        ),
        ErrorCode.NOT_COORDINATOR,
    ),
    **dict.fromkeys(
        (ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID, ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS),
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
    **dict.fromkeys(
        (
            ApiKey.PRODUCE,
            ApiKey.FETCH,
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.LIST_OFFSETS,
            ApiKey.DELETE_RECORDS,
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            ApiKey.WRITE_TXN_MARKERS,
            ApiKey.DESCRIBE_PRODUCERS,
            ApiKey.DESCRIBE_LOG_DIRS,
            ApiKey.ALTER_REPLICA_LOG_DIRS,
        ),
        ErrorCode.KAFKA_STORAGE_ERROR,
    ),
    ApiKey.METADATA: ErrorCode.LEADER_NOT_AVAILABLE,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ErrorCode.LEADER_NOT_AVAILABLE,
}


def lost_code(api_key: int) -> ErrorCode:
    """The retriable code for a request whose own write failed, or that had read a write which failed."""
    return _LOST.get(api_key, ErrorCode.REQUEST_TIMED_OUT)
