"""Requests filled from their declarations: each field gets something that its name and type suggest."""

from __future__ import annotations

from typing import Any, Final

from differential.generate import records as r
from differential.generate.builder import MAX_INT, ODD_NAMES, TIME, Case, data, said
from differential.generate.damage import BORDERS, spare_own_topics
from differential.plain import KEYS, Plain, Values, kafka_name, shape_of, words
from protocol.api import request_class
from protocol.declare import Field, Message
from protocol.wire import Array, Bool, Bytes, Float64, Records, String, Uuid, Wire

SERVED: Final = words(
    """Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup
    SyncGroup DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics DeleteRecords InitProducerId
    OffsetForLeaderEpoch AddPartitionsToTxn AddOffsetsToTxn EndTxn WriteTxnMarkers TxnOffsetCommit DescribeConfigs
    AlterConfigs DescribeLogDirs CreatePartitions DeleteGroups ElectLeaders IncrementalAlterConfigs
    AlterPartitionReassignments ListPartitionReassignments OffsetDelete DescribeClientQuotas AlterClientQuotas
    DescribeUserScramCredentials AlterUserScramCredentials DescribeQuorum UpdateFeatures DescribeCluster
    DescribeProducers DescribeTransactions ListTransactions ConsumerGroupHeartbeat ConsumerGroupDescribe
    ListConfigResources DescribeTopicPartitions StreamsGroupHeartbeat StreamsGroupDescribe"""
)
CHANGES_ALL_CASES: Final = ("UpdateFeatures", "AlterUserScramCredentials")
DEEPEST: Final = 3
TAGGED_SHARE: Final = 0.25

# By a part of the field's name, the first that fits: what a number is chosen from. `None`: any border.
NUMBERS: Final[tuple[tuple[str, tuple[Plain, ...]], ...]] = (
    ("MaxWaitMs", (0, 20)),
    ("SessionTimeoutMs", (30_000, 60_000, 60_000, 0, -1, 3_000_000)),
    ("RebalanceTimeoutMs", (30_000, 60_000, 60_000, 0, -1)),
    ("TransactionTimeoutMs", (60_000, 60_000, 0, -1, 3_000_000)),
    ("TimeoutMs", (5000,)),
    ("NumPartitions", (-1, 1, 2, 0, 3)),
    ("Count", (-1, 1, 2, 0, 3)),
    ("ReplicationFactor", (-1, 1, 1, 0, 2)),
    ("Partition", (0, 0, 0, 1, 2, -1, 99)),
    ("UpgradeType", (0, 1, 2, 3, 7)),
    ("IsolationLevel", (0, 1)),
    ("KeyType", (0, 0, 1, 2, -1)),
    ("Acks", (-1, 1, 1, 2)),
    ("Broker", (1, 1, 1, 0, 7)),
    ("NodeId", (1, 1, 0, 7)),
    ("ReplicaId", (-1, -1, 1, 0)),
    ("ProducerId", (said("pid:p0"), said("pid:p0"), -1, 5)),
    ("ProducerEpoch", (said("pep:p0"), said("pep:p0"), -1, 0, 1)),
    ("Epoch", (-1, -1, 0, 0, 1, said("gen:m0"), said("ep:m0"), 5)),
    ("Generation", (-1, -1, 0, 0, 1, said("gen:m0"), said("ep:m0"), 5)),
    ("Timestamp", (-1, -2, -3, TIME, 0)),
    ("Offset", (0, 0, 1, -1, 5, 100, 2**40)),
    ("MaxBytes", (1 << 20, 1, 0, MAX_INT)),
)
TEXTS: Final[tuple[tuple[str, tuple[Plain, ...]], ...]] = (
    ("Topic", ("&s0", "&s1", "%t0", "%t0", "%nope")),
    ("InstanceId", (None, None, "i0")),
    ("GroupId", ("%g0", "%g0", "%g1")),
    ("Groups", ("%g0", "%g0", "%g1")),
    ("TransactionalId", ("%x0", "%x0", "%x1", None)),
    ("Member", ("", said("mid:m0", 0, ""), "%m0")),
    ("ProtocolType", ("consumer", "connect")),
    ("Regex", (None, None, "%t.*", "[")),
    ("Pattern", (None, None, "%t.*", "[")),
    ("Software", ("differ", "1.0", "-x", "a b")),
    ("Key", ("%g0", "%g1")),
    ("ResourceName", ("%t0", "%t0", "%nope", "1", "")),
)
OTHER_TEXTS: Final = (None, "", "range", "%t0", "x")
NAMED_BY_NAME: Final = (
    "Produce",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "CreateTopics",
    "DeleteTopics",
)


