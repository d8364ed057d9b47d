"""A small blocking Kafka client for the command line: one request at a time, to the node that must answer it.

It speaks the same declarations as the broker, so it may only be imported where momus.launch.use_packages()
has run: in our own process, never in a user's.
"""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from momus.client.wire import Connection
from protocol.errors import ErrorCode

Row = dict[str, Any]

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
DYNAMIC_TOPIC_CONFIG = 1  # ConfigSource: set on the topic itself
EARLIEST, LATEST = -2, -1
RETRY_PAUSE_S = 0.1
COORDINATOR_MOVES = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class RequestFailedError(OSError):
    """A broker refused the whole request."""

    def __init__(self, what: str, code: int, message: str | None = None) -> None:
        name = _code_name(code)
        super().__init__(f"{what}: {name}{': ' + message if message else ''}")
        self.code = code


class Client:
    """A cluster, reached through any of its brokers. Answers are plain rows, ready to print or to dump as
    JSON."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 10.0) -> None:
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._connections: dict[int | None, Connection] = {None: self._reached()}
        self._nodes: dict[int, tuple[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    # ---- cluster and topics ----

    def cluster(self, topics: Sequence[str] | None = ()) -> Any:
        """Metadata of the cluster and of the named topics; None for all topics."""
        from protocol.messages.cluster import MetadataRequest, MetadataRequestTopic

        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        answer = self._call(None, MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        self._nodes = {node.node_id: (node.host, node.port) for node in answer.brokers}
        return answer

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

    def create_topics(self, topics: Mapping[str, int], replicas: int, configs: dict[str, str]) -> list[Row]:
        """Create topics, name -> partitions; one row each, `error` None when it was made."""
        from protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replicas,
                    configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
                )
                for name, partitions in topics.items()
            ],
            timeout_ms=int(self._timeout_s * 1000),
        )
        answer = self._call(self._controller(), request)
        return [_outcome(t.name, t.error_code, t.error_message) for t in answer.topics]

    def delete_topics(self, names: Sequence[str]) -> list[Row]:
        """Delete topics; one row each, `error` None when it is gone."""
        from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names],
            topic_names=list(names),  # where versions below 6 look
            timeout_ms=int(self._timeout_s * 1000),
        )
        answer = self._call(self._controller(), request)
        return [_outcome(t.name, t.error_code, t.error_message) for t in answer.responses]

    def describe_topics(self, names: Sequence[str]) -> list[Row]:
        """Partitions with leaders and offsets, and the settings made on the topic itself."""
        rows = []
        for t in self.cluster(names).topics:
            _check(f"topic {t.name}", t.error_code)
            indexes = {p.partition_index: p.leader_id for p in t.partitions}
            start = self._offsets(t.name, indexes, EARLIEST)
            end = self._offsets(t.name, indexes, LATEST)
            rows.append(
                {
                    "name": t.name,
                    "topic_id": base64.urlsafe_b64encode(t.topic_id).decode().rstrip("="),
                    "internal": t.is_internal,
                    "configs": self._topic_configs(t.name),
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

    # ---- groups ----

    def groups(self) -> list[Row]:
        """Every group of every coordinator, by name."""
        from protocol.messages.group_admin import ListGroupsRequest

        self.cluster()
        rows = []
        for node_id in self._nodes:
            answer = self._call(node_id, ListGroupsRequest())
            _check("groups", answer.error_code)
            rows += [
                {
                    "group": g.group_id,
                    "state": g.group_state or None,
                    "type": g.group_type or None,
                    "protocol_type": g.protocol_type or None,
                    "coordinator": node_id,
                }
                for g in answer.groups
            ]
        return sorted(rows, key=lambda row: str(row["group"]))

    def describe_group(self, group_id: str) -> Row:
        """State, members and committed offsets of one group; an unknown group is Dead, as Kafka says."""
        give_up = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._describe_group(group_id)
            except RequestFailedError as error:
                # Asked for its first coordinator, Apache Kafka makes the offsets topic: no coordinator is ready yet.
                if error.code not in COORDINATOR_MOVES or time.monotonic() > give_up:
                    raise
            time.sleep(RETRY_PAUSE_S)

    # ---- inside ----

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

    def _describe_group(self, group_id: str) -> Row:
        from momus.client.describe_group import describe_by_type
        from protocol.messages.group_admin import DescribeGroupsRequest

        coordinator = self._coordinator(group_id)
        found = describe_by_type(lambda request: self._call(coordinator, request), _check, group_id)
        if found is not None:
            if "offsets" not in found:
                found["offsets"] = self._group_offsets(coordinator, group_id)
            return {"group": group_id, "coordinator": coordinator, **found}
        described = self._call(coordinator, DescribeGroupsRequest(groups=[group_id])).groups[0]
        if described.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            _check(f"group {group_id}", described.error_code)
        return {
            "group": group_id,
            "type": "classic",
            "state": described.group_state or "Dead",
            "protocol_type": described.protocol_type or None,
            "protocol": described.protocol_data or None,
            "coordinator": coordinator,
            "members": [
                {
                    "member_id": m.member_id,
                    "instance_id": m.group_instance_id,
                    "client_id": m.client_id,
                    "host": m.client_host,
                    "assignment": _assignment(bytes(m.member_assignment)),
                }
                for m in described.members
            ],
            "offsets": self._group_offsets(coordinator, group_id),
        }

    def _fetch_offsets(self, coordinator: int, group_id: str) -> Any:
        from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup

        # Version 10 names topics by id only; 9 still says the name.
        request = OffsetFetchRequest(
            group_id=group_id, topics=None, groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)]
        )
        answer = self._call(coordinator, request, version_limit=9)
        fetched = answer.groups[0] if answer.groups else answer
        _check(f"offsets of group {group_id}", fetched.error_code)
        return fetched

    def _group_offsets(self, coordinator: int, group_id: str) -> list[Row]:
        fetched = self._fetch_offsets(coordinator, group_id)
        names = [t.name for t in fetched.topics]
        known = {t.name: t for t in self.cluster(names).topics} if names else {}
        rows = []
        for t in sorted(fetched.topics, key=lambda t: str(t.name)):
            committed = {p.partition_index: p for p in t.partitions}
            leaders = {
                p.partition_index: p.leader_id for p in known[t.name].partitions if p.partition_index in committed
            }
            # After the committed offsets: asked before, a group that keeps up would show a negative lag.
            end = self._offsets(t.name, leaders, LATEST)
            for index, p in sorted(committed.items()):
                last = end.get(index)
                rows.append(
                    {
                        "topic": t.name,
                        "partition": index,
                        "committed": p.committed_offset,
                        "end": last,
                        "lag": None if last is None else last - p.committed_offset,
                        "metadata": p.metadata or None,
                    }
                )
        return rows

    def _offsets(self, topic: str, leaders: dict[int, int], timestamp: int) -> dict[int, int]:
        from protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

        offsets: dict[int, int] = {}
        for node_id in sorted(set(leaders.values())):
            if node_id not in self._nodes:
                continue  # a partition without a leader has no offset to tell
            asked = [
                ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=timestamp)
                for index, leader in leaders.items()
                if leader == node_id
            ]
            request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
            for answered in self._call(node_id, request).topics:
                for p in answered.partitions:
                    _check(f"{topic}-{p.partition_index}", p.error_code)
                    offsets[p.partition_index] = p.offset
        return offsets

    def broker_setting(self, key: str) -> str | None:
        """A setting of the broker that answers; None: it has none of this name, or may not say."""
        (node_id, _), *_ = self._nodes.items() or [(-1, None)]
        result = self._configs(node_id, BROKER_RESOURCE, str(node_id), [key])
        return next((each.value for each in result.configs if each.name == key), None)

    def _topic_configs(self, topic: str) -> dict[str, str | None]:
        result = self._configs(None, TOPIC_RESOURCE, topic, None)
        _check(f"settings of topic {topic}", result.error_code, result.error_message)
        return {c.name: c.value for c in result.configs if c.config_source == DYNAMIC_TOPIC_CONFIG}

    def _configs(self, node_id: int | None, kind: int, name: str, keys: list[str] | None) -> Any:
        from protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource

        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        return self._call(node_id, DescribeConfigsRequest(resources=[resource])).results[0]

    def _coordinator(self, key: str, key_type: int = 0) -> int:
        from protocol.messages.cluster import FindCoordinatorRequest

        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
        answer = self._call(None, request)
        found = answer.coordinators[0] if answer.coordinators else answer
        _check(f"coordinator of {'transaction' if key_type else 'group'} {key}", found.error_code, found.error_message)
        self._nodes[found.node_id] = (found.host, found.port)
        return int(found.node_id)

    def _controller(self) -> int | None:
        controller_id = self.cluster().controller_id
        return int(controller_id) if controller_id in self._nodes else None

    def _call(self, node_id: int | None, request: Any, version_limit: int | None = None) -> Any:
        if node_id not in self._connections:
            known = None if node_id is None else self._nodes[node_id]
            self._connections[node_id] = self._reached() if known is None else Connection(*known, self._timeout_s)
        return self._connections[node_id].call(request, version_limit)


def _check(what: str, code: int, message: str | None = None) -> None:
    if code:
        raise RequestFailedError(what, code, message)


def _code_name(code: int) -> str:
    try:
        return str(ErrorCode(code).name)
    except ValueError:
        return f"error {code}"


def _outcome(name: str | None, code: int, message: str | None) -> Row:
    return {"name": name, "error": _code_name(code) if code else None, "message": message or None}


def _assignment(data: bytes) -> list[str] | None:
    """Partitions in a consumer protocol assignment, as `topic-partition`; None where another protocol's bytes
    do not read as one.

    Shape: int16 version, array of (string topic, array of int32 partition), user data.
    """
    try:
        (_, topics), position = struct.unpack_from(">hi", data), 6
        partitions: list[str] = []
        for _ in range(topics):
            (length,) = struct.unpack_from(">h", data, position)
            name = data[position + 2 : position + 2 + length].decode()
            position += 2 + length
            (count,) = struct.unpack_from(">i", data, position)
            partitions += [f"{name}-{p}" for p in struct.unpack_from(f">{count}i", data, position + 4)]
            position += 4 + 4 * count
    except (struct.error, UnicodeDecodeError):
        return None
    return partitions
