"""What the table of clients is made of: error codes and faults, the APIs that they are set on, the clients.

An error code is set only on the APIs whose answers may hold it in Apache Kafka (the fourth of Kafka's own lists: the
comments over each response's JSON, and KafkaApis); elsewhere the table has a dash.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CLIENTS = ("kafka-python", "aiokafka", "confluent-kafka", "java", "franz-go", "sarama", "kafkajs")
APIS = ("Metadata", "FindCoordinator", "Produce", "Fetch", "OffsetCommit", "Heartbeat")
OF_PRODUCER = ("Metadata", "Produce")  # the others are met by a member of a group
AT_THE_START = ("Metadata", "FindCoordinator")  # the fault is there before the client is

ERRORS: dict[str, tuple[str, ...]] = {
    "UNKNOWN_TOPIC_OR_PARTITION": ("Metadata", "Produce", "Fetch", "OffsetCommit"),
    "LEADER_NOT_AVAILABLE": ("Metadata",),
    "NOT_LEADER_OR_FOLLOWER": ("Produce", "Fetch"),
    "FENCED_LEADER_EPOCH": ("Fetch",),
    "KAFKA_STORAGE_ERROR": ("Produce", "Fetch"),
    "REQUEST_TIMED_OUT": ("Produce",),
    "NOT_ENOUGH_REPLICAS": ("Produce",),
    "COORDINATOR_NOT_AVAILABLE": ("FindCoordinator", "OffsetCommit", "Heartbeat"),
    "COORDINATOR_LOAD_IN_PROGRESS": ("OffsetCommit",),
    "NOT_COORDINATOR": ("OffsetCommit", "Heartbeat"),
    "UNKNOWN_MEMBER_ID": ("OffsetCommit", "Heartbeat"),
    "ILLEGAL_GENERATION": ("OffsetCommit", "Heartbeat"),
    "REBALANCE_IN_PROGRESS": ("OffsetCommit", "Heartbeat"),
}
DELAY_MS = 5_000  # half of what clients wait for a reply
DAMAGED = 5  # the byte of a reply, after the correlation id, that is changed: after the time of throttling
BYTES_PER_SECOND = 20
# Name in the table -> the fault, in the words of docs/faults.md; each meets one request.
FAULTS: dict[str, dict[str, Any]] = {
    "disconnect before": {"fault": "disconnect_on", "when": "before"},
    "disconnect after": {"fault": "disconnect_on", "when": "after"},
    "delay": {"fault": "delay_on", "ms": DELAY_MS},
    "no answer": {"fault": "blackhole_client", "client_id": "*"},
    "delivered twice": {"fault": "deliver_twice"},
    "damaged reply": {"fault": "corrupt_reply", "at": DAMAGED},
    "throttle": {"fault": "throttle", "bytes_per_second": BYTES_PER_SECOND},
}
NONE = "none"  # the same run without a fault: what the others are compared with
ROWS = (NONE, *ERRORS, *FAULTS)


class Cell(NamedTuple):
    """A place in the table."""

    client: str
    api: str
    row: str

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return f"{self.client}|{self.api}|{self.row}"

    def fault(self) -> dict[str, Any] | None:
        """What is set, in the words of docs/faults.md; None: nothing."""
        if self.row == NONE:
            return None
        words = FAULTS.get(self.row) or {"fault": "inject_error", "error": self.row}
        return {**words, "api": self.api, "trigger": "once"}


def exists(api: str, row: str) -> bool:
    """Whether the API can meet it."""
    return api in ERRORS.get(row, APIS)


def cells(clients: tuple[str, ...] = CLIENTS) -> list[Cell]:
    """All, by client: so that a driver's process serves many."""
    return [Cell(client, api, row) for client in clients for api in APIS for row in ROWS if exists(api, row)]
