"""The profiles of a run: which cases it plays and which settings the two brokers have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from differential.generate.admin import admin
from differential.generate.anything import anything
from differential.generate.builder import Case
from differential.generate.classic import classic
from differential.generate.cluster import cluster, foreign_versions
from differential.generate.consumer import ConsumerGroup, consumer
from differential.generate.damage import spare_own_settings
from differential.generate.dead_letters import SETTINGS, dead_letters
from differential.generate.expiry import expiring_members, expiring_offsets, expiring_records, expiring_transactions
from differential.generate.offsets import offsets
from differential.generate.records import log
from differential.generate.share import share
from differential.generate.stories import stories
from differential.generate.streams import streams
from differential.generate.transactions import transactions
from differential.plain import Values, words

Family = Callable[[Case], None]

FAMILIES: Final[dict[str, tuple[Family, float]]] = {
    "classic": (classic, 20),
    "consumer": (consumer, 22),
    "streams": (streams, 10),
    "offsets": (offsets, 12),
    "transactions": (transactions, 22),
    "log": (log, 18),
    "admin": (admin, 12),
    "cluster": (cluster, 5),
    "anything": (anything, 8),
    "versions": (foreign_versions, 3),
    "stories": (stories, 10),
}
LASTS: Final = ("classic", "consumer", "offsets", "transactions", "log", "admin")  # what a restart has to bring back

ON_NODES: Final = ("classic", "consumer", "offsets", "transactions", "log")
# What each broker answers for itself, and brokers share out by chance
NODES_OWN: Final = words("ListGroups ListTransactions DescribeLogDirs DescribeCluster")


class Profile(NamedTuple):
    """How a run is set up."""

    families: Mapping[str, tuple[Family, float]]
    settings: Mapping[str, object] = {}  # of both brokers
    momus: Mapping[str, object] = {}  # of momus alone
    kafka: Mapping[str, object] = {}  # of Kafka alone
    nodes: int = 1
    restarts: int = 0  # of each case
    wrong_node: float = 0.0  # the share of requests that go to a node that does not lead
    workers: int = 0  # 0: one for each processor
    rules: str = ""  # a file of more rules


def uniform(case: Case) -> None:
    """Several members of new groups whose assignor is the uniform one."""
    consumer(case, ConsumerGroup(case, ("uniform",), 4), 0)


def ranged(case: Case) -> None:
    """The same with the range assignor, classic members among them."""
    consumer(case, ConsumerGroup(case, ("range",), 4), 0.5)


def both_assignors(case: Case) -> None:
    """Members that ask for different assignors."""
    group = ConsumerGroup(case, ("range", "uniform", None), 4)
    consumer(case, group, 0.2)


SHORT: Final[dict[str, object]] = {
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 800,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.streams.min.session.timeout.ms": 500,
    "group.streams.session.timeout.ms": 800,
    "group.streams.min.heartbeat.interval.ms": 100,
    "group.streams.heartbeat.interval.ms": 300,
    "offsets.retention.check.interval.ms": 200,
    "log.retention.check.interval.ms": 200,
    "producer.id.expiration.ms": 1000,
    "producer.id.expiration.check.interval.ms": 200,
    "transactional.id.expiration.ms": 60_000,
}

PROFILES: Final[dict[str, Profile]] = {
    "default": Profile(FAMILIES),
    "latest": Profile(
        {name: FAMILIES[name] for name in ("log", "transactions")},
        momus={"producer.state": "latest"},
        rules="latest.json",
    ),
    "assignors": Profile({"uniform": (uniform, 3), "range": (ranged, 3), "both": (both_assignors, 1)}),
    "restarts": Profile(
        {name: FAMILIES[name] for name in LASTS},
        kafka={"broker.session.timeout.ms": 6000},  # a killed broker comes back when its session is over
        restarts=1,
        workers=1,
    ),
    "nodes": Profile(
        {name: FAMILIES[name] for name in ON_NODES}, momus={"offsets.any.broker": "false"}, nodes=3, wrong_node=0.05
    ),
    "share": Profile(
        {"share": (share, 1)},
        kafka={"group.share.assignment.interval.ms": 0},
        momus={"group.share.first.assignment": "next-heartbeat"},
        workers=6,  # they wait most of the time
    ),
    "letters": Profile(
        {"dead_letters": (dead_letters, 1)},
        SETTINGS,
        kafka={"group.share.assignment.interval.ms": 0},
        momus={"group.share.first.assignment": "next-heartbeat"},
        workers=6,  # they wait most of the time
    ),
    "expiry": Profile(
        {
            "members": (expiring_members, 3),
            "transactions": (expiring_transactions, 2),
            "offsets": (expiring_offsets, 2),
            "records": (expiring_records, 2),
        },
        SHORT,
        workers=6,  # they sleep most of the time
    ),
}


def place_partitions(topics: list[Values], nodes: int) -> None:
    """Say which node leads which partition: left alone, Kafka draws lots."""
    for topic in topics:
        count = topic.pop("NumPartitions")
        topic["Assignments"] = [{"PartitionIndex": at, "BrokerIds": [1 + at % nodes]} for at in range(count)]
        topic["NumPartitions"] = topic["ReplicationFactor"] = -1


def make_case(profile: str, seed: int, only: list[str] | None = None) -> tuple[str, list[Values]]:
    """The family and the steps of a seed."""
    chosen = PROFILES[profile]
    case = Case(seed)
    names = [name for name in chosen.families if not only or name in only]
    name = case.rng.choices(names, [chosen.families[each][1] for each in names])[0]
    chosen.families[name][0](case)
    steps = case.steps
    for step in steps:
        spare_own_settings(step)
    if chosen.nodes > 1:
        steps = [step for step in steps if step.get("api") not in NODES_OWN]
        for step in steps:
            if step.get("api") == "CreateTopics":
                place_partitions(step["b"]["Topics"] or [], chosen.nodes)
    if chosen.wrong_node:
        for step in steps:
            if "api" in step and case.maybe(chosen.wrong_node):
                step["off"] = 1
    for _ in range(chosen.restarts):
        steps.insert(case.rng.randint(len(steps) // 3, len(steps)), {"do": "restart"})
    return name, steps
