"""The order of the checks: who answers, then what it says of itself, then where it sends clients.

Only where use_packages() has run.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

from broker.config.addresses import host_port
from broker.config.releases import release_like
from momus.cli.doctor import findings as judge
from momus.cli.doctor.findings import Finding
from momus.cli.doctor.probe import probe
from momus.cli.records.client import RecordClient
from momus.cli.records.text import Out
from momus.client.kafka_client import RequestFailedError, configs
from protocol.errors import ErrorCode


def examine(address: str, timeout_s: float, *, write: bool, cafile: str | None) -> Iterator[Finding]:
    """What is found at an address, in order."""
    host, _, port = address.rpartition(":")
    found = probe(host.strip("[]"), int(port), timeout_s, cafile)
    yield judge.of_probe(address, found)
    if found.kind != "kafka":
        return
    versions = judge.of_versions(address, found.versions, release_like(found.versions))
    yield versions
    if versions.level == judge.PROBLEM:
        return
    try:
        with RecordClient(address, timeout_s=timeout_s) as client:
            cluster = client.cluster(None)
            yield from _nodes(address, cluster, timeout_s, cafile)
            yield from judge.of_partitions(*_partitions(cluster))
            yield from _coordinator(client, address)
            if write:
                yield from _round_trip(client, address)
    except RequestFailedError as error:
        yield Finding(judge.PROBLEM, address, f"it refused a request: {error}")
    except OSError as error:
        if "closed the connection" in str(error) or isinstance(error.__context__, ConnectionError):
            yield judge.of_hang_up(address)
        else:
            yield Finding(judge.PROBLEM, address, f"it stopped answering: {error}")


def _nodes(asked: str, cluster: Any, timeout_s: float, cafile: str | None) -> Iterator[Finding]:
    """Whether clients reach each broker where it says that it is."""
    if cluster.controller_id < 0:
        yield Finding(judge.WARNING, asked, "there is no controller: topics cannot be made or changed")
    for node in sorted(cluster.brokers, key=lambda each: int(each.node_id)):
        name, advertised = f"broker {node.node_id}", host_port(node.host, node.port)
        trouble = judge.of_advertised(asked, name, advertised)
        if trouble is not None:
            yield trouble
            continue
        found = probe(node.host, node.port, timeout_s, cafile)
        finding = judge.of_probe(advertised, found, name)
        if finding.level == judge.OK:
            found_id, is_other = _identity(advertised, node.node_id, timeout_s)
            other = judge.of_identity(name, advertised, cluster.cluster_id, found_id, is_other_node=is_other)
            finding = other or Finding(judge.OK, advertised, f"{name} is there, as it says")
        yield finding


def _identity(address: str, node_id: int, timeout_s: float) -> tuple[str | None, bool]:
    """The cluster that answers at an address, and whether it says that it is another broker than this."""
    with RecordClient(address, timeout_s=timeout_s) as client:
        cluster_id = client.cluster().cluster_id
        (answer,) = client.ask(configs.describe(configs.BROKER, [str(node_id)], ["listeners"]))
    return cluster_id, answer.error_code == ErrorCode.INVALID_REQUEST


def _partitions(cluster: Any) -> tuple[list[str], list[str]]:
    """(partitions without a leader, partitions whose replicas are not all in sync)."""
    without_leader, under_replicated = [], []
    for topic in cluster.topics:
        for each in topic.partitions:
            name = f"{topic.name}-{each.partition_index}"
            if each.leader_id < 0:
                without_leader.append(name)
            elif len(each.isr_nodes) < len(each.replica_nodes):
                under_replicated.append(name)
    return sorted(without_leader), sorted(under_replicated)


def _coordinator(client: RecordClient, address: str) -> Iterator[Finding]:
    """Whether groups have a coordinator: the commonest reason that consumers wait for ever."""
    try:
        client._coordinator("momus-doctor")
    except RequestFailedError as error:
        yield Finding(
            judge.PROBLEM,
            address,
            f"groups have no coordinator ({error}): has the cluster as many brokers as"
            " offsets.topic.replication.factor asks for?",
        )


def _round_trip(client: RecordClient, address: str) -> Iterator[Finding]:
    """A record there and back in a topic of our own, whose time the broker sets."""
    topic = f"momus-doctor-{uuid.uuid4().hex[:8]}"
    (made,) = client.create_topics({topic: 1}, -1, {"message.timestamp.type": "LogAppendTime"})
    if made["error"] is not None:
        yield Finding(judge.PROBLEM, address, f"no topic can be made: {made['error']}: {made['message'] or ''}")
        return
    try:
        before_ms = time.time_ns() / 1e6
        offset = client.produce(topic, 0, [Out(None, b"how are you?", [])], codec=0, acks=-1)
        after_ms = time.time_ns() / 1e6
        (record,) = client.read(topic, {0: offset}, {}, committed=True, until_end=True, idle_s=None)
        yield Finding(judge.OK, address, f"a record was written and read back in {after_ms - before_ms:.0f} ms")
        yield judge.of_skew(address, record.timestamp_ms - (before_ms + after_ms) / 2)
    finally:
        client.delete_topics([topic])
