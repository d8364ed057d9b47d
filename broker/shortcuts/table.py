"""The table of shortcuts: for each API the function that serves its usual requests without messages.

What a shortcut learns is kept on the connection (`connection.learned`) and dropped there, in one place, when the
generation in `broker/turn/learned.py` changes. A new shortcut is a line here, and a line in the property test that
compares all of them with the general handlers (tests/property/test_shortcuts.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.router import Router
    from broker.wire.service import Shortcut


class Shortcuts:
    """All shortcuts of one broker.

    `table` is by API key; those of transactions are added when the first one is asked for.
    """

    def __init__(
        self,
        turn: Turn,
        config: BrokerConfig,
        metadata_shard: Shard,
        groups: GroupShards,
        partitions: Partitions,
        router: Router,
    ) -> None:
        self._turn = turn
        self._config = config
        self._metadata_shard = metadata_shard
        self._groups = groups
        self._partitions = partitions
        self._router = router
        self.table: dict[int, Shortcut] = {}
        self._clip()

    def add_transactions(self, transactions: TransactionCoordinator, nodes: Nodes) -> None:
        """Add the shortcuts of transactions."""
        # 10 ms: most brokers never see a transaction
        from broker.shortcuts.add_to_txn import AddToTxnShortcut
        from broker.shortcuts.end_txn import END_TXN, EndTxnShortcut
        from broker.shortcuts.transactions import TransactionShortcuts
        from broker.shortcuts.txn_offset_commit import TXN_OFFSET_COMMIT, TxnOffsetCommitShortcut

        shared = TransactionShortcuts(self._turn, transactions, nodes, self._metadata_shard)
        self.table[END_TXN] = EndTxnShortcut(shared, self._router).serve
        self.table[TXN_OFFSET_COMMIT] = TxnOffsetCommitShortcut(shared, self._config, self._groups).serve
        self.table.update(AddToTxnShortcut(shared).shortcuts())
        self._clip()

    def _clip(self) -> None:
        """Leave versions that an imitated release does not know to the router, which refuses them."""
        if self._config.release is None:
            return
        for api_key, shortcut in self.table.items():
            if not isinstance(shortcut, _Clipped):
                route = self._router.routes[api_key]
                self.table[api_key] = _Clipped(shortcut, route.min_version, route.max_version)


class _Clipped:
    """A shortcut that takes some versions only."""

    __slots__ = ("_newest", "_oldest", "_serve")

    def __init__(self, serve: Shortcut, oldest: int, newest: int) -> None:
        self._serve = serve
        self._oldest = oldest
        self._newest = newest

    def __call__(self, connection: Connection, data: bytes, position: int, stop: int, number: int) -> bytes | None:
        version = int.from_bytes(data[position + 6 : position + 8], "big")
        return (
            self._serve(connection, data, position, stop, number) if self._oldest <= version <= self._newest else None
        )
