"""The table of shortcuts: for each API the function that serves its usual requests without messages.

What a shortcut learns is kept on the connection (`connection.learned`) and dropped there, in one place, when the
generation in `broker/turn/learned.py` changes. A new shortcut is a line here, and a line in the property test that
compares all of them with the general handlers (tests/property/test_shortcuts.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.shortcuts.fetch import FETCH, FetchShortcut
from broker.shortcuts.offset_commit import OFFSET_COMMIT, OffsetCommitShortcut
from broker.shortcuts.offset_fetch import OFFSET_FETCH, OffsetFetchShortcut
from broker.shortcuts.produce import PRODUCE, ProduceShortcut

if TYPE_CHECKING:
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.partitions.fetch_session import FetchSessions
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.connection import Shortcut
    from broker.wire.router import Router


class Shortcuts:
    """All shortcuts of one broker. `table` is by API key; those of transactions are added with the first one."""

    def __init__(
        self,
        turn: Turn,
        config: BrokerConfig,
        metadata_shard: Shard,
        groups: GroupShards,
        partitions: Partitions,
        sessions: FetchSessions,
        router: Router,
    ) -> None:
        self._turn = turn
        self._config = config
        self._metadata_shard = metadata_shard
        self._groups = groups
        self._partitions = partitions
        self._router = router
        offset_fetch = OffsetFetchShortcut(turn)
        router.keep = offset_fetch.keep
        self._produce = ProduceShortcut(turn, partitions, metadata_shard)
        self.table: dict[int, Shortcut] = {
            PRODUCE: self._produce.serve,
            FETCH: FetchShortcut(turn, config, partitions, sessions, router).serve,
            OFFSET_COMMIT: OffsetCommitShortcut(turn, config, groups, metadata_shard).serve,
            OFFSET_FETCH: offset_fetch.serve,
        }

    def add_transactions(self, transactions: TransactionCoordinator, nodes: Nodes) -> None:
        """Add the shortcuts of transactions."""
        # 10 ms: most brokers never see a transaction
        from broker.shortcuts.add_to_txn import AddToTxnShortcut
        from broker.shortcuts.end_txn import END_TXN, EndTxnShortcut
        from broker.shortcuts.transactional_produce import TransactionalProduceShortcut
        from broker.shortcuts.transactions import TransactionShortcuts
        from broker.shortcuts.txn_offset_commit import TXN_OFFSET_COMMIT, TxnOffsetCommitShortcut

        shared = TransactionShortcuts(self._turn, transactions, nodes, self._metadata_shard)
        self._produce.transactional = TransactionalProduceShortcut(shared, self._partitions).serve
        self.table[END_TXN] = EndTxnShortcut(shared, self._router).serve
        self.table[TXN_OFFSET_COMMIT] = TxnOffsetCommitShortcut(shared, self._config, self._groups).serve
        self.table.update(AddToTxnShortcut(shared).shortcuts())
