"""Asks a cluster about transactions: whose they are, what they touch, and whose offsets go with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from momus.client.kafka_client import Row
from momus.client.kafka_client import _check as check
from momus.client.kafka_client import _code_name as code_name
from momus.client.offset_client import OffsetClient
from protocol.record_batch import iter_records

TRANSACTIONS_TOPIC = "__transaction_state"
_TRANSACTION = 1  # a kind of coordinator


class TransactionClient(OffsetClient):
    """A client that knows transactions."""

    def transactions(self) -> list[Row]:
        """Every transactional id of every coordinator, by name."""
        from protocol.messages.transaction_admin import ListTransactionsRequest

        self.cluster()
        rows = []
        for node_id in self._nodes:
            answer = self._call(node_id, ListTransactionsRequest())
            check("transactions", answer.error_code)
            rows += [
                {
                    "transactional_id": each.transactional_id,
                    "state": each.transaction_state,
                    "producer_id": each.producer_id,
                    "coordinator": node_id,
                }
                for each in answer.transaction_states
            ]
        return sorted(rows, key=lambda row: str(row["transactional_id"]))

    def describe_transaction(self, transactional_id: str) -> Row:
        """State, partitions and groups of one transactional id; `error` says why there are none."""
        from protocol.messages.transaction_admin import DescribeTransactionsRequest

        coordinator = self._coordinator(transactional_id, _TRANSACTION)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        found = self._call(coordinator, request).transaction_states[0]
        if found.error_code:
            return {"transactional_id": transactional_id, "error": code_name(found.error_code)}
        return {
            "transactional_id": transactional_id,
            "error": None,
            "state": found.transaction_state,
            "producer_id": found.producer_id,
            "producer_epoch": found.producer_epoch,
            "timeout_ms": found.transaction_timeout_ms,
            "start_ms": None if found.transaction_start_time_ms < 0 else found.transaction_start_time_ms,
            "coordinator": coordinator,
            "partitions": [f"{each.topic}-{index}" for each in found.topics for index in sorted(each.partitions)],
            "groups": self._groups_of(transactional_id),
        }

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
                "member_id": value.member_id or None,
                "instance_id": value.group_instance_id,
                "client_id": value.client_id,
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
