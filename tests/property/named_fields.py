"""Which declared fields of responses name something, and requests of every kind drawn from their declarations.

A field is found by the end of its dotted path in the response; the longest end counts. So a field of a new API with a
usual name is classified without an edit, and one with a new name is not: test_hidden_names.py fails then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from secrets_kit import GROUP_KINDS, Secrets

from protocol import wire
from protocol.api import ApiKey, request_class
from protocol.declare import Field, Message

# Things that a right is needed for: topics, groups, ids, principals, tokens, records, what members say of themselves.
NAMED = {
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "source_topics",
    "repartition_sink_topics",
    "sink_topic",
    "stores",
    "successors",
    "group_id",
    "transactional_id",
    "key",
    "resource_name",
    "principal",
    "principal_name",
    "token_requester_principal_name",
    "user",
    "entity_name",
    "token_id",
    "hmac",
    "acls.host",
    "matching_acls.host",
    "member_id",
    "leader",
    "group_instance_id",
    "instance_id",
    "client_id",
    "client_host",
    "process_id",
    "members.rack_id",
    "user_endpoint.host",
    "client_tags.key",
    "client_tags.value",
    "subtopology_id",
    "topics.partitions.metadata",
    "records",
}
# What belongs to the members of a group, and names topics: who may see the group sees it. So it is in Kafka, whose
# brokers do not read the first three, and which checks assignments alone in the descriptions of groups.
OF_GROUP = {
    "members.metadata",
    "member_metadata",
    "member_assignment",
    "subscribed_topic_names",
    "subscribed_topic_regex",
}
# What a client is told as a member of the group that its request names: its part of the topics, as in Kafka.
OF_MEMBER = {
    "SYNC_GROUP.assignment",
    "SHARE_GROUP_HEARTBEAT.assignment.topic_partitions.topic_id",
    "CONSUMER_GROUP_HEARTBEAT.assignment.topic_partitions.topic_id",
    "STREAMS_GROUP_HEARTBEAT.active_tasks.subtopology_id",
    "partitions_by_user_endpoint.user_endpoint.host",
    "active_partitions.topic",
    "standby_partitions.topic",
    "status_detail",
}
# Sentences. They must tell no more than the fields beside them.
TEXTS = {"error_message", "batch_index_error_message", "acknowledge_error_message"}
# Words of Kafka's, settings, and what every client is told of the brokers: nothing that a right is needed for.
WORDS = {
    "host",
    "rack",
    "cluster_id",
    "log_dir",
    "replica_directory_id",
    "listeners.name",
    "supported_features.name",
    "finalized_features.name",
    "feature",
    "mechanisms",
    "auth_bytes",
    "configs.name",
    "configs.value",
    "synonyms.name",
    "synonyms.value",
    "documentation",
    "topic_configs.key",
    "topic_configs.value",
    "protocol_type",
    "protocol_name",
    "protocol_data",
    "group_state",
    "group_type",
    "assignor_name",
    "transaction_state",
    "unknown_state_filters",
    "principal_type",
    "token_requester_principal_type",
    "entity_type",
    "values.key",
}
KINDS = {"named": NAMED, "of group": OF_GROUP, "of member": OF_MEMBER, "text": TEXTS, "word": WORDS}
NO_ID = bytes(16)
WIRES = (wire.String, wire.Bytes, wire.Records, wire.Uuid)  # of fields that could name something


def kind_of(path: str) -> str | None:
    """What a field of a response is: a key of KINDS. None: nobody has said."""
    parts = path.split(".")
    for first in range(len(parts)):
        end = ".".join(parts[first:])
        for kind, ends in KINDS.items():
            if end in ends:
                return kind
    return None


def declared(cls: type[Message], path: str) -> Iterator[str]:
    """The dotted paths of all fields that could name something, in all versions."""
    for field in cls.FIELDS:
        element = field.wire.element if isinstance(field.wire, wire.Array) else field.wire
        if isinstance(element, type):
            yield from declared(element, f"{path}.{field.name}")
        elif element in WIRES:
            yield f"{path}.{field.name}"


def values(message: Message, path: str) -> Iterator[tuple[str, bytes]]:
    """Each such field that a message has, as bytes."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                yield from values(each, f"{path}.{field.name}")
            elif isinstance(each, str):
                yield f"{path}.{field.name}", each.encode()
            elif isinstance(each, bytes | bytearray | memoryview):
                yield f"{path}.{field.name}", bytes(each)


def is_nullable(cls: type[Message], name: str, version: int) -> bool:
    """Whether a field of a message may be null in a version."""
    return any(field.name == name and field.is_nullable(version) for field in cls.FIELDS)


