"""Dead-letter queues of share groups (KIP-1191): what is rejected, how many letters there are, where the group reads.

Needs Apache Kafka 4.4 or newer. Kafka writes to the queue after its answer, so each acknowledgement is followed by a
wait. Letters are counted, not compared: how they are cut into batches is a matter of speed there, and so is the start
offset that is stored with the last of several states, which DescribeShareGroupOffsets tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from differential.generate.builder import TIMEOUT_MS, Case, Mix, said
from differential.generate.share import (
    GROUP,
    PARTITIONS,
    READS,
    TOPIC,
    acknowledge,
    acks,
    fetch,
    join_and_read,
    produce,
)
from differential.plain import Values

QUEUE = "%d0"
SENDS_MS = 700  # Kafka writes the state, the letter and the state again
TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
SETTINGS = {PREFIX: ""}  # the names of a case do not begin with dlq.
TOPIC_TYPE, GROUP_TYPE = 2, 32


def _set(case: Case, kind: int, name: str, configs: Mapping[str, str | None]) -> Values:
    rows = [
        {"Name": key, "ConfigOperation": 0 if value is not None else 1, "Value": value}
        for key, value in configs.items()
    ]
    body = {"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": rows}]}
    return case.add("IncrementalAlterConfigs", 1, body, settle=SENDS_MS)


def _ends(case: Case) -> Values:
    """How many letters there are."""
    rows = [{"PartitionIndex": index, "CurrentLeaderEpoch": -1, "Timestamp": -1} for index in range(PARTITIONS)]
    body = {"ReplicaId": -1, "IsolationLevel": 0, "Topics": [{"Name": QUEUE, "Partitions": rows}], "TimeoutMs": 5000}
    return case.add("ListOffsets", 9, body)


def dead_letters(case: Case) -> None:
    """One group of up to three members, with a queue that may be written to, or may not."""
    members = list(READS)[: 1 + case.count(2, 3, 3)]
    queue_partitions = case.one(1, 2, 2, 3)
    case.topics({TOPIC: PARTITIONS, QUEUE: queue_partitions}, {ENABLE: case.one("true", "true", "true", "false")})
    first: dict[str, str | None] = {
        "share.auto.offset.reset": "earliest",
        TOPIC_NAME: case.one(QUEUE, QUEUE, QUEUE, QUEUE, "%nope", "__d0", "d 0", ""),
        COPY: case.one("true", "false"),
    }
    if case.maybe(0.5):
        first["share.delivery.count.limit"] = "2"
    _set(case, GROUP_TYPE, GROUP, first)
    join_and_read(case, members)

    def some() -> str:
        return case.rng.choice(members)

    def say(types: tuple[int, ...] = (1, 2, 2, 3, 3, 3, 0)) -> Values:
        member = some()
        kinds = [case.rng.choice(types) for _ in range(case.one(1, 1, 4))]
        step = acknowledge(case, member, acks(member, kinds, case.one(1.0, 1.0, 0.5)))
        step["settle"] = SENDS_MS
        return step

    def read() -> Values:
        member = some()
        return fetch(case, member, said("share:" + member, 0, 0), [])

    def close() -> Values:
        member = some()
        step = acknowledge(case, member, [], ShareSessionEpoch=-1)
        step["settle"] = SENDS_MS
        fetch(case, member, 0, [])
        return step

    mix = Mix(case, 0.0)
    mix.action(5, lambda: produce(case, case.one(0, 1)))
    mix.action(6, read)
    mix.action(8, say)
    mix.action(1, close)
    mix.action(4, lambda: _ends(case))
    mix.action(0.6, lambda: _set(case, GROUP_TYPE, GROUP, {TOPIC_NAME: case.one(QUEUE, QUEUE, "", "%nope", None)}))
    mix.action(0.4, lambda: _set(case, TOPIC_TYPE, QUEUE, {ENABLE: case.one("true", "false", "x")}))
    mix.action(0.3, lambda: _set(case, TOPIC_TYPE, QUEUE, {"max.message.bytes": case.one("200", "300", "1000", "1")}))
    mix.action(0.2, lambda: _set(case, TOPIC_TYPE, QUEUE, {"cleanup.policy": case.one("compact", "delete")}))
    mix.action(0.2, lambda: case.add("DeleteTopics", 6, {"Topics": [{"Name": QUEUE}], "TimeoutMs": TIMEOUT_MS}))
    mix.run(case.rng.randint(8, 18))
    _ends(case)
