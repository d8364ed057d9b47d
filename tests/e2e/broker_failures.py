"""Brokers that stop, start and lag, and what a cluster of three then says: a script for Apache Kafka and for momus.

`python tests/e2e/broker_failures.py FIRST:PORT "command {word} {id}"` plays it on a running cluster, whose broker 1 is
never stopped, and prints the JSON that test_broker_failures.py compares momus with. The words are `stop`, `start`,
`lag` (SIGSTOP), `release` (SIGCONT) and `wait` (for longer than replica.lag.time.max.ms). Apache's controller must be
patient with a broker that lags: broker.session.timeout.ms=600000.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from momus.cli.records.client import RecordClient
from momus.client.kafka_client import LATEST
from protocol.errors import ErrorCode
from protocol.messages.cluster import DescribeTopicPartitionsRequest, DescribeTopicPartitionsRequestTopicRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.reassign import ElectLeadersRequest, ElectLeadersRequestTopicPartitions
from protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.record_batch import build_batch

# topic -> (replicas, settings)
TOPICS: dict[str, tuple[list[int], dict[str, str]]] = {
    "two": ([2, 3], {}),
    "two-min-two": ([2, 3], {"min.insync.replicas": "2"}),
    "two-min-three": ([2, 3], {"min.insync.replicas": "3"}),
    "three-min-two": ([2, 3, 1], {"min.insync.replicas": "2"}),
    "unclean": ([3, 2], {"unclean.leader.election.enable": "true"}),
    "last-first": ([3, 2], {}),
}
STEPS = (
    *("", "stop 3", "stop 2", "start 3", "start 2", "stop 2", "stop 3", "start 2", "start 3"),
    *("stop 3", "stop 2", "start 3", "elect 1", "start 2", "elect 0"),
    *("lag 3", "wait 3", "release 3"),
)
PRODUCED = ("stop 3", "stop 2", "start 2", "lag 3", "wait 3", "release 3")  # behind these each topic is written to
LED_BY_TWO = [name for name, (replicas, _) in TOPICS.items() if replicas[0] == 2]  # the others stand still with 3


def play(client: RecordClient, do: Callable[[str, int], object], settle_s: float) -> list[dict[str, Any]]:
    """What is seen after each step. `settle_s`: for how long it must stay the same before it counts."""
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, (replicas, configs) in TOPICS.items()
    ]
    made = client._call(None, CreateTopicsRequest(topics=topics, timeout_ms=30_000))
    assert all(each.error_code == 0 for each in made.topics), made
    seen = []
    for step in STEPS:
        word, _, number = step.partition(" ")
        names = LED_BY_TWO if word in ("lag", "wait", "release") else list(TOPICS)
        elected = _elect(client, int(number)) if word == "elect" else {}
        if step and word != "elect":
            do(word, int(number))
        shown = _settled(client, names, settle_s)
        for name, code in elected.items():
            shown[name]["elected"] = code
        if step in PRODUCED:
            for name, row in shown.items():
                row["acks"] = {acks: _produce(client, name, acks) for acks in (-1, 1)}
            ends = _settled(client, names, settle_s)
            for name, row in shown.items():
                row["end"] = ends[name]["end"]
        seen.append({"step": step, "topics": shown})
    return seen


def _elect(client: RecordClient, kind: int) -> dict[str, str]:
    """The error of an election of each topic's leader: 0 preferred, 1 unclean."""
    asked = [ElectLeadersRequestTopicPartitions(topic=name, partitions=[0]) for name in TOPICS]
    answer = client._call(None, ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=10_000))
    return {each.topic: ErrorCode(each.partition_result[0].error_code).name for each in answer.replica_election_results}


def _settled(client: RecordClient, names: list[str], settle_s: float) -> dict[str, Any]:
    shown, since = _describe(client, names), time.monotonic()
    while time.monotonic() - since < settle_s:
        time.sleep(0.3)
        found = _describe(client, names)
        if found != shown:
            shown, since = found, time.monotonic()
    return shown


def _describe(client: RecordClient, names: list[str]) -> dict[str, Any]:
    client.cluster()
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names]
    )
    rows = {}
    for topic in client._call(None, request).topics:
        (partition,) = topic.partitions
        try:
            end = client._offsets(topic.name, {0: partition.leader_id}, LATEST).get(0)
        except OSError:  # the connection was from before its stop
            end = client._offsets(topic.name, {0: partition.leader_id}, LATEST).get(0)
        rows[topic.name] = {
            "error": partition.error_code,
            "leader": partition.leader_id,
            "replicas": partition.replica_nodes,
            "isr": sorted(partition.isr_nodes),
            "elr": sorted(partition.eligible_leader_replicas or []),
            "last_known_elr": sorted(partition.last_known_elr or []),
            "offline": sorted(partition.offline_replicas),
            "end": end,
        }
    return rows


def _produce(client: RecordClient, topic: str, acks: int) -> str:
    """The error of one record, by name."""
    row = client.cluster([topic]).topics[0].partitions[0]
    if row.leader_id not in client._nodes:
        return f"no leader: {ErrorCode(row.error_code).name}"
    data = PartitionProduceData(index=0, records=build_batch([(None, b"v")], timestamp_ms=1))
    request = ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    answer = client._call(row.leader_id, request, 9)  # by the name of the topic
    return ErrorCode(answer.responses[0].partition_responses[0].error_code).name


def main() -> None:
    """Play on a cluster that is there."""
    address, command = sys.argv[1:]

    def do(word: str, node: int) -> None:
        subprocess.run(command.format(word=word, id=node), shell=True, check=True, stdout=sys.stderr)

    with RecordClient(address, timeout_s=30) as client:
        sys.stdout.write(json.dumps(play(client, do, 4.0), indent=1))


if __name__ == "__main__":
    main()
