"""What a snapshot, a fork and a restore cost: a cluster with 100,000 committed offsets and 10 topics of 10 MB.

    python -m benchmarks.snapshots [--rounds 20] [--flush memory os fsync]

Over the control plane of one `momus serve`. Each round takes a snapshot, forks the cluster from it, reads from the fork
the offsets of a group and a record, writes to both, restores the cluster, and removes fork and snapshot. Printed: the
median and the slowest of each step, in milliseconds; steps that begin with `first` are the first requests to a fork.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict

from momus import Broker
from momus.client.wire import Connection
from momus.cluster import Cluster
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

TOPICS = 10
BATCHES = 640
BATCH_BYTES = 16_384
GROUPS = 1000
PARTITIONS = 100


class Client:
    """A socket to a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        self.connection = Connection(host, int(port), 60.0)

    def produce(self, topic: str, records: bytes) -> None:
        """One batch to partition 0."""
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[data])
        answer = self.connection.call(request, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0

    def commit(self, group: str) -> None:
        """An offset of each partition."""
        rows = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=index, committed_metadata="")
            for index in range(PARTITIONS)
        ]
        topics = [OffsetCommitRequestTopic(name="orders", partitions=rows)]
        request = OffsetCommitRequest(group_id=group, member_id="", generation_id_or_member_epoch=-1, topics=topics)
        answer = self.connection.call(request, 8)
        assert not any(row.error_code for row in answer.topics[0].partitions)

    def committed(self, group: str) -> int:
        """How many offsets a group has; asks again while its shard is loaded."""
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        while (answer := self.connection.call(request, 8).groups[0]).error_code:
            time.sleep(0.001)
        return sum(len(row.partitions) for row in answer.topics)

    def fetch(self, topic: str) -> int:
        """Bytes read from the beginning of partition 0."""
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=topic, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=topics)
        return len(self.connection.call(request, 12).responses[0].partitions[0].records)


def fill(cluster: Cluster) -> None:
    """The topics and the offsets."""
    cluster.create_topic("orders", PARTITIONS)
    client = Client(cluster)
    value = os.urandom(BATCH_BYTES)
    for number in range(TOPICS):
        cluster.create_topic(f"topic-{number}")
        for _ in range(BATCHES):
            client.produce(f"topic-{number}", build_batch([(None, value)], timestamp_ms=1_790_000_000_000))
    for number in range(GROUPS):
        client.commit(f"group-{number}")
    client.connection.close()


def measure(flush: str, rounds: int) -> None:
    """Print a table for one level."""
    taken: dict[str, list[float]] = defaultdict(list)
    small = build_batch([(None, b"x")], timestamp_ms=1_790_000_000_000)
    with Broker(flush=flush) as broker:
        cluster = broker.create_cluster(flush=flush)
        fill(cluster)
        for number in range(rounds):
            begin_s = time.perf_counter()

            def lap(step: str) -> None:
                nonlocal begin_s
                now_s = time.perf_counter()
                taken[step].append((now_s - begin_s) * 1000)
                begin_s = time.perf_counter()

            snapshot = cluster.snapshot()
            lap("snapshot")
            fork = cluster.fork(snapshot)
            lap("fork")
            client = Client(fork)
            assert client.committed(f"group-{number}") == PARTITIONS
            lap("first offsets")
            assert client.fetch("topic-0") > BATCH_BYTES
            lap("first read")
            client.produce("topic-0", small)
            lap("first write")
            client.connection.close()
            client = Client(cluster)
            client.produce("topic-1", small)
            client.connection.close()
            begin_s = time.perf_counter()
            cluster.restore(snapshot)
            lap("restore")
            fork.close()
            cluster.remove_snapshot(snapshot)
    print(f"{flush:>14} {'p50':>8} {'max':>8}")
    for step, times in taken.items():
        print(f"{step:>14} {statistics.median(times):>8.2f} {max(times):>8.2f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--flush", nargs="+", default=["memory", "os", "fsync"], choices=("memory", "os", "fsync"))
    options = parser.parse_args()
    for flush in options.flush:
        measure(flush, options.rounds)


if __name__ == "__main__":
    main()
