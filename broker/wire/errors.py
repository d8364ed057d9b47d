"""The one place where an error becomes a reply. Codes that an old version lacks are replaced by older ones."""

from __future__ import annotations

import importlib
from typing import Any

from protocol.api import ApiKey
from protocol.errors import ErrorCode

# (api, code) -> (first version with the code, the code for older ones)
_OLDER: dict[tuple[int, int], tuple[int, ErrorCode]] = {
    (ApiKey.PRODUCE, ErrorCode.KAFKA_STORAGE_ERROR): (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ApiKey.FETCH, ErrorCode.KAFKA_STORAGE_ERROR): (6, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.PRODUCER_FENCED): (4, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.PRODUCER_FENCED): (2, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.ADD_OFFSETS_TO_TXN, ErrorCode.PRODUCER_FENCED): (2, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.END_TXN, ErrorCode.PRODUCER_FENCED): (2, ErrorCode.INVALID_PRODUCER_EPOCH),
}


def error_response(request: Any, api_key: int, api_version: int, code: ErrorCode, message: str | None = None) -> Any:
    """The response that refuses a whole request.

    Source: Kafka's getErrorResponse of each request; the codes for old versions from KafkaApis.
    """
    if api_key == ApiKey.HEARTBEAT and code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.NONE  # or a member would leave its group because the coordinator has just started
    older = _OLDER.get((api_key, code))
    if older is not None and api_version < older[0]:
        code = older[1]
    family = importlib.import_module(type(request).__module__)
    return family.error_response(request, api_version, code, message)


# the answer to a request whose effects were thrown away with a failed write: clients retry all of these
_LOST: dict[int, ErrorCode] = {
    ApiKey.PRODUCE: ErrorCode.KAFKA_STORAGE_ERROR,
    ApiKey.FETCH: ErrorCode.KAFKA_STORAGE_ERROR,
    ApiKey.LIST_OFFSETS: ErrorCode.KAFKA_STORAGE_ERROR,
    ApiKey.DELETE_RECORDS: ErrorCode.KAFKA_STORAGE_ERROR,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ErrorCode.KAFKA_STORAGE_ERROR,
    ApiKey.METADATA: ErrorCode.LEADER_NOT_AVAILABLE,
    ApiKey.FIND_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ApiKey.INIT_PRODUCER_ID: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ApiKey.CREATE_TOPICS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.DELETE_TOPICS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.CREATE_PARTITIONS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.ALTER_CONFIGS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.UPDATE_FEATURES: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.ELECT_LEADERS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.DESCRIBE_QUORUM: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.ALTER_CLIENT_QUOTAS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ErrorCode.REQUEST_TIMED_OUT,
}


def lost_code(api_key: int) -> ErrorCode:
    """The retriable code for a request whose own write failed, or that had read a write which failed."""
    return _LOST.get(api_key, ErrorCode.NOT_COORDINATOR)
