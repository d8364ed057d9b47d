"""From a refused request to the sentence that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.refusals.groups import explain_commit, explain_member
from broker.refusals.topics import UNKNOWN, explain_topics
from broker.refusals.transactions import explain_producer
from broker.wire.error_counts import errors_in
from protocol.declare import Message
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.transactions.coordinator import TransactionCoordinator

COMMITS = ("OffsetCommitRequest", "TxnOffsetCommitRequest")
OF_GROUP = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH})
OF_MEMBER = OF_GROUP | {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.REBALANCE_IN_PROGRESS}
OF_PRODUCER = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


class Broker(Protocol):
    """The state that refuses."""

    @property
    def groups(self) -> GroupShards:
        """The shards of the group coordinator."""

    @property
    def metadata(self) -> ClusterMetadata:
        """Topics and their partitions."""

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator."""


def why(broker: Broker, request: Message, response: Message, said: str | None) -> str:
    """Why the response has errors; "" if their names say all. `said`: the handler's own words."""
    codes = {ErrorCode(code) for code in errors_in(response) if code in ErrorCode.__members__.values()}
    name = type(request).__name__
    if codes & OF_MEMBER and name in COMMITS:
        found = explain_commit(broker.groups, request)
    elif codes & OF_PRODUCER and name != "ProduceRequest":
        found = explain_producer(broker.transactions, request)
    elif codes & OF_MEMBER:
        found = explain_member(broker.groups, request)
    else:
        found = ""
    found = found or said or _message_in(response)
    return found or (explain_topics(broker.metadata, response) if codes & UNKNOWN else "")


def _message_in(message: Any) -> str:
    """The first error message in a response."""
    for each in message.FIELDS:
        value = getattr(message, each.name)
        if each.name == "error_message" and value:
            return str(value)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Message) and (found := _message_in(inner)):
                return found
    return ""
