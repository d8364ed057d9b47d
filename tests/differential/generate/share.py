"""Share groups of KIP-932: heartbeats, ShareFetch with and without acknowledgements, ShareAcknowledge, offsets.

Each member reads one partition: in which order Kafka serves several is that of its hash tables. A request that reads
gives nothing back: whether Kafka hands that out again in the same answer depends on its speed.
"""

from __future__ import annotations

from collections.abc import Collection

from differential.generate import offsets as o
from differential.generate.builder import TIME, TIMEOUT_MS, Case, Mix, said, topic_id
from differential.generate.classic import consumer_heartbeat_of_a_stranger
from differential.plain import Plain, Values

GROUP = o.GROUP
TOPIC = "%q0"
PARTITIONS = 2
WAIT_MS = 300  # for records that are there; Kafka reads its stored state first
MAKES_STATE_MS = 800  # Kafka makes the state of share partitions behind a heartbeat
READS = {"h0": 0, "h1": 0, "h2": 1}  # member -> its partition


def heartbeat(case: Case, member: str, epoch: Plain, topics: list[str] | None = None, **more: Plain) -> Values:
    body = {"GroupId": GROUP, "MemberId": "%" + member, "MemberEpoch": epoch, "SubscribedTopicNames": topics, **more}
    settle = MAKES_STATE_MS if topics else 0
    return case.add("ShareGroupHeartbeat", 1, body, member, member, settle=settle)


def acks(member: str, types: list[int], part: float = 1.0) -> Values:
    """Batches of what the member holds, or of the first part of it; the types one after the other."""
    return {"$f": "acks", "m": member, "types": types, "part": part}


def join_and_read(case: Case, members: Collection[str]) -> None:
    """All members join and learn their partitions; each partition gets records, each member a session."""
    for member in members:
        heartbeat(case, member, 0, [TOPIC])
    for member in members:
        heartbeat(case, member, said("ep:" + member))
    for index in range(PARTITIONS):
        produce(case, index)
    for member in members:
        fetch(case, member, 0, [])


def _types(case: Case, gives_back: bool) -> list[int]:
    kinds = (1, 1, 1, 3, 0, 2, 2, 2) if gives_back else (1, 1, 3, 0)
    return [case.rng.choice(kinds) for _ in range(case.one(1, 1, 5))]


def _partition(member: str, batches: Plain) -> list[Values]:
    row = {"PartitionIndex": READS[member], "AcknowledgementBatches": batches}
    return [{"TopicId": topic_id(TOPIC), "Partitions": [row]}]


def fetch(case: Case, member: str, epoch: Plain, batches: Plain, **more: Plain) -> Values:
    body = {
        "GroupId": GROUP,
        "MemberId": "%" + member,
        "ShareSessionEpoch": epoch,
        "MaxWaitMs": WAIT_MS,
        "MinBytes": 1,
        "MaxBytes": 1 << 20,
        "MaxRecords": case.one(1, 3, 10, 500),
        "BatchSize": case.one(1, 4, 500),
        "ShareAcquireMode": case.one(0, 0, 1),
        "Topics": _partition(member, batches),
        **more,
    }
    return case.add("ShareFetch", case.one(1, 2), body, member, member)


def acknowledge(case: Case, member: str, batches: Plain, **more: Plain) -> Values:
    body = {
        "GroupId": GROUP,
        "MemberId": "%" + member,
        "ShareSessionEpoch": said("share:" + member, 0, 0),
        "Topics": _partition(member, batches),
        **more,
    }
    return case.add("ShareAcknowledge", case.one(1, 2), body, member, member)


def _wrong(case: Case, member: str) -> Values:
    """Acknowledgements of what the member does not hold, or that say nothing."""
    first = case.one(0, 1, 5, 30, -1)
    row = {
        "FirstOffset": first,
        "LastOffset": first + case.one(-1, 0, 1, 5),
        "AcknowledgeTypes": case.one([0], [1], [2], [3], [4], [5], [], [1, 1]),
    }
    return acknowledge(case, member, [row])


def _odd(case: Case, member: str) -> Values:
    epoch = said("ep:" + member)
    session = said("share:" + member, 0, 0)
    return case.act(
        lambda: heartbeat(case, member, epoch, MemberId=case.one("", "%bogus", "x" * 37)),
        lambda: heartbeat(case, member, epoch, GroupId=case.one("", "%g9", " ")),
        lambda: heartbeat(case, member, epoch, RackId=case.one("", "r1", " ")),
        lambda: heartbeat(case, member, case.one(-2, -3, 99), None),
        lambda: heartbeat(case, member, 0, case.one([], ["%nope"], [""], None)),
        lambda: heartbeat(case, member, epoch, case.one([TOPIC, TOPIC], ["%nope"], [])),
        lambda: fetch(case, member, case.one(-1, 7, -2), []),
        lambda: fetch(case, member, session, [], GroupId=case.one("", "%g9", None)),
        lambda: fetch(case, member, session, [], MemberId=case.one("", None, "x" * 37, "%bogus")),
        lambda: fetch(case, member, session, [], IsRenewAck=True),
        lambda: acknowledge(case, member, [], ShareSessionEpoch=case.one(0, 7, -2)),
        lambda: acknowledge(case, member, [], GroupId=case.one("", "%g9", None)),
        lambda: acknowledge(case, member, acks(member, [4]), IsRenewAck=case.one(True, False)),
    )