def any_request(case: Case, api: str | None = None, version: int | None = None) -> Values:
    """One request of any API."""
    api = api or case.rng.choice([each for each in SERVED if each not in CHANGES_ALL_CASES])
    version = case.version(api) if version is None else version
    body = _message(case, request_class(KEYS[api]), shape_of(api, version), api, 0)
    _tame(api, body)
    label = "p0" if api == "InitProducerId" else case.one("m0", "m0", "p0")
    step = case.add(api, version, body, case.one("a", "m0", "m1"), label)
    if api in ("DeleteTopics", "DeleteRecords"):
        spare_own_topics(step)
    return step


def _tame(api: str, body: Values) -> None:
    """What would wait, concern the whole cluster, or be made behind the answer."""
    if api == "Fetch":
        body["MaxWaitMs"] = body["MinBytes"] = 0
    elif api == "Metadata":
        body["AllowAutoTopicCreation"] = False
    elif api == "ElectLeaders":
        body["TopicPartitions"] = body.get("TopicPartitions") or []
    elif api == "CreateTopics":
        for topic in body.get("Topics") or []:
            topic["Assignments"] = []
            if not str(topic.get("Name")).startswith("%"):
                topic["Name"] = "%c0"


def _message(case: Case, cls: type[Message], version: int, api: str, depth: int) -> Values:
    return {
        kafka_name(field.name): _value(case, field, field.wire, version, api, depth)
        for field in cls.FIELDS
        if field.is_in(version) and (not field.is_tagged(version) or case.maybe(TAGGED_SHARE))
    }


def _value(case: Case, field: Field, wire: Any, version: int, api: str, depth: int) -> Plain:
    name = kafka_name(field.name)
    if isinstance(wire, Array):
        if case.maybe(0.06):
            return None
        count = case.count(1, 6, 2) if depth < DEEPEST else 1
        rows = [_value(case, field, wire.element, version, api, depth + 1) for _ in range(count)]
        return [*rows, rows[0]] if rows and case.maybe(0.08) else rows
    if not isinstance(wire, Wire):
        return _message(case, wire, version, api, depth + 1)
    if wire is Bool:
        return case.maybe(0.5)
    if wire is Uuid:
        return case.one(said("id:&s0", 0, None), said("id:%t0", 0, None), {"$f": "id", "n": 77}, {"$f": "id", "n": 0})
    if wire is Float64:
        return case.one(0.0, 1.0, -1.0, 1e9)
    if wire is Records:
        return r.batch(case, faulty=0)
    if wire is Bytes:
        return case.one(data(b""), data(b"x"), data(bytes(10)), {"$f": "sub", "topics": ["&s0"]}, None)
    if wire is String:
        return _text(case, name, api)
    for part, choices in NUMBERS:
        if part in name:
            return case.rng.choice(choices)
    return case.one(0, 0, 1, -1, 2, 3, 5, case.rng.choice(BORDERS))


def _text(case: Case, name: str, api: str) -> Plain:
    if case.maybe(0.1) and "Group" not in name:
        return case.one(case.rng.choice(ODD_NAMES), None, "")
    if name == "Name" and api in NAMED_BY_NAME:
        name = "Topic"
    for part, choices in TEXTS:
        if part in name:
            return case.rng.choice(choices)
    return case.rng.choice(OTHER_TEXTS)


def anything(case: Case) -> None:
    """Requests of all APIs, one after the other."""
    case.topics({"%t0": 2})
    for _ in range(25):
        any_request(case)
