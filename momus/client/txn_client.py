"""Asks a cluster about transactions: whose they are, what they touch, and whose offsets go with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from broker.asks import transactions
from broker.asks.ask import TxnId, label
from momus.client.kafka_client import Client, RequestFailedError, Row
from protocol.record_batch import iter_records

TRANSACTIONS_TOPIC = "__transaction_state"


class TransactionClient(Client):
    """A client that knows transactions."""

    def transactions(self) -> list[Row]:
        """Every transactional id of every coordinator, by name."""
        return [each._asdict() for each in self.ask(transactions.listed())]

    def describe_transaction(self, name: str) -> Row:
        """State, partitions and groups of one transactional id; `error` says why there are none."""
        try:
            found = self.ask(transactions.describe([name], TxnId(name)))[name]
        except RequestFailedError as error:
            return {"transactional_id": name, "error": label(error.code)}
        if found["state"] == transactions.DEAD:
            return {"transactional_id": name, "error": "TRANSACTIONAL_ID_NOT_FOUND"}
        row: Row = {**found, "start_ms": None if found["start_ms"] < 0 else found["start_ms"]}
        coordinator = self._run(self._known.find(TxnId(name)))
        return {**row, "error": None, "coordinator": coordinator, "groups": self._groups_of(name)}

    def _groups_of(self, transactional_id: str) -> list[Row]:
        """Whose offsets were part of its last transactions, each group's last: from the coordinator's log."""
        from protocol.codegen import codec
        from protocol.messages.own_records import TransactionGroupKey, TransactionGroupValue

        kind = TransactionGroupKey.API_KEY.to_bytes(2, "big")
        found: dict[str, Any] = {}
        for key, value in self._log_of(transactional_id):
            if key[:2] != kind:
                continue
            named, _ = codec(TransactionGroupKey, 0).decode(key, 2)
            if named.transactional_id != transactional_id:
                continue
            found.pop(named.group_id, None)
            if value is not None:
                found[named.group_id] = codec(TransactionGroupValue, 0).decode(value, 2)[0]
        return [
            {
                "group": group_id,
                "generation": value.generation_id_or_member_epoch,
                "member": value.member_id or None,
                "instance": value.group_instance_id,
                "client": value.client_id,
                "producer_id": value.producer_id,
                "producer_epoch": value.producer_epoch,
                "partitions": [f"{each.topic}-{index}" for each in value.topics for index in each.partitions],
            }
            for group_id, value in sorted(found.items())
        ]

    def _log_of(self, transactional_id: str) -> Iterator[tuple[bytes, bytes | None]]:
        """Every key and value in the partition of `__transaction_state` that holds an id."""
        from broker.base.placement import shard_index

        leaders = self.leaders(TRANSACTIONS_TOPIC)
        index = shard_index(transactional_id, len(leaders))
        for _, batch in self.batches(TRANSACTIONS_TOPIC, index, leaders[index]):
            for record in iter_records(batch):
                if record.key is not None:
                    yield record.key, record.value
