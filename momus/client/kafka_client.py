"""A small blocking Kafka client for the command line and the pipeline: the driver of broker/asks over sockets.

It speaks the same declarations as the broker, so it may only be imported where momus.launch.use_packages()
has run: in our own process, never in a user's.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

from broker.asks import acls, configs, groups, quotas, topics
from broker.asks.ask import PAUSE_S, AnswerError, Ask, Controller, Group, Places, Sending, label, routed
from broker.asks.records import fetch
from broker.asks.topics import EARLIEST, LATEST
from momus.client.wire import Connection
from protocol.api import ApiKey
from protocol.record_batch import BatchHeader, iter_batches

__all__ = ["EARLIEST", "LATEST", "Client", "RequestFailedError", "Row", "acls", "configs", "groups", "quotas"]

Row = dict[str, Any]
T = TypeVar("T")
LOG_BYTES = 1 << 22  # of one answer


class RequestFailedError(OSError):
    """A broker refused the whole request."""

    def __init__(self, what: str, code: int, message: str | None = None) -> None:
        super().__init__(str(AnswerError(what, code, message)))
        self.code = code


class Client:
    """A cluster, reached through any of its brokers. Answers are plain rows, ready to print or to dump as
    JSON."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 10.0) -> None:
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._connections: dict[int | None, Connection] = {None: self._reached()}
        self._known = Places(patience=int(timeout_s / PAUSE_S))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def ask(self, ask: Ask[T]) -> T:
        """The answer of the cluster. Errors: RequestFailedError: it refuses; OSError: it does not answer."""
        return self._run(routed(ask, self._known))

    def _run(self, sending: Sending[T]) -> T:
        response: Any = None
        try:
            while True:
                sent = sending.send(response)
                if sent is None:
                    time.sleep(PAUSE_S)
                else:
                    response = self._call(sent.node_id, sent.request, sent.version)
        except StopIteration as end:
            value: T = end.value
            return value
        except AnswerError as error:
            raise RequestFailedError(error.what, error.code, error.message) from None

    def offers(self, api_key: int) -> bool:
        """Whether the broker that was reached first serves an API."""
        return api_key in self._connections[None].versions

    # ---- cluster and topics ----

    def cluster(self, names: Sequence[str] | None = ()) -> Any:
        """Metadata of the cluster and of the named topics; None for all topics."""
        return self.ask(topics.metadata(names))

    def topics(self) -> list[Row]:
        """Every topic, by name."""
        return [
            {
                "name": t.name,
                "partitions": len(t.partitions),
                "replicas": max((len(p.replica_nodes) for p in t.partitions), default=0),
                "internal": t.is_internal,
            }
            for t in sorted(self.cluster(None).topics, key=lambda t: str(t.name))
        ]

    def create_topics(self, partitions: Mapping[str, int], replicas: int, settings: dict[str, str]) -> list[Row]:
        """Create topics, name -> partitions; one row each, `error` None when it was made."""
        wanted = [topics.new_topic(name, count, replicas, settings) for name, count in partitions.items()]
        return [_outcome(t.name, t.error_code, t.error_message) for t in self.ask(topics.create(wanted))]

    def delete_topics(self, names: Sequence[str]) -> list[Row]:
        """Delete topics; one row each, `error` None when it is gone."""
        return [_outcome(t.name, t.error_code, t.error_message) for t in self.ask(topics.delete(names))]

    def grow(self, names: Sequence[str], partitions: int, *, dry_run: bool) -> list[Row]:
        """Raise the number of partitions; one row a topic, `error` None when it was done."""
        rows = self.ask(topics.grow(names, partitions, only_check=dry_run))
        return [_outcome(each.name, each.error_code, each.error_message) for each in rows]

    def alter_configs(
        self, names: Sequence[str], settings: Mapping[str, str], unset: Sequence[str], *, dry_run: bool
    ) -> list[Row]:
        """Set some settings and give others their default again; one row a topic, `error` None when it was done."""
        changes = {**settings, **dict.fromkeys(unset)}
        rows = self.ask(configs.alter(configs.TOPIC, dict.fromkeys(names, changes), only_check=dry_run))
        return [_outcome(each.resource_name, each.error_code, each.error_message) for each in rows]

    def describe_topics(self, names: Sequence[str]) -> list[Row]:
        """Partitions with leaders and offsets, and the settings made on the topic itself."""
        rows = []
        for t in self.cluster(names).topics:
            _check(f"topic {t.name}", t.error_code)
            indexes = {p.partition_index: p.leader_id for p in t.partitions}
            start, end = self._offsets(t.name, indexes, EARLIEST), self._offsets(t.name, indexes, LATEST)
            rows.append(
                {
                    "name": t.name,
                    "topic_id": urlsafe_b64encode(t.topic_id).decode().rstrip("="),
                    "internal": t.is_internal,
                    "configs": self.topic_configs(t.name),
                    "partitions": [
                        {
                            "partition": p.partition_index,
                            "leader": p.leader_id,
                            "leader_epoch": p.leader_epoch,
                            "replicas": p.replica_nodes,
                            "isr": p.isr_nodes,
                            "start": start.get(p.partition_index),
                            "end": end.get(p.partition_index),
                        }
                        for p in sorted(t.partitions, key=lambda p: p.partition_index)
                    ],
                }
            )
        return rows

    def topic_configs(self, topic: str) -> dict[str, str | None]:
        """The settings made on a topic itself. Errors: RequestFailedError."""
        (found,) = self.ask(configs.describe(configs.TOPIC, [topic]))
        _check(f"settings of topic {topic}", found.error_code, found.error_message)
        return {c.name: c.value for c in found.configs if c.config_source == configs.OF_TOPIC}

    def leaders(self, topic: str) -> dict[int, int]:
        """Partition of a topic -> the node that leads it."""
        (found,) = self.cluster([topic]).topics
        _check(f"topic {topic}", found.error_code)
        return {p.partition_index: p.leader_id for p in found.partitions}

    def batches(self, topic: str, partition: int, leader: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """(header, bytes) of the record batches of a partition, as they are in its log now."""
        offset = self._offsets(topic, {partition: leader}, EARLIEST)[partition]
        end = self._offsets(topic, {partition: leader}, LATEST)[partition]
        while offset < end:
            found = self.ask(fetch(topic, partition, offset, most_bytes=LOG_BYTES))
            _check(f"{topic}-{partition}", found.error_code)
            records = memoryview(bytes(found.records or b""))
            before = offset
            for position, header in iter_batches(records):
                yield header, records[position : position + header.size]
                offset = header.next_offset
            if offset == before:
                return  # the rest is not committed

    # ---- groups ----

    def groups(self) -> list[Row]:
        """Every group of every coordinator, by name."""
        return [
            {
                "group": each.group,
                "state": each.state or None,
                "type": each.type or None,
                "protocol_type": each.protocol_type or None,
                "coordinator": each.coordinator,
            }
            for each in self.ask(groups.listed())
        ]

    def describe_group(self, group: str) -> Row:
        """State, members and offsets of one group, as the control plane tells them; an unknown group is Dead."""
        kind = self.ask(groups.type_of(group))
        has_share_offsets = self.offers(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
        found = self.ask(groups.with_offsets(group, kind, has_share_offsets=has_share_offsets))
        if found["type"] == "share":
            found["dead_letters"] = self.ask(groups.dead_letters(group))
        return {**found, "coordinator": self._coordinator(group)}

    def committed_offsets(self, group: str) -> list[Row]:
        """What a group has committed."""
        return [
            {
                "group": group,
                "topic": t.name,
                "partition": p.partition_index,
                "offset": p.committed_offset,
                "leader_epoch": p.committed_leader_epoch,
                "metadata": p.metadata or "",
            }
            for t in self.ask(groups.committed(group))
            for p in t.partitions
        ]

    def commit_offsets(self, group: str, rows: Sequence[Row]) -> list[Row]:
        """Commit offsets of a group without members, all in one request; the rows that were refused.

        Where every row has a `topic_id` (Kafka's text form), a topic that has another id by now is refused; brokers
        before Kafka 4.1 go by the names alone.
        """
        by_id = all(row.get("topic_id") for row in rows)
        commits = [
            groups.Commit(
                row["topic"],
                row["partition"],
                row["offset"],
                row["metadata"],
                row["leader_epoch"],
                urlsafe_b64decode(row["topic_id"] + "==") if by_id else groups.NO_ID,
            )
            for row in rows
        ]
        return [
            {"topic": each.topic, "partition": each.partition, "error": label(each.code)}
            for each in self.ask(groups.commit(group, commits))
        ]

    def delete_groups(self, names: Sequence[str]) -> list[Row]:
        """Delete groups that are empty; one row each, `error` None when it is gone."""
        found = [self.ask(groups.delete(name)) for name in names]
        return [_outcome(each.group_id, each.error_code, None) for each in found]

    # ---- inside ----

    def broker_setting(self, key: str) -> str | None:
        """A setting of the broker that answers; None: it has none of this name, or may not say."""
        node_id = next(iter(self._nodes), -1)
        (found,) = self.ask(configs.describe(configs.BROKER, [str(node_id)], [key]))
        return next((each.value for each in found.configs if each.name == key), None)

    @property
    def _nodes(self) -> dict[int, tuple[str, int]]:
        return self._known.addresses

    def _reached(self) -> Connection:
        """A connection to the first of the bootstrap servers that answers. Errors: OSError: that of the last one."""
        failure: OSError | None = None
        for address in self._bootstrap.split(","):
            host, _, port = address.strip().rpartition(":")
            if not host or not port.isdigit():
                failure = OSError(f"{address!r} is not HOST:PORT")
                continue
            try:
                return Connection(host.strip("[]"), int(port), self._timeout_s)
            except OSError as error:
                failure = error
        assert failure is not None
        raise failure

    def _offsets(self, topic: str, leaders: dict[int, int], timestamp: int) -> dict[int, int]:
        """Partition -> offset, of those that a node of the cluster leads."""
        asked = {(topic, index): leader for index, leader in leaders.items() if leader in self._nodes}
        found = self.ask(topics.offsets_of(asked, timestamp))
        for (_, index), row in found.items():
            _check(f"{topic}-{index}", row.error_code)
        return {index: row.offset for (_, index), row in found.items()}

    def controller(self) -> int | None:
        """The node that changes topics and settings; None: any does. Errors: OSError."""
        return self._run(self._known.find(Controller()))

    def _coordinator(self, group: str) -> int:
        """Errors: RequestFailedError."""
        node = self._run(self._known.find(Group(group)))
        assert node is not None
        return node

    def _call(self, node_id: int | None, request: Any, version_limit: int | None = None) -> Any:
        if node_id not in self._connections:
            known = None if node_id is None else self._nodes[node_id]
            self._connections[node_id] = self._reached() if known is None else Connection(*known, self._timeout_s)
        return self._connections[node_id].call(request, version_limit)


def _check(what: str, code: int, message: str | None = None) -> None:
    if code:
        raise RequestFailedError(what, code, message)


def _outcome(name: str | None, code: int, message: str | None) -> Row:
    return {"name": name, "error": label(code) if code else None, "message": message or None}
