"""What Prometheus scrapes: kafka_exporter's names, so that its dashboards work, and ours.

Source:       kafka_exporter 1.9 for names and labels.
Beyond Kafka: `GET /metrics` of the control endpoint (`--control`), where Kafka has JMX.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.config.addresses import host_port
from broker.shell.metrics.gauges import commits, loaded_groups, own_gauges
from broker.turn.metrics import API_KEYS, BOUNDS_S, PARTS, Metrics
from protocol.api import api_label
from protocol.errors import KafkaError, error_label
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.cluster.topics import Topic

Labels: TypeAlias = "dict[str, object]"


class Family(NamedTuple):
    """A metric: its kind ("counter", "gauge"), and (labels, value) of each sample; all have the same labels."""

    name: str
    kind: str
    about: str
    samples: list[tuple[Labels, float]]


def _gauge(name: str, about: str) -> Family:
    return Family(name, "gauge", about, [])


BROKERS = _gauge("kafka_brokers", "Brokers that run")
BROKER = _gauge("kafka_broker_info", "A broker and its address")
PARTITIONS = _gauge("kafka_topic_partitions", "Partitions of a topic")
END = _gauge("kafka_topic_partition_current_offset", "High watermark of a partition")
BEGINNING = _gauge("kafka_topic_partition_oldest_offset", "First offset of a partition")
IN_SYNC = _gauge("kafka_topic_partition_in_sync_replica", "Replicas of a partition that are in sync")
LEADER = _gauge("kafka_topic_partition_leader", "Broker that leads a partition")
PREFERRED = _gauge("kafka_topic_partition_leader_is_preferred", "1: the first replica leads")
REPLICAS = _gauge("kafka_topic_partition_replicas", "Replicas of a partition")
UNDER = _gauge("kafka_topic_partition_under_replicated_partition", "1: some replica is not in sync")
COMMITTED = _gauge("kafka_consumergroup_current_offset", "What a group has committed")
COMMITTED_SUM = _gauge("kafka_consumergroup_current_offset_sum", "What a group has committed of a topic")
LAG = _gauge("kafka_consumergroup_lag", "High watermark less what a group has committed")
LAG_SUM = _gauge("kafka_consumergroup_lag_sum", "Lag of a group on a topic")
NOT_LOADED = _gauge("momus_group_partitions_not_loaded", "Partitions of __consumer_offsets whose groups are not read")
MEMBERS = _gauge("kafka_consumergroup_members", "Members of a group")
OWN = {
    name: _gauge(name, about)
    for name, about in (
        ("momus_connections", "Open connections"),
        ("momus_timers", "Timers that are set"),
        ("momus_parked_requests", "Requests that wait for records, members or a transaction"),
        ("momus_groups", "Groups"),
        ("momus_topics", "Topics"),
        ("momus_log_bytes", "Size of an open log"),
        ("momus_archive_held_bytes", "What the archive job keeps from being removed"),
    )
}

Value: TypeAlias = "tuple[Family, float, Labels]"


def sizes(broker: Broker) -> Iterator[Value]:
    """All gauges. The reader may pause between two, so each step reads the present state."""
    yield BROKERS, len(broker.nodes), {}
    for node in broker.nodes.up:
        yield BROKER, 1, {"id": node.node_id, "address": host_port(node.main.host, node.main.port)}
    if broker.upstream is None:
        yield from _kept(broker)
    for name, value, tags in own_gauges(broker):
        if name in OWN:
            yield OWN[name], value, dict(tags)


def _kept(broker: Broker) -> Iterator[Value]:
    """Those of topics and groups; a proxy keeps none."""
    ends: dict[tuple[str, int], int] = {}
    for topic in list(broker.metadata.topics.values()):
        yield PARTITIONS, len(topic.partitions), {"topic": topic.name}
        for index in range(len(topic.partitions)):
            yield from _partition(broker, topic, index, ends)
    yield from _groups(broker, ends)
    yield NOT_LOADED, sum(map(broker.directory.exists, repeat(OFFSETS_TOPIC), _not_loaded(broker))), {}


def _partition(broker: Broker, topic: Topic, index: int, ends: dict[tuple[str, int], int]) -> Iterator[Value]:
    info, labels = topic.partitions[index], {"topic": topic.name, "partition": index}
    yield LEADER, info.leader, labels
    yield REPLICAS, len(info.replicas), labels
    yield IN_SYNC, len(info.isr), labels
    yield PREFERRED, int(info.leader == info.replicas[0]), labels
    yield UNDER, int(len(info.isr) < len(info.replicas)), labels
    beginning = end = 0
    if broker.partitions.has(topic, index):
        try:
            partition = broker.partitions.get(topic, index)
        except (KafkaError, StorageError, OSError):  # its log is damaged, or its topic is being deleted
            return
        beginning, end = partition.log.log_start_offset, partition.high_watermark
    ends[topic.name, index] = end
    yield END, end, labels
    yield BEGINNING, beginning, labels


def _not_loaded(broker: Broker) -> Iterator[int]:
    return (index for index, shard in broker.groups.shards.existing() if shard.machine is None)


def _groups(broker: Broker, ends: dict[tuple[str, int], int]) -> Iterator[Value]:
    for machine, group_id, members in loaded_groups(broker):
        yield MEMBERS, members, {"consumergroup": group_id}
        for topic, offsets in groupby(commits(machine, group_id), itemgetter(0)):
            of_topic: Labels = {"consumergroup": group_id, "topic": topic}
            committed_sum = lag_sum = 0
            is_known = True
            for _, index, committed in offsets:
                labels: Labels = {**of_topic, "partition": index}
                yield COMMITTED, committed, labels
                committed_sum += committed
                if (end := ends.get((topic, index))) is not None:
                    # The end was read first, so a group that has just committed may be ahead of it.
                    lag = max(0, end - committed)
                    yield LAG, lag, labels
                    lag_sum += lag
                else:
                    is_known = False  # its log cannot be read: a sum of the others would look like less lag
            yield COMMITTED_SUM, committed_sum, of_topic
            if is_known:
                yield LAG_SUM, lag_sum, of_topic


def counters(metrics: Metrics) -> Iterator[Family]:
    """What was counted since the start."""
    yield Family(
        "momus_requests",
        "counter",
        "Requests",
        [({"api": api_label(key)}, n) for key in range(API_KEYS) if (n := metrics.counts[key])],
    )
    yield Family(
        "momus_request_errors",
        "counter",
        "Errors that were answered, those of each partition, topic, group and member included",
        [({"api": api_label(key), "error": error_label(code)}, n) for (key, code), n in metrics.errors.items()],
    )
    for name, about in (
        ("bytes_in", "Bytes received"),
        ("bytes_out", "Bytes sent"),
        ("connections_accepted", "Connections accepted"),
        ("connections_refused", "Connections refused"),
    ):
        yield Family(f"momus_{name}", "counter", about, [({}, getattr(metrics, name))])
    if metrics.spans:
        samples: list[tuple[Labels, float]] = [({"outcome": outcome}, n) for outcome, n in metrics.spans.items()]
        yield Family("momus_spans", "counter", "Spans of --otel, by what became of them", samples)


def latencies(metrics: Metrics) -> Iterator[tuple[list[str], list[tuple[str, float]], float]]:
    """((API, part), (bound, how many took no longer) of each bucket, sum of seconds) of each histogram."""
    for (api_key, part), histogram in metrics.latencies.items():
        total, buckets = 0, []
        for bound_s, n in zip((*map(str, BOUNDS_S), "+Inf"), histogram.buckets, strict=True):
            total += n
            buckets.append((bound_s, float(total)))
        yield [api_label(api_key), PARTS[part]], buckets, histogram.seconds
