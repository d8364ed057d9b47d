"""What two brokers name by chance, made equal: ids, member ids, sessions and times become symbols.

A symbol goes by what the id belongs to (the step's label) and by the order of appearance, so the same event has the
same symbol on both sides. Names of a case carry a prefix on the wire; here they begin with "%", those of lasting topics
with "&".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from differential.batches import read_batches
from differential.plain import Plain, Values, words

NO_ID = bytes(16)
NEAR_MS = 2 * 86_400_000  # a time this close to the broker's clock comes from the clock
GENERATED_ID = re.compile(r".*-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}", re.DOTALL)
LEFT_OUT = {"ErrorMessage", "ThrottleTimeMs", "Documentation", "StatusDetail", "BatchIndexErrorMessage"}
HIDDEN = {"ClusterId": "<cluster>", "LogDir": "<dir>", "TotalBytes": "<any>", "UsableBytes": "<any>"}
NODES = {"NodeId", "BrokerId", "LeaderId", "ControllerId", "Leader", "PreferredReadReplica"}
NODE_LISTS = {"ReplicaNodes", "IsrNodes", "Replicas", "OfflineReplicas"}
NAMED_TWICE_ANSWERED_TWICE = {"Configs", "PartitionResponses"}
IDENTITY = words(
    """Name TopicName Topic TopicId GroupId TransactionalId ResourceType ResourceName MemberId GroupInstanceId
    InstanceId PartitionIndex Partition PartitionId Index ProducerId Key ApiKey SubtopologyId BrokerId NodeId Source
    StatusCode ErrorCode"""
)


class Symbols:
    """The symbols of one side in one case."""

    def __init__(self, prefix: str, lasting: str, topic_ids: dict[bytes, str], several_nodes: bool) -> None:
        self.prefix = prefix
        self.lasting = lasting
        self.topic_ids = dict(topic_ids)  # id -> "%name" or "&name"
        self.members: dict[str, str] = {}
        self.producers: dict[int, str] = {}
        self.sessions: dict[int, str] = {}
        self.several_nodes = several_nodes

    # -- names

    def name(self, text: str) -> str:
        """As it goes over the wire."""
        if text[:1] == "%":
            return self.prefix + text[1:]
        if text[:1] == "&":
            return self.lasting + text[1:]
        return text

    def unname(self, text: str) -> str:
        """The other way; other texts that hold the prefix have it replaced."""
        if text.startswith(self.lasting):
            return "&" + text[len(self.lasting) :]
        return text.replace(self.prefix, "%")

    def is_ours(self, text: object) -> bool:
        """Whether a normalised name is one of this case or of the lasting topics."""
        return isinstance(text, str) and text[:1] in ("%", "&")

    # -- what answers bring

    def member(self, member_id: str, label: str) -> None:
        if member_id and member_id not in self.members:
            if member_id.startswith(self.prefix) and not GENERATED_ID.fullmatch(member_id):
                self.members[member_id] = self.unname(member_id)
            else:
                count = sum(1 for known in self.members.values() if known.startswith(f"{label}."))
                self.members[member_id] = f"{label}.{count}"

    def producer(self, producer_id: int) -> None:
        if producer_id >= 0:
            self.producers.setdefault(producer_id, f"pid{len(self.producers)}")

    def session(self, session_id: int) -> None:
        if session_id:
            self.sessions.setdefault(session_id, f"session{len(self.sessions)}")

    # -- answers

    def normal(self, answer: Values, now_ms: int) -> Values:
        """An answer that can be compared."""

        def moment(value: int) -> Plain:
            return "<now>" if abs(value - now_ms) < NEAR_MS else value

        found: Values = self._walk("", answer, moment)
        return found

    def _walk(self, key: str, value: Plain, moment: Callable[[int], Plain]) -> Plain:
        if value is None or isinstance(value, bool | float):
            return value
        if key in HIDDEN:
            return HIDDEN[key]
        if isinstance(value, int):
            return self._number(key, value, moment)
        if isinstance(value, str):
            return self._text(key, value)
        if isinstance(value, bytes):
            if key == "Records":
                return read_batches(value, self._producer_of, moment)
            if len(value) == 16 and (key.endswith(("Id", "Ids"))):
                return self._id(value)
            return value.hex()
        if isinstance(value, dict):
            return {name: self._walk(name, each, moment) for name, each in value.items() if name not in LEFT_OUT}
        return self._list(key, [self._walk(key, each, moment) for each in value])

    def _number(self, key: str, value: int, moment: Callable[[int], Plain]) -> Plain:
        if key in ("ProducerId", "NextProducerId"):
            return self._producer_of(value)
        if key == "SessionId":
            return self.sessions.get(value, "session?") if value else 0
        if key == "Port":
            return "<port>" if value > 0 else value
        if self.several_nodes and value >= 0 and (key in NODES or key in NODE_LISTS):
            return "<node>"
        return moment(value)

    def _text(self, key: str, value: str) -> str:
        if key == "Host":
            return "<host>" if value else value
        if value in self.members:
            return "mid:" + self.members[value]
        if key in ("MemberId", "Leader") and GENERATED_ID.fullmatch(value):  # of a member that still waits
            return "mid?"
        if value.startswith(self.lasting) or self.prefix in value:
            return self.unname(value)
        return value

    def _id(self, value: bytes) -> str:
        if value == NO_ID:
            return "0"
        known = self.topic_ids.get(value)
        if known:
            return "id:" + known
        return "id:made-up" if value[:8] == NO_ID[:8] else "id?"

    def _producer_of(self, producer_id: int) -> Plain:
        return producer_id if producer_id < 0 else self.producers.get(producer_id, "pid?")

    def _list(self, key: str, rows: list[Plain]) -> list[Plain]:
        if rows and isinstance(rows[0], dict):
            rows.sort(key=identity)
            if key not in NAMED_TWICE_ANSWERED_TWICE:
                rows = [row for at, row in enumerate(rows) if at == 0 or row != rows[at - 1]]
        elif rows and isinstance(rows[0], int | str):
            rows.sort(key=str)
        return rows


def identity(row: Any) -> tuple[str, ...]:
    """What a row of a list is sorted by: its names first, then all of it."""
    return (*(str(row.get(name, "")) for name in IDENTITY), str(sorted(row.items(), key=lambda item: item[0])))