class Requests:
    """Requests about what is in a cluster, drawn from a seed. `secrets` says what there is to name."""

    def __init__(self, secrets: Secrets, *, by_id: bool = True) -> None:
        self._ids = [*secrets.ids.values()] if by_id else []
        self._classic = [name.decode() for name in secrets.tokens if b"-instance-" in name]
        self._hmacs = [value for value in secrets.tokens if len(value) == 64] if by_id else []

    def draw(self, api_key: int, version: int, seed: int) -> Message:
        """One request of one API in one version."""
        rng = random.Random(f"{api_key} {version} {seed}")
        self._prefix = rng.choice(("open", "hidden"))
        self._kind = rng.choice(GROUP_KINDS)
        return self._message(request_class(api_key), version, rng)

    def _message(self, cls: type[Message], version: int, rng: random.Random) -> Message:
        made = cls(**{f.name: self._field(f, version, rng) for f in cls.FIELDS if f.is_in(version)})
        if getattr(made, "topic_id", NO_ID) != NO_ID and hasattr(made, "name") and rng.random() < 0.9:
            made.name = None if is_nullable(cls, "name", version) else ""  # by its id or by its name
        return made

    def _field(self, field: Field, version: int, rng: random.Random) -> Any:
        if field.is_nullable(version) and rng.random() < 0.4:
            return None
        kind = field.wire
        if isinstance(kind, wire.Array):
            count = rng.choice((0, 0, 1, 2)) if rng.random() < 0.6 else 1
            return [self._value(field.name, kind.element, version, rng) for _ in range(count)]
        return self._value(field.name, kind, version, rng)

    def _value(self, name: str, kind: Any, version: int, rng: random.Random) -> Any:
        if isinstance(kind, type):
            return self._message(kind, version, rng)
        if kind is wire.String:
            return self._name(name, rng)
        if kind is wire.Uuid:
            return rng.choice(self._ids) if self._ids and rng.random() < 0.7 else NO_ID
        if kind in (wire.Bytes, wire.Records):
            return rng.choice(self._hmacs) if name == "hmac" and self._hmacs else b""
        if kind is wire.UInt16:
            return 1
        if kind is wire.Bool:
            return rng.random() < 0.5
        return self._number(name, rng)

    def _name(self, field: str, rng: random.Random) -> str:
        prefix = self._prefix if rng.random() < 0.7 else rng.choice(("open", "hidden", "missing"))
        if field in ("name", "topic", "topic_name", "topics", "topic_names", "subscribed_topic_names"):
            return rng.choice((f"{prefix}-topic", f"{prefix}-topic", f"{prefix}-other", f"{prefix}-user"))
        if field in ("group_id", "group", "groups", "group_ids", "groups_names"):
            return rng.choice((f"{prefix}-{self._kind}", f"{prefix}-{self._kind}", "open-mixed"))
        if field in ("key", "coordinator_keys", "resource_name", "resource_name_filter"):
            return rng.choice((f"{prefix}-topic", f"{prefix}-{self._kind}", f"{prefix}-tx"))
        if "transactional_id" in field:
            return rng.choice((f"{prefix}-tx", "open-mixed-tx"))
        if field == "member_id":
            if self._kind == "classic":
                return next((name for name in self._classic if name.startswith(prefix)), "")
            return f"{prefix}-member"
        if field in ("instance_id", "group_instance_id"):
            return f"{prefix}-instance"
        if field in ("principal_name", "entity_name", "match", "user", "owner_principal_name"):
            return f"{prefix}-user"
        if field == "principal":
            return f"User:{prefix}-user"
        if "principal_type" in field:
            return "User"
        return {"protocol_type": "consumer", "entity_type": "user", "host": "*"}.get(field, "range")

    def _number(self, field: str, rng: random.Random) -> int:
        if field in ("partition_index", "index", "partition", "partitions", "partition_indexes"):
            return rng.choice((0, 0, 1, 7))
        if field in ("resource_type", "resource_type_filter", "config_resource_type", "resource_types"):
            return rng.choice((1, 2, 2, 3, 4, 5, 32))
        if field.endswith("_filter") or field in ("operation", "permission_type", "resource_pattern_type"):
            return rng.choice((1, 3))
        if field in ("key_type", "acknowledge_types", "mechanism"):
            return rng.choice((0, 1, 2))
        if field.endswith("epoch") or field.startswith("generation_id"):
            return rng.choice((0, 0, 1, 2, -1))
        if "bytes" in field or field in ("max_records", "batch_size"):
            return 1 << 20
        if field in ("timeout_ms", "max_wait_ms", "fetch_offset", "start_offset"):
            return 0
        if field.endswith("timeout_ms"):
            return 10_000
        if field.endswith("producer_id") and not self._ids:  # counted over the whole cluster, as in Kafka
            return rng.choice((-1, 100))
        return rng.choice((0, 1, 1, 2, -1, 100))


__all__ = ["ApiKey", "Requests", "declared", "kind_of", "values"]
