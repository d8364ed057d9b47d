"""What is not the same in another run: ids that a broker draws, addresses, times; and how the rest is compared.

An id is learnt where an answer first shows it: that of the recording stands for that of this run from then on. Requests
are sent with the ids of this run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from protocol.declare import Message
from protocol.record_batch import CRC_POSITION, iter_batches, iter_records
from protocol.wire import Array, Records, Uuid

NEVER_COMPARED = {"throttle_time_ms", "host", "port"}
# Against another broker also what follows from its machine, its clock and the words of its messages.
OTHERS_OWN = {
    "error_message",
    "batch_index_error_message",
    "acknowledge_error_message",
    "controller_id",
    "leader_id",
    "leader",
    "leader_epoch",
    "current_leader",
    "node_endpoints",
    "broker_id",
    "node_id",
    "brokers",
    "replica_nodes",
    "isr_nodes",
    "log_append_time_ms",
    "timestamp",
    "commit_timestamp",
    "transaction_start_time_ms",
    "log_dir",
    "partition_size",
    "total_bytes",
    "usable_bytes",
    "api_keys",
    "supported_features",
    "finalized_features",
    "finalized_features_epoch",
    "rack",
    "cluster_authorized_operations",
    "topic_authorized_operations",
    "authorized_operations",
    "configs",
}
# What names a row of a list in an answer, if it is the same in every run.
ROW_NAMES = (
    "name",
    "topic",
    "group_id",
    "transactional_id",
    "group_instance_id",
    "resource_name",
    "partition_index",
    "partition",
    "index",
)
PLAIN = (None, "", 0, -1, b"\0" * 16)  # values that name nothing
CRC_START = CRC_POSITION + 4
PRODUCER_POSITION, EPOCH_POSITION = 43, 51


class Difference(NamedTuple):
    """Where two answers differ first, and in what."""

    path: str
    recorded: object
    found: object


class Mapping:
    """What the values of a recording are in this run. `is_other`: it is played against another broker."""

    def __init__(self, *, is_other: bool) -> None:
        self._is_other = is_other
        self._ids: dict[tuple[str, Any], Any] = {}
        self._epochs: dict[int, int] = {}  # producer id of the recording -> how much larger its epochs are in this run

    # -- requests

    def translate(self, message: Message) -> None:
        """Put the values of this run into a request."""
        producer_id = next((v for name, v in _values(message) if name.endswith("producer_id")), -1)
        for each in message.FIELDS:
            name, value = each.name, getattr(message, each.name)
            wire = each.wire.element if isinstance(each.wire, Array) else each.wire
            if isinstance(value, Message):
                self.translate(value)
            elif isinstance(value, list):
                if value and isinstance(value[0], Message):
                    for inner in value:
                        self.translate(inner)
                else:
                    setattr(message, name, [self._mapped(name, wire, inner) for inner in value])
            elif wire is Records:
                if value:
                    setattr(message, name, self._batches(bytes(value)))
            elif name.endswith("producer_epoch"):
                setattr(message, name, value + self._epochs.get(producer_id, 0) if value >= 0 else value)
            else:
                setattr(message, name, self._mapped(name, wire, value))

    def _mapped(self, name: str, wire: Any, value: Any) -> Any:
        kind = _kind(name, wire, value)
        return value if kind is None else self._ids.get((kind, value), value)

    def _batches(self, data: bytes) -> bytes:
        """Batches with the producer of this run; what is no batch stays as it is."""
        found = bytearray(data)
        try:
            for position, header in iter_batches(data):
                mapped = self._ids.get(("producer", header.producer_id))
                if header.producer_id < 0 or mapped is None:
                    continue
                epoch = header.producer_epoch + self._epochs.get(header.producer_id, 0)
                found[position + PRODUCER_POSITION : position + EPOCH_POSITION] = mapped.to_bytes(8, "big")
                found[position + EPOCH_POSITION : position + EPOCH_POSITION + 2] = epoch.to_bytes(2, "big", signed=True)
                body = bytes(found[position + CRC_START : position + header.size])
                found[position + CRC_POSITION : position + CRC_START] = crc32c(body).to_bytes(4, "big")
        except Exception:  # a malformed batch, sent on purpose: as it was recorded
            return data
        return bytes(found)

    # -- answers

    def compare(self, recorded: Any, found: Any, path: str = "") -> Difference | None:
        """The first difference of two decoded answers, that of a code before what follows from it; ids that are new are
        learnt."""
        self._learn_epoch(recorded, found)
        for each in sorted(recorded.FIELDS, key=_is_no_code):
            name = each.name
            if name in NEVER_COMPARED or (self._is_other and name in OTHERS_OWN):
                continue
            wire = each.wire.element if isinstance(each.wire, Array) else each.wire
            place = f"{path}.{name}" if path else name
            difference = self._compare_values(name, wire, getattr(recorded, name), getattr(found, name), place)
            if difference is not None:
                return difference
        return None

    def _compare_values(self, name: str, wire: Any, ours: Any, theirs: Any, place: str) -> Difference | None:
        if isinstance(ours, list) and isinstance(theirs, list):
            if len(ours) != len(theirs):
                return Difference(f"{place}.length", len(ours), len(theirs))
            if self._is_other:
                ours, theirs = self._paired(ours, theirs)
            for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
                difference = self._compare_values(name, wire, mine, other, f"{place}[{index}]")
                if difference is not None:
                    return difference
            return None
        if isinstance(ours, Message) and isinstance(theirs, Message):
            return self.compare(ours, theirs, place)
        if wire is Records and ours is not None and theirs is not None:
            ours, theirs = _records(bytes(ours)), _records(bytes(theirs))
        if name == "error_message" and isinstance(ours, str):
            for (_, value), mapped in self._ids.items():
                ours = ours.replace(value, mapped) if isinstance(value, str) else ours
        kind = _kind(name, wire, ours)
        if kind is not None and (theirs >= 0 if kind == "producer" else theirs not in PLAIN):
            ours = self._ids.setdefault((kind, ours), theirs)
        elif name.endswith("producer_epoch"):
            return None  # learnt with its producer id
        return None if ours == theirs else Difference(place, ours, theirs)

    def _paired(self, ours: list[Any], theirs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Two lists of the same length, in the order of names where their rows have some: Kafka's is that of hash maps.

        A topic that is named by its id alone is found by that of this run.
        """
        if not ours or not isinstance(ours[0], Message):
            return ours, theirs
        if hasattr(ours[0], "member_id"):
            return self._paired_members(ours, theirs)
        key = next((each.name for each in ours[0].FIELDS if each.name in ROW_NAMES), "")
        mine, other = {}, {}
        for row, there in zip(ours, theirs, strict=True):
            name, topic_id = getattr(row, key, ""), getattr(row, "topic_id", None)
            mine[self._ids.get(("id", topic_id), topic_id) if name in ("", None) else name] = row
            name = getattr(there, key, "")
            other[getattr(there, "topic_id", None) if name in ("", None) else name] = there
        if len(mine) < len(ours) or len(other) < len(theirs) or None in mine or None in other:
            return ours, theirs
        if mine.keys() == other.keys():
            return ours, [other[name] for name in mine]
        if not key:
            return ours, theirs
        return [mine[name] for name in sorted(mine, key=str)], [other[name] for name in sorted(other, key=str)]

    def _paired_members(self, ours: list[Any], theirs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Members by their instance, else by the id that is known to stand for theirs; the others in their order."""
        left = list(theirs)
        pairs: dict[int, Any] = {}
        for at, row in enumerate(ours):
            instance, member = getattr(row, "group_instance_id", None), self._ids.get(("member", row.member_id))
            for there in left:
                if there.group_instance_id == instance if instance else there.member_id == member:
                    pairs[at] = there
                    left.remove(there)
                    break
        rest = iter(left)
        return ours, [pairs[at] if at in pairs else next(rest) for at in range(len(ours))]

    def _learn_epoch(self, recorded: Any, found: Any) -> None:
        producer_id, epoch = getattr(recorded, "producer_id", -1), getattr(recorded, "producer_epoch", -1)
        if producer_id >= 0 and epoch >= 0 and found.producer_epoch >= 0:
            self._epochs.setdefault(producer_id, found.producer_epoch - epoch)


def _is_no_code(field: Any) -> bool:
    return str(field.name) != "error_code"


def _values(message: Message) -> Iterator[tuple[str, Any]]:
    return ((each.name, getattr(message, each.name)) for each in message.FIELDS)


def _kind(name: str, wire: Any, value: Any) -> str | None:
    """What a value names, so that it may be another one in this run; None: it must be the same."""
    if name.endswith("producer_id"):
        return "producer" if value >= 0 else None
    if value in PLAIN:
        return None
    if wire is Uuid:
        return "id"
    if name.endswith("member_id") or (name == "leader" and isinstance(value, str)):
        return "member"
    if name in ("session_id", "cluster_id"):
        return name
    return None


def _records(data: bytes) -> object:
    """What a reader sees of batches: offsets, keys, values, headers, and which are markers."""
    found = []
    try:
        for position, header in iter_batches(data):
            for record in iter_records(data[position : position + header.size]):
                found.append((record.offset, record.key, record.value, tuple(record.headers), header.is_control))
    except Exception:  # a batch was cut at the limit of a Fetch, or damaged by a fault
        return data
    return found
