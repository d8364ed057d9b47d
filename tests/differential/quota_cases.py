"""Which quota of a client counts: random quotas of users, client ids and their defaults, and a request of each kind.

A quota is tight, and one request exceeds it, or loose, and none does; so what is throttled tells whose quota counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from protocol.messages import fetch, quotas, topics
from protocol.messages.cluster import MetadataRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

RECORDED = Path(__file__).parent.parent / "conformance" / "recorded_quotas.json"
SEED = 1
CASES = 240
TOPIC = "measured"
SIZE = 20_000  # bytes of a record
USERS, CLIENT_IDS = ("alice", "bob"), ("one", "two")
STEP_MS = 150  # between a change and a request
Call = Callable[[Any, int], Any]

TIGHT = {
    "producer_byte_rate": 100.0,
    "consumer_byte_rate": 100.0,
    "request_percentage": 0.00001,
    "controller_mutation_rate": 0.01,
}
LOOSE = {
    "producer_byte_rate": 1e9,
    "consumer_byte_rate": 1e9,
    "request_percentage": 1e6,
    "controller_mutation_rate": 1e6,
}
ENTITIES: tuple[dict[str, str | None], ...] = tuple(
    {kind: name for kind, name in (("user", user), ("client-id", client)) if name != ""}
    for user in ("alice", None, "")
    for client in ("one", None, "")
    if user != "" or client != ""
)


class Case(NamedTuple):
    """Quotas, and who asks."""

    key: str
    given: tuple[tuple[int, bool], ...]  # (number of the entity, whether it is tight)
    user: str
    client_id: str
    version: int  # of CreateTopics


def cases(seed: int) -> list[Case]:
    """The cases of a seed."""
    rng = random.Random(seed)
    found = []
    for number in range(CASES):
        given = [(at, rng.random() < 0.5) for at in range(len(ENTITIES)) if rng.random() < 0.5]
        key = list(TIGHT)[number % len(TIGHT)]
        found.append(Case(key, tuple(given), rng.choice(USERS), rng.choice(CLIENT_IDS), rng.choice((5, 7))))
    return found


def change(call: Call, case: Case, *, remove: bool) -> None:
    """Set the quotas of a case, or take them away."""
    entries = []
    for at, is_tight in case.given:
        parts = [quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in ENTITIES[at].items()]
        value = 0.0 if remove else (TIGHT if is_tight else LOOSE)[case.key]
        op = quotas.OpData(key=case.key, value=value, remove=remove)
        entries.append(quotas.AlterClientQuotasRequestEntryData(entity=parts, ops=[op]))
    if entries:
        answer = call(quotas.AlterClientQuotasRequest(entries=entries, validate_only=False), 1)
        assert not any(each.error_code for each in answer.entries), answer


def prepare(call: Call) -> None:
    """Make the topic, with a record in it."""
    topic = topics.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    topic.configs = [topics.CreatableTopicConfig(name="retention.ms", value="-1")]  # its record is old
    call(topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
    assert not call(produce_request(), 9).responses[0].partition_responses[0].error_code


def free_admin(call: Call) -> None:
    """Let no quota of a case slow down who changes them."""
    op = quotas.OpData(key="request_percentage", value=1e6)
    parts = [quotas.EntityData(entity_type="user", entity_name="admin")]
    entry = quotas.AlterClientQuotasRequestEntryData(entity=parts, ops=[op])
    assert not call(quotas.AlterClientQuotasRequest(entries=[entry], validate_only=False), 1).entries[0].error_code


def produce_request() -> ProduceRequest:
    """One record."""
    data = PartitionProduceData(index=0, records=build_batch([(None, b"x" * SIZE)], timestamp_ms=1_700_000_000_000))
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    return ProduceRequest(transactional_id=None, acks=1, timeout_ms=10_000, topic_data=[topic])


def ask(call: Call, case: Case, number: int) -> list[Any]:
    """Whether the client is throttled, and what is refused: no times, which are those of machines."""
    if case.key == "producer_byte_rate":
        return [call(produce_request(), 9).throttle_time_ms > 0]
    if case.key == "consumer_byte_rate":
        wanted = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = fetch.FetchTopic(topic=TOPIC, partitions=[wanted])
        answer = call(fetch.FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[topic]), 11)
        return [answer.throttle_time_ms > 0, any(p.records for each in answer.responses for p in each.partitions)]
    if case.key == "request_percentage":
        return [any(call(MetadataRequest(topics=[]), 8).throttle_time_ms > 0 for _ in range(3))]
    made = [
        topics.CreatableTopic(name=f"of-{number}-{index}", num_partitions=2, replication_factor=1) for index in range(3)
    ]
    answer = call(topics.CreateTopicsRequest(topics=made, timeout_ms=10_000), case.version)
    return [answer.throttle_time_ms > 0, any(each.error_code == 89 for each in answer.topics)]
