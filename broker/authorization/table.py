"""The table of rules: for each API what it needs, and the guard that asks before a handler.

An API without a line is refused, so that a new one is not open to every client by oversight. One that needs nothing, or
whose handler asks, has a line that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from broker.authorization import rules_admin as admin
from broker.authorization import rules_groups as groups
from broker.authorization import rules_records as records
from broker.authorization import rules_share as share
from broker.authorization import rules_transactions as transactions
from broker.authorization.access import Access
from broker.cluster.acls import (
    ALTER,
    ALTER_CONFIGS,
    DESCRIBE,
    DESCRIBE_CONFIGS,
)
from protocol.api import ApiKey, api_label
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.authorization.authorizer import Authorizer
    from broker.authorization.split import Merge
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata


def nothing(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """It needs nothing: a client sends it before it is authenticated."""


def in_handler(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """Its handler asks, by `Context.access`: what it needs depends on what it finds."""


RULES: Final[dict[int, Callable[[Access, Any, Any, Any], Any]]] = {
    ApiKey.API_VERSIONS: nothing,
    ApiKey.SASL_HANDSHAKE: nothing,
    ApiKey.SASL_AUTHENTICATE: nothing,
    ApiKey.CREATE_DELEGATION_TOKEN: in_handler,
    ApiKey.RENEW_DELEGATION_TOKEN: in_handler,
    ApiKey.EXPIRE_DELEGATION_TOKEN: in_handler,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: in_handler,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: in_handler,
    ApiKey.FETCH: in_handler,
    ApiKey.PRODUCE: records.produce,
    ApiKey.LIST_OFFSETS: records.list_offsets,
    ApiKey.METADATA: admin.metadata,
    ApiKey.OFFSET_COMMIT: groups.offset_commit,
    ApiKey.OFFSET_FETCH: groups.offset_fetch,
    ApiKey.FIND_COORDINATOR: groups.find_coordinator,
    ApiKey.JOIN_GROUP: groups.member,
    ApiKey.HEARTBEAT: groups.member,
    ApiKey.LEAVE_GROUP: groups.member,
    ApiKey.SYNC_GROUP: groups.member,
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.CREATE_TOPICS: admin.create_topics,
    ApiKey.DELETE_TOPICS: admin.delete_topics,
    ApiKey.DELETE_RECORDS: records.delete_records,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: records.offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.WRITE_TXN_MARKERS: transactions.write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: admin.cluster(DESCRIBE),
    ApiKey.CREATE_ACLS: admin.cluster(ALTER),
    ApiKey.DELETE_ACLS: admin.cluster(ALTER),
    ApiKey.DESCRIBE_CONFIGS: admin.describe_configs,
    ApiKey.ALTER_CONFIGS: admin.alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: admin.cluster(ALTER),
    ApiKey.DESCRIBE_LOG_DIRS: admin.cluster(DESCRIBE),
    ApiKey.CREATE_PARTITIONS: admin.create_partitions,
    ApiKey.DELETE_GROUPS: groups.delete_groups,
    ApiKey.ELECT_LEADERS: admin.cluster(ALTER),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: admin.alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: admin.cluster(ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: admin.cluster(DESCRIBE),
    ApiKey.OFFSET_DELETE: groups.offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: admin.cluster(DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: admin.cluster(ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: admin.cluster(DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: admin.cluster(ALTER),
    ApiKey.DESCRIBE_QUORUM: admin.cluster(DESCRIBE),
    ApiKey.UPDATE_FEATURES: admin.cluster(ALTER),
    ApiKey.UNREGISTER_CONTROLLER: admin.cluster(ALTER),
    ApiKey.DESCRIBE_CLUSTER: admin.describe_cluster,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.consumer_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: groups.describe_modern_groups,
    ApiKey.SHARE_GROUP_HEARTBEAT: groups.heartbeat,
    ApiKey.SHARE_GROUP_DESCRIBE: groups.describe_modern_groups,
    ApiKey.SHARE_FETCH: share.share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: share.share_acknowledge,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: share.describe_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: share.alter_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: share.delete_offsets,
    ApiKey.LIST_CONFIG_RESOURCES: admin.cluster(DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_PRODUCERS: records.describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
    ApiKey.STREAMS_GROUP_HEARTBEAT: groups.streams_heartbeat,
    ApiKey.STREAMS_GROUP_DESCRIBE: groups.describe_modern_groups,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: groups.member,
}


class Guard:
    """Asks before handlers. What was allowed may be kept for its repeats, until the metadata changes, ACLs too."""

    def __init__(self, authorizer: Authorizer, metadata: Callable[[], ClusterMetadata]) -> None:
        self.authorizer = authorizer
        self._metadata = metadata

    def check(self, ctx: Context, request: Any) -> Merge | None:
        """Take out of a request what is not allowed. Returns what puts the refusals into the response.

        Errors: KafkaError: all of it is refused. Answered: this is the response.
        """
        ctx.access = access = Access(self.authorizer, ctx)
        rule = RULES.get(ctx.api_key)
        if rule is None:
            why = f"{api_label(ctx.api_key)} has no rule of authorization: it is refused to everybody"
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, why)
        merge: Merge | None = rule(access, self._metadata(), ctx, request)
        return merge
