"""sarama: what kafka_exporter and Burrow, which are built on it, show of a cluster equals what the admin API says.

These two, kminion, the backend of Redpanda Console and kafbat/kafka-ui cannot be had here: the Go module proxy refuses
them, Maven Central has no jar. Their client, their requests and their views are what this script has of them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above

TOPICS = {"orders": 3, "bills": 1}
RECORDS, DELETED = 300, 40
GROUP, IDLE = "workers", "idle"


def program() -> Path:
    """The compiled Go program; go.sum has the hashes of what it is made of."""
    made = kit.edition(HERE, "main.go", "go.mod", "go.sum") / "sarama"
    if not made.exists():
        kit.fetch(("go", "build", "-mod=readonly", "-o", made, "."), cwd=HERE)
    return made


def seen_by_admin(bootstrap: str, data: Path) -> dict[str, Any]:
    """The same view by librdkafka's admin client; sizes by the files."""
    admin = kit.admin(bootstrap)
    metadata = admin.list_topics(timeout=60)
    places = [
        TopicPartition(topic.topic, index) for topic in metadata.topics.values() for index in sorted(topic.partitions)
    ]

    def offsets(spec: Any) -> dict[tuple[str, int], int]:
        futures = admin.list_offsets(dict.fromkeys(places, spec), isolation_level=IsolationLevel.READ_UNCOMMITTED)
        return {(place.topic, place.partition): future.result(60).offset for place, future in futures.items()}

    oldest, newest = offsets(OffsetSpec.earliest()), offsets(OffsetSpec.latest())
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in metadata.topics]
    configs = {r.name: f.result(60)["retention.ms"].value for r, f in admin.describe_configs(resources).items()}
    listed = [each.group_id for each in admin.list_consumer_groups().result(60).valid]
    groups = {}
    for name, future in admin.describe_consumer_groups(listed).items():
        found = future.result(60)
        committed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(60)
        groups[name] = {
            "State": "PreparingRebalance" if "PREPARING" in found.state.name else found.state.name.title(),
            "Protocol": found.partition_assignor,
            "Members": {
                each.client_id: sorted(f"{p.topic}-{p.partition}" for p in each.assignment.topic_partitions)
                for each in found.members
            },
            "Committed": {f"{p.topic}-{p.partition}": p.offset for p in committed.topic_partitions},
        }
    return {
        "Brokers": {str(each.id): f"{each.host}:{each.port}" for each in metadata.brokers.values()},
        "Topics": {
            topic.topic: [
                {
                    "Leader": part.leader,
                    "Replicas": len(part.replicas),
                    "InSync": len(part.isrs),
                    "Oldest": oldest[topic.topic, index],
                    "Newest": newest[topic.topic, index],
                }
                for index, part in sorted(topic.partitions.items())
            ]
            for topic in metadata.topics.values()
        },
        "Configs": configs,
        "Bytes": {
            f"{p.topic}-{p.partition}": sum(
                path.stat().st_size for path in (data / f"{p.topic}-{p.partition}").glob("*.log")
            )
            for p in places
        },
        "Groups": groups,
    }


def member(bootstrap: str, number: int) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "client.id": f"worker-{number}",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "roundrobin",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    made.subscribe(list(TOPICS))
    return made


def read_half(bootstrap: str, members: list[Consumer]) -> None:
    """Both members have partitions, and have committed what they read so far."""
    read = 0

    def enough() -> bool:
        nonlocal read
        read += sum(message is not None and message.error() is None for message in (m.poll(0.1) for m in members))
        return read >= RECORDS // 2 and all(len(m.assignment()) == 2 for m in members)

    kit.until(enough, "both members read")
    for each in members:
        each.commit(asynchronous=False)


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(Broker(brokers=2, data_dir=folder / "data"))
        bootstrap = broker.bootstrap_servers
        for topic, partitions in TOPICS.items():
            kit.make_topic(bootstrap, topic, partitions)
            kit.write(bootstrap, topic, [f"record {n}" for n in range(RECORDS)], partitions)
        place = TopicPartition("orders", 0, DELETED)
        kit.admin(bootstrap).delete_records([place])[place].result(60)
        idle = ConsumerGroupTopicPartitions(IDLE, [TopicPartition("bills", 0, 7)])
        kit.admin(bootstrap).alter_consumer_group_offsets([idle])[IDLE].result(60)
        members = [member(bootstrap, number) for number in range(2)]
        for each in members:
            stack.callback(each.close)
        read_half(bootstrap, members)
        done = subprocess.run([str(program()), bootstrap], capture_output=True, text=True, timeout=kit.LIMIT_S)
        assert done.returncode == 0, done.stderr
        monitor, admin = json.loads(done.stdout), seen_by_admin(bootstrap, folder / "data")
        assert set(monitor) == set(admin)
        for part, seen in monitor.items():
            assert seen == admin[part], (part, seen, admin[part])
        assert monitor["Topics"]["orders"][0]["Oldest"] == DELETED
        assert sorted(map(len, monitor["Groups"][GROUP]["Members"].values())) == [2, 2]
        assert monitor["Groups"][GROUP]["Committed"]
        parts = sum(map(len, monitor["Topics"].values()))
    return (
        f"brokers, {parts} partitions with offsets, leaders and replicas, settings, log sizes, groups with members, "
        "assignments and commits equal what another admin client and the files say. The programs themselves, kminion "
        "and Redpanda Console's backend could not be had (the Go module proxy answers 403), nor kafbat/kafka-ui (no "
        "jar on Maven Central)"
    )


if __name__ == "__main__":
    version = next(line.split()[-1] for line in (HERE / "go.mod").read_text().splitlines() if "IBM/sarama" in line)
    kit.run("sarama, as kafka_exporter and Burrow use it", version.removeprefix("v"), prove)
