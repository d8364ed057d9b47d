"""Cases in which time runs out: sessions, transactions, committed offsets, records and producers.

Sessions end after 0.8 seconds, rebalances after 1.4, and time passes in steps of 0.6: no sum of two falls on a step,
and no two timers on one another. What else expires does so after one second, in steps of 1.8.
"""

from __future__ import annotations

from typing import Final

from differential.generate import offsets as o
from differential.generate import records as r
from differential.generate.builder import TIMEOUT_MS, Case, Mix, said
from differential.generate.classic import ClassicGroup
from differential.generate.consumer import ConsumerGroup
from differential.generate.streams import streams_beat, streams_join, topology
from differential.generate.transactions import Producers
from differential.plain import Values

SECOND_MS: Final = 1000
STEP_MS: Final = 1800
SESSION_MS: Final = 800
REBALANCE_MS: Final = 1400
BEAT_MS: Final = 600  # nothing expires in it that has just been refreshed


def expiring_members(case: Case) -> None:
    """Groups whose members fall silent."""
    how = case.do({"classic": 4, "consumer": 4, "streams": 2})
    if how == "classic":
        _classic(case)
    elif how == "consumer":
        _consumer(case)
    else:
        _streams(case)
    o.group_reads(case, [o.GROUP])


def _classic(case: Case) -> None:
    group = ClassicGroup(case, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS)
    group.bring_up()
    for _ in range(case.rng.randint(1, 3)):
        awake = case.rng.sample(group.members, case.rng.randint(0, len(group.members)))
        case.pass_time(BEAT_MS)
        for member in awake:
            group.heartbeat(member, True)
        case.pass_time(BEAT_MS)
        o.group_reads(case, [o.GROUP])
        for member in awake:
            group.heartbeat(member)
        if case.maybe(0.4):
            group.join(group.some())
        if case.maybe(0.4):
            group.commit(group.some())


def _consumer(case: Case) -> None:
    group = ConsumerGroup(case)
    for member in group.members:
        group.join(member)
    group.settle(1)
    for _ in range(case.rng.randint(1, 3)):
        awake = case.rng.sample(group.members, case.rng.randint(0, len(group.members)))
        case.pass_time(BEAT_MS)
        for member in awake:
            group.beat(member, said("ep:" + member), group.owned(member))
        case.pass_time(BEAT_MS)
        o.group_reads(case, [o.GROUP])
        for member in awake:
            group.beat(member, said("ep:" + member), group.owned(member))
        if case.maybe(0.4):
            group.commit(group.some())
        if case.maybe(0.3):
            group.join(group.some())


def _streams(case: Case) -> None:
    plan = topology(case)
    streams_join(case, "q0", plan)
    streams_beat(case, "q0", said("ep:q0"), True)
    for _ in range(case.rng.randint(1, 2)):
        case.pass_time(case.one(BEAT_MS, STEP_MS))
        streams_beat(case, "q0", said("ep:q0"), case.maybe(0.5))
        case.add("StreamsGroupDescribe", 0, {"GroupIds": [o.GROUP]})


def expiring_transactions(case: Case) -> None:
    """Transactions of one second that nobody ends."""
    r.make_topics(case, False)
    producers = Producers(case)
    for label in producers.labels:
        producers.init(label, TransactionTimeoutMs=case.one(SECOND_MS, SECOND_MS, 60_000))
    mix = Mix(case, 0)
    mix.action(6, lambda: producers.add(producers.some()))
    mix.action(6, lambda: producers.produce(producers.some()))
    mix.action(3, lambda: producers.offsets(producers.some()))
    mix.action(2, lambda: producers.end(producers.some()))
    mix.action(1, lambda: producers.describe(producers.some()))
    for _ in range(case.rng.randint(1, 3)):
        mix.run(case.rng.randint(2, 6))
        case.pass_time(STEP_MS)
        producers.describe(producers.some())
        r.log_reads(case)
        o.offset_fetch(case, [o.GROUP])
        mix.run(case.rng.randint(1, 4))
        if case.maybe(0.4):
            producers.init(producers.some())


def expiring_offsets(case: Case) -> None:
    """Offsets with a retention time of their own (versions 2 to 4), and groups that end with them."""
    for _ in range(case.rng.randint(2, 5)):
        step = o.offset_commit(case, case.one(o.GROUP, "%g1"), version=case.one(2, 3, 4, 4), names=["&s0", "&s1"])
        step["b"]["RetentionTimeMs"] = case.one(SECOND_MS, SECOND_MS, 60_000, 0, -1)
    if case.maybe(0.3):
        o.init_transactional(case, "%x0", "p0")
        o.transactional_commit(case, "%x0", "p0", o.GROUP, names=["&s0", "&s1"])
    case.pass_time(STEP_MS)
    for group in (o.GROUP, "%g1"):
        o.offset_fetch(case, [group])
        o.group_reads(case, [group])
    if case.maybe(0.5):
        o.offset_commit(case, o.GROUP, names=["&s0"])
        o.offset_delete(case, o.GROUP)
        o.group_reads(case, [o.GROUP])
        case.pass_time(STEP_MS)
    o.group_reads(case, [o.GROUP])
    o.offset_fetch(case, [o.GROUP])


def expiring_records(case: Case) -> None:
    """Records older than their topic keeps, and idempotent producers that have not written for long."""
    configs: dict[str, str] = case.one(
        {"retention.ms": "1000"}, {"retention.ms": "1000", "segment.ms": "500"}, {"retention.bytes": "0"}
    )
    case.topics({"%t0": 1, "%t1": 1}, {**configs, "file.delete.delay.ms": "0"})
    nobody = {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    case.add("InitProducerId", 4, nobody, label="p0")
    for _ in range(case.rng.randint(1, 3)):
        for _ in range(case.rng.randint(1, 4)):
            _timely(case, r.produce(case, case.one("p0", None), version=case.version("Produce", 7), faulty=0))
        case.pass_time(STEP_MS)
        for _ in range(3):
            r.log_reads(case)
        if case.maybe(0.5):
            r.produce(case, "p0", faulty=0)


def _timely(case: Case, step: Values) -> None:
    """Most batches are of now: they expire one second later."""
    step["b"]["TimeoutMs"] = TIMEOUT_MS
    for topic in step["b"]["TopicData"]:
        for part in topic["PartitionData"]:
            if part["Records"] and case.maybe(0.8):
                for row in part["Records"]["list"]:
                    row["ts"] = {"$f": "now", "add": 0}