def _offsets(case: Case, mix: Mix) -> None:
    def describe() -> Values:
        topics = case.one(None, [{"TopicName": TOPIC, "Partitions": case.one([0], [0, 1], [1], [-1], [])}])
        groups = [{"GroupId": case.one(GROUP, GROUP, GROUP, "%g9", ""), "Topics": topics}]
        return case.add("DescribeShareGroupOffsets", case.one(0, 1), {"Groups": groups})

    def alter() -> Values:
        rows = [{"PartitionIndex": case.one(0, 1, 1, 9, -1), "StartOffset": case.one(0, 2, 5, 100)}]
        topics = [{"TopicName": case.one(TOPIC, TOPIC, "%nope", ""), "Partitions": rows}]
        return case.add("AlterShareGroupOffsets", 0, {"GroupId": GROUP, "Topics": topics}, settle=MAKES_STATE_MS)

    def delete() -> Values:
        topics = [{"TopicName": case.one(TOPIC, TOPIC, "%nope", "")}]
        return case.add("DeleteShareGroupOffsets", 0, {"GroupId": GROUP, "Topics": topics}, settle=MAKES_STATE_MS)

    mix.action(3, describe)
    mix.action(0.7, alter)
    mix.action(0.3, delete)


def produce(case: Case, index: int = 0) -> Values:
    """A batch of up to nine records."""
    count = case.one(1, 1, 2, 5, 9)
    records = [[None, f"v{at}"] for at in range(count)]
    part = {"recs": records, "ts": TIME}
    row = {"Index": index, "Records": {"$f": "batch", "list": [part], "n": count}}
    topics = [{"Name": TOPIC, "TopicId": topic_id(TOPIC), "PartitionData": [row]}]
    return case.add("Produce", 9, {"Acks": -1, "TimeoutMs": TIMEOUT_MS, "TopicData": topics}, label="pr")


def share(case: Case) -> None:
    """One group of up to three members, over a topic of two partitions."""
    members = list(READS)[: 1 + case.count(2, 3, 3)]
    case.topics({TOPIC: PARTITIONS})
    configs = [{"Name": "share.auto.offset.reset", "ConfigOperation": 0, "Value": "earliest"}]
    if case.maybe(0.3):
        configs.append({"Name": "share.delivery.count.limit", "ConfigOperation": 0, "Value": "2"})
    body = {"Resources": [{"ResourceType": 32, "ResourceName": GROUP, "Configs": configs}]}
    case.add("IncrementalAlterConfigs", 1, body)
    join_and_read(case, members)

    def some() -> str:
        return case.rng.choice(members)

    def read() -> Values:
        member = some()
        return fetch(case, member, said("share:" + member, 0, 0), [])

    def read_and_acknowledge() -> Values:
        member = some()
        return fetch(case, member, said("share:" + member, 0, 0), acks(member, _types(case, gives_back=False)))

    def say() -> Values:
        member = some()
        return acknowledge(case, member, acks(member, _types(case, gives_back=True), case.one(1.0, 1.0, 0.5)))

    def close() -> Values:
        member = some()
        batches = acks(member, _types(case, gives_back=True))
        return case.act(
            lambda: acknowledge(case, member, batches, ShareSessionEpoch=-1),
            lambda: fetch(case, member, -1, batches, MaxRecords=0),
        )

    def beat() -> Values:
        member = some()
        return heartbeat(case, member, said("ep:" + member, case.weighted(((0, 8), (-1, 1), (1, 0.5)))))

    mix = Mix(case, 0.04)
    mix.action(6, lambda: produce(case, case.one(0, 0, 1)))
    mix.action(7, read)
    mix.action(7, read_and_acknowledge)
    mix.action(9, say)
    mix.action(1, close)
    mix.action(3, beat)
    mix.action(0.5, lambda: heartbeat(case, some(), -1))
    mix.action(0.7, lambda: heartbeat(case, some(), 0, [TOPIC]))
    mix.action(1.5, lambda: _wrong(case, some()))
    mix.action(3, lambda: _odd(case, some()))
    _offsets(case, mix)
    mix.action(1, lambda: case.add("ShareGroupDescribe", 1, {"GroupIds": [case.one(GROUP, GROUP, "%g9", "")]}))
    mix.action(1, lambda: o.group_reads(case, [GROUP]))
    mix.action(0.3, lambda: o.delete_groups(case, [GROUP]))
    mix.action(0.3, lambda: consumer_heartbeat_of_a_stranger(case, GROUP))
    mix.run(case.rng.randint(10, 30))
