"""What the shortcuts of transactions share: the conditions under which they serve, and topics they may learn."""

from __future__ import annotations

from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from protocol.errors import KafkaError, MalformedError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.cluster.nodes import Nodes
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.turn.turn import Turn

LEAST_BYTES: Final = 28  # a frame must be larger than this to be read without checking its end
# refused, or not of the usual shape: nothing has changed, and the general handler answers
REFUSED: Final = (KafkaError, MalformedError, StorageError, IndexError, ValueError, struct_error)


class TransactionShortcuts:
    """Shared by the shortcuts of Produce, TxnOffsetCommit, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""

    def __init__(self, turn: Turn, transactions: TransactionCoordinator, nodes: Nodes, metadata_shard: Shard) -> None:
        self.turn = turn
        self.transactions = transactions
        self._nodes = nodes
        self._metadata_shard = metadata_shard

    def is_open(self, frame_bytes: int) -> bool:
        """Whether a frame may be served: it is long enough, a write is durable at once, and there is one node."""
        return frame_bytes > LEAST_BYTES and not self.turn.fsync and self._nodes.is_one

    def settled_topic(self, name: str) -> Topic | None:
        """A topic, if it is durable. Replies about one that is not have to wait for the metadata log."""
        flush_state = self._metadata_shard.flush_state
        if flush_state.durable_offset < flush_state.log.end_offset:
            return None
        return self.transactions.metadata.topics.get(name)


def no_step_follows(durable: bool) -> None:
    """The step for a write that is durable at once: it is never called."""
    raise AssertionError("a write that is durable at once has a step behind it")
