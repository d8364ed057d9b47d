"""Waits for what a broker does after its answer, so that the next step meets the same state on both.

Kafka makes topics, changes configs and ends transactions behind its answers. Each wait asks until it is done, for a
limited time: what never comes is a difference that the next steps show.
"""

from __future__ import annotations

import time

from differential.compare import is_answer
from differential.learn import learn_topic
from differential.links import LinkError
from differential.plain import Values
from differential.side import Sent, Side

TOPIC_LIMIT_S = 5.0
TRANSACTION_LIMIT_S = 3.0
PAUSE_S = 0.002
ENDS_TRANSACTIONS = {"EndTxn", "InitProducerId"}
# Milliseconds after which a change that cannot be asked for has arrived everywhere
LATER_MS = {
    "AlterConfigs": 40,
    "IncrementalAlterConfigs": 40,
    "UpdateFeatures": 40,
    "AlterClientQuotas": 40,
    "AlterUserScramCredentials": 40,
    "CreatePartitions": 30,
    "DeleteTopics": 60,
    "WriteTxnMarkers": 10,
}
REGEX_MS = 60  # Kafka resolves a regular expression beside the heartbeat
STREAMS_TOPICS_MS = 50
CREATING_TOPICS = 3  # status of a streams group: internal topics are missing


class Settler:
    """Knows what a case has made, to wait for it and to remove it at the end."""

    def __init__(self, sides: list[Side]) -> None:
        self.sides = sides
        self.topics: set[str] = set()
        self.transactions: set[str] = set()

    def after(self, step: Values, sent: list[Sent], answers: list[Values], raw: list[Values]) -> int:
        """Wait for the effects of one step. The milliseconds that the caller still has to let pass."""
        if not all(is_answer(answer) for answer in answers):
            return int(step.get("settle", 0))
        api, body = step["api"], step.get("b", {})
        wait_ms = LATER_MS.get(api, 0)
        if api in ENDS_TRANSACTIONS:
            for side, each in zip(self.sides, sent, strict=True):
                if each.body.get("TransactionalId") and side.is_connected:
                    self._transaction_over(side, each.body["TransactionalId"])
        elif api in ("CreateTopics", "CreatePartitions", "DeleteTopics"):
            self._topics(api, body, raw)
        elif api == "Metadata" and step.get("creates"):
            for side in self.sides:
                for name in step["creates"] if side.is_connected else ():
                    self.topics.add(side.symbols.name(name))
                    self.topic_up(side, side.symbols.name(name), 1.5)
        elif api == "ConsumerGroupHeartbeat" and body.get("SubscribedTopicRegex"):
            wait_ms = REGEX_MS
        elif api == "StreamsGroupHeartbeat" and isinstance(body.get("Topology"), dict):
            wait_ms = self._internal_topics(body["Topology"], raw)
        return max(wait_ms, int(step.get("settle", 0)))

    def _topics(self, api: str, body: Values, raw: list[Values]) -> None:
        for side, answer in zip(self.sides, raw, strict=True):
            if not side.is_connected:
                continue
            side.router.forget_leaders()
            if api == "DeleteTopics":
                for row in answer["Responses"]:
                    if not row["ErrorCode"] and row.get("Name"):
                        self._topic_gone(side, row["Name"])
            elif not body.get("ValidateOnly"):
                for row in answer["Topics" if api == "CreateTopics" else "Results"]:
                    if not row["ErrorCode"]:
                        self.topics.add(row["Name"])
                        self.topic_up(side, row["Name"])

    def _internal_topics(self, topology: Values, raw: list[Values]) -> int:
        if not any(row["StatusCode"] == CREATING_TOPICS for answer in raw for row in answer.get("Status") or []):
            return 10
        for part in topology.get("Subtopologies") or []:
            for topics in ("RepartitionSourceTopics", "StateChangelogTopics"):
                for topic in part.get(topics) or []:
                    for side in [side for side in self.sides if side.is_connected]:
                        name = side.symbols.name(topic["Name"])
                        self.topics.add(name)
                        self.topic_up(side, name, 3.0)
        return STREAMS_TOPICS_MS

    def topic_up(self, side: Side, name: str, limit_s: float = TOPIC_LIMIT_S) -> bool:
        """Until all partitions of a topic have leaders that answer; its id is known then."""
        end = time.monotonic() + limit_s
        while True:
            row = side.ask("Metadata", 12, {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False})["Topics"][0]
            parts = row["Partitions"]
            if not row["ErrorCode"] and parts and all(each["LeaderId"] >= 0 for each in parts):
                learn_topic(name, row["TopicId"], side.environment, side.symbols)
                if all(self._leads(side, name, each) for each in parts):
                    return True
            if time.monotonic() > end:
                return False
            time.sleep(PAUSE_S)

    def _leads(self, side: Side, name: str, part: Values) -> bool:
        wanted = [{"PartitionIndex": part["PartitionIndex"], "CurrentLeaderEpoch": -1, "Timestamp": -1}]
        body = {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": wanted}]}
        answer = side.ask("ListOffsets", 7, body, (part["LeaderId"] - 1) % side.peer.nodes)
        return not any(each["ErrorCode"] for topic in answer["Topics"] for each in topic["Partitions"])

    def _topic_gone(self, side: Side, name: str) -> None:
        end = time.monotonic() + TOPIC_LIMIT_S
        while time.monotonic() < end:
            body = {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False}
            if side.ask("Metadata", 12, body)["Topics"][0]["ErrorCode"] == 3:
                return
            time.sleep(PAUSE_S)

    def _transaction_over(self, side: Side, transactional_id: str) -> None:
        self.transactions.add(transactional_id)
        end = time.monotonic() + TRANSACTION_LIMIT_S
        while time.monotonic() < end:
            rows = self._transaction(side, transactional_id)
            if not rows or not rows[0]["TransactionState"].startswith("Prepare"):
                return
            time.sleep(PAUSE_S)

    def _transaction(self, side: Side, transactional_id: str) -> list[Values]:
        node = side.router.node_for({"api": "EndTxn"}, {"TransactionalId": transactional_id})
        rows: list[Values] = side.ask("DescribeTransactions", 0, {"TransactionalIds": [transactional_id]}, node)[
            "TransactionStates"
        ]
        return rows

    def clean(self) -> None:
        """Delete the topics of the case and end its transactions, so that what it left does not slow later ones."""
        for side in [side for side in self.sides if side.is_connected]:
            made = {side.symbols.name(name) for name in side.symbols.topic_ids.values() if name.startswith("%")}
            names = sorted({name for name in self.topics if name.startswith(side.symbols.prefix)} | made)
            try:
                if names:
                    side.ask("DeleteTopics", 5, {"TopicNames": names, "TimeoutMs": 5000})
                for each in self.transactions:
                    row = self._transaction(side, each)[0]
                    if row["TransactionState"] == "Ongoing":
                        names_of_end = ("ProducerId", "ProducerEpoch")
                        body = {
                            "TransactionalId": each,
                            "Committed": False,
                            **{name: row[name] for name in names_of_end},
                        }
                        side.ask("EndTxn", 1, body, side.router.node_for({"api": "EndTxn"}, body))
            except (LinkError, OSError):
                side.router.forget()
