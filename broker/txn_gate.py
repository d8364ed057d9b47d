"""Before transactional records are appended: is the partition part of its transaction, or can it be made so?

Produce from version 12 on adds the partition by itself (KIP-890); what older producers send is only verified. A
partition that has the transaction open already need not be asked about: whoever calls leaves it out.

| what the coordinator says              | Produce <= 10      | 11                 | 12 and above       |
|----------------------------------------|--------------------|--------------------|--------------------|
| PRODUCER_FENCED                        | INVALID_PRODUCER_EPOCH in every version                      |
| TRANSACTION_ABORTABLE (was not added)  | INVALID_TXN_STATE  | TRANSACTION_ABORTABLE                   |
| CONCURRENT_TRANSACTIONS                | NOT_ENOUGH_REPLICAS                     | as it is           |
| coordinator loading, moved, gone       | NOT_ENOUGH_REPLICAS in every version                         |
| anything else                          | as it is                                                     |

Source: Kafka's AddPartitionsToTxnManager, ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.coordinator.result import Context

TopicIndex: TypeAlias = tuple[str, int]
Refused: TypeAlias = dict[TopicIndex, ErrorCode]  # the partitions that must not be written to; empty: go on


def before_produce(
    ctx: Context,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Sequence[TopicIndex],
    continue_: Callable[[Refused], None],
) -> Refused | None:
    """Whether transactional records may be appended: an answer at once, or None and `continue_` later.

    Answers at once when nothing had to be written. Otherwise the record that names the partitions is in the
    coordinator's log but not durable yet: None, and `continue_(refused)` is called exactly once when it is, or when it
    was thrown away (then all are refused). That may happen within the same turn. Calls for one transactional id
    continue in the order they came.
    """
    raise NotImplementedError
