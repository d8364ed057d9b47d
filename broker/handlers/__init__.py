"""The routing table: one line for each API. ApiVersions and SUPPORTED.md are made from it.

A handler is named "module:function" and imported with the first request for it. Versions are those of Apache Kafka 4.4,
older ones where a line says why, and those in OLDER where a cluster imitates a release that has them. An API that Kafka
has and that is not served stands in ABSENT with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.wire.route import GROUP, HOT, Route
from protocol.api import ApiKey

if TYPE_CHECKING:
    from broker.config.releases import Release

# key, first and last version, handler, GROUP if it is called with the machine of the request's group, and then the
# function beside the handler that Kafka asks before it looks for the group's coordinator
_SERVED: Final[tuple[tuple[Any, ...], ...]] = (
    (ApiKey.PRODUCE, 3, 13, "produce:Produce", HOT),
    (ApiKey.FETCH, 4, 18, "fetch:Fetch", HOT),
    (ApiKey.LIST_OFFSETS, 1, 11, "list_offsets:list_offsets"),
    (ApiKey.METADATA, 0, 13, "metadata:metadata"),
    (ApiKey.OFFSET_COMMIT, 0, 10, "offset_commit:OffsetCommit", HOT),  # v0, v1: the original proposal
    (ApiKey.OFFSET_FETCH, 0, 10, "offset_fetch:OffsetFetch", HOT),  # v0: the original proposal
    (ApiKey.FIND_COORDINATOR, 0, 6, "metadata:find_coordinator"),
    (ApiKey.JOIN_GROUP, 0, 9, "classic_group:join_group", GROUP, "check_join"),
    (ApiKey.HEARTBEAT, 0, 4, "classic_group:heartbeat", GROUP),
    (ApiKey.LEAVE_GROUP, 0, 5, "classic_group:leave_group", GROUP),
    (ApiKey.SYNC_GROUP, 0, 5, "classic_group:sync_group", GROUP, "check_sync"),
    (ApiKey.DESCRIBE_GROUPS, 0, 6, "group_admin:describe_groups"),
    (ApiKey.LIST_GROUPS, 0, 5, "group_admin:list_groups"),
    (ApiKey.SASL_HANDSHAKE, 0, 1, "sasl:sasl_handshake"),
    (ApiKey.API_VERSIONS, 0, 5, "cluster:api_versions"),
    (ApiKey.CREATE_TOPICS, 2, 7, "topics:create_topics"),
    (ApiKey.DELETE_TOPICS, 1, 6, "topics:delete_topics"),
    (ApiKey.DELETE_RECORDS, 0, 2, "delete_records:delete_records"),
    (ApiKey.INIT_PRODUCER_ID, 0, 5, "transactions:init_producer_id"),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, "list_offsets:offset_for_leader_epoch"),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, "add_to_txn:AddPartitionsToTxn", HOT),
    (ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, "add_to_txn:AddOffsetsToTxn", HOT),
    (ApiKey.END_TXN, 0, 5, "end_txn:EndTxn", HOT),
    (ApiKey.WRITE_TXN_MARKERS, 1, 2, "txn_admin:write_txn_markers"),
    (ApiKey.TXN_OFFSET_COMMIT, 0, 6, "txn_offset_commit:TxnOffsetCommit", HOT),
    (ApiKey.DESCRIBE_ACLS, 1, 3, "acls:describe_acls"),
    (ApiKey.CREATE_ACLS, 1, 3, "acls:create_acls"),
    (ApiKey.DELETE_ACLS, 1, 3, "acls:delete_acls"),
    (ApiKey.DESCRIBE_CONFIGS, 1, 4, "configs:describe_configs"),
    (ApiKey.ALTER_CONFIGS, 0, 2, "configs:alter_configs"),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, "reassign:alter_replica_log_dirs"),
    (ApiKey.DESCRIBE_LOG_DIRS, 1, 5, "cluster:describe_log_dirs"),
    (ApiKey.SASL_AUTHENTICATE, 0, 2, "sasl:sasl_authenticate"),
    (ApiKey.CREATE_PARTITIONS, 0, 3, "topics:create_partitions"),
    (ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, "delegation_tokens:create_delegation_token"),
    (ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, "delegation_tokens:renew_delegation_token"),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, "delegation_tokens:expire_delegation_token"),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, "delegation_tokens:describe_delegation_token"),
    (ApiKey.DELETE_GROUPS, 0, 3, "group_admin:delete_groups"),
    (ApiKey.ELECT_LEADERS, 0, 2, "reassign:elect_leaders"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "configs:incremental_alter_configs"),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, "reassign:alter_partition_reassignments"),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "reassign:list_partition_reassignments"),
    (ApiKey.OFFSET_DELETE, 0, 0, "offset_delete:offset_delete"),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, "quotas:describe_client_quotas"),
    (ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, "quotas:alter_client_quotas"),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, "scram:describe_user_scram_credentials"),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, "scram:alter_user_scram_credentials"),
    (ApiKey.DESCRIBE_QUORUM, 0, 2, "quorum:describe_quorum"),
    (ApiKey.UPDATE_FEATURES, 0, 2, "cluster:update_features"),
    (ApiKey.DESCRIBE_CLUSTER, 0, 2, "metadata:describe_cluster"),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "consumer_group:consumer_group_heartbeat", GROUP, "check_heartbeat"),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "consumer_group:consumer_group_describe"),
    (ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, "share_group:share_group_heartbeat"),
    (ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, "share_group:share_group_describe"),
    (ApiKey.SHARE_FETCH, 1, 2, "share_fetch:ShareFetch", HOT),
    (ApiKey.SHARE_ACKNOWLEDGE, 1, 2, "share_acknowledge:share_acknowledge"),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, "share_offsets:describe_share_group_offsets"),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, "share_offsets:alter_share_group_offsets"),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, "share_offsets:delete_share_group_offsets"),
    (ApiKey.LIST_CONFIG_RESOURCES, 0, 1, "configs:list_config_resources"),
    (ApiKey.DESCRIBE_PRODUCERS, 0, 0, "describe_producers:describe_producers"),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, "txn_admin:describe_transactions"),
    (ApiKey.LIST_TRANSACTIONS, 0, 2, "txn_admin:list_transactions"),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, "metadata:describe_topic_partitions"),
    (ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 1, "streams_group:streams_group_heartbeat"),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 0, 1, "streams_group:streams_group_describe"),
    (
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
        0,
        0,
        "streams_group:streams_group_topology_description_update",
    ),
    (ApiKey.UNREGISTER_CONTROLLER, 0, 0, "quorum:unregister_controller"),
)


# the first versions of APIs that have more of them where a release is imitated that has these: message sets, and the
# ListOffsets that goes with them
OLDER: Final = {ApiKey.PRODUCE: 0, ApiKey.FETCH: 0, ApiKey.LIST_OFFSETS: 0}


def make_routes(release: Release | None = None) -> list[Route]:
    """The APIs of one broker, in the versions that an imitated release has."""
    routes = [Route(*line) for line in _SERVED]
    if release is not None:
        for route in routes:
            route.min_version = OLDER.get(ApiKey(route.api_key), route.min_version)
            route.clip(release)
    return routes


_SAME_PROCESS = "Between a broker and the share coordinator. They are one process here, and need no requests for that."
_ONE_PROCESS = "Between brokers and controllers. The virtual brokers are one process without followers or controllers."

# (keys, why they are not served); the tidy tests ask that each key of Kafka is here or has a route
ABSENT: Final[list[tuple[tuple[ApiKey, ...], str]]] = [
    (
        (
            ApiKey.LEADER_AND_ISR,
            ApiKey.STOP_REPLICA,
            ApiKey.UPDATE_METADATA,
            ApiKey.CONTROLLED_SHUTDOWN,
            ApiKey.VOTE,
            ApiKey.BEGIN_QUORUM_EPOCH,
            ApiKey.END_QUORUM_EPOCH,
            ApiKey.ALTER_PARTITION,
            ApiKey.ENVELOPE,
            ApiKey.FETCH_SNAPSHOT,
            ApiKey.BROKER_REGISTRATION,
            ApiKey.BROKER_HEARTBEAT,
            ApiKey.UNREGISTER_BROKER,
            ApiKey.ALLOCATE_PRODUCER_IDS,
            ApiKey.CONTROLLER_REGISTRATION,
            ApiKey.ASSIGN_REPLICAS_TO_DIRS,
            ApiKey.ADD_RAFT_VOTER,
            ApiKey.REMOVE_RAFT_VOTER,
            ApiKey.UPDATE_RAFT_VOTER,
        ),
        _ONE_PROCESS,
    ),
    (
        (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ),
        _SAME_PROCESS,
    ),
    (
        (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
        "Nothing here reads the metrics that clients would send.",
    ),
]
