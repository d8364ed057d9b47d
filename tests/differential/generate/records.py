"""Produce and the requests that read a log: batches of every kind and fault, sequences around their borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from differential.generate.builder import MAX_INT, TIME, TIMEOUT_MS, Case, Mix, said, topic_id
from differential.plain import Plain, Values

TOPICS: Final = ("%t0", "%t0", "%t1")
INDEXES: Final = ((0, 8.0), (1, 4.0), (2, 0.2), (-1, 0.2), (99, 0.2))
FAULTS: Final = (
    *(("attributes", bits) for bits in (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 48, 64, 128)),
    *(("magic", magic) for magic in (0, 1, 3, -1)),
    *(("length", by) for by in (1, -1, 1000)),
    *(("headers", count) for count in (1, -1, 5)),
    *((name, by) for name in ("count", "last-delta", "delta", "record-length") for by in (1, -1)),
    ("crc", 3), ("cut", 1), ("cut", 20), ("tail", 3), ("tail", 20), ("record-attributes", 1), ("record-tail", 0),
    ("bad-compression", 0),
)  # fmt: skip  # a list of pairs, not a column of 8 lines
TOPIC_CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"cleanup.policy": "compact"},
    {"max.message.bytes": "200"},
    {"compression.type": "gzip"},
    {"compression.type": "uncompressed"},
    {"compression.type": "zstd"},
    {"compression.type": "lz4"},
    {"compression.type": "snappy"},
    {"min.insync.replicas": "2"},
    {"message.timestamp.after.max.ms": "1000"},
    {"message.timestamp.before.max.ms": "1000"},
    {"cleanup.policy": "compact,delete"},
    {"segment.bytes": "1048576"},
    {"segment.ms": "1"},
    {"segment.ms": "30", "index.interval.bytes": "0"},
    {"segment.ms": "1", "message.timestamp.type": "LogAppendTime"},
    {"segment.ms": "1", "cleanup.policy": "compact"},
)


def rows(case: Case, count: int = 0) -> list[list[Plain]]:
    """Records: key, value, headers, time delta."""
    found = []
    for at in range(count or case.weighted(((1, 6), (2, 2), (5, 1)))):
        key = case.weighted(((None, 5), ("k", 3), ("", 0.5)))
        value = case.weighted(((f"v{at}", 7), (None, 0.6), ("", 0.4), ("w" * 120, 0.6)))
        headers: Plain = case.weighted(
            ((None, 8), ([["h", "1"]], 1), ([["h", None]], 0.5), ([["", ""]], 0.3), ([[None, "x"]], 0.2))
        )
        found.append([key, value, headers, case.weighted(((0, 7), (at, 2), (-3, 0.4), (100, 0.5)))])
    return found


def batch(
    case: Case,
    producer: str | None = None,
    topic: str = "%t0",
    index: int = 0,
    transactional: bool = False,
    faulty: float = 0.1,
) -> Plain:
    """The records of one partition. `producer`: the label of an idempotent one, whose sequence goes on where it was."""
    records = rows(case)
    times: tuple[tuple[Plain, float], ...] = (
        (TIME, 6),
        (TIME + 50, 2),
        ({"$f": "now", "add": 0}, 1),
        ({"$f": "now", "add": 7_200_000}, 0.3),
        (-1, 0.2),
        (0, 0.2),
    )
    row: Values = {"recs": records, "ts": case.weighted(times), "codec": case.count(6, 1, 1, 1, 1)}
    made: Values = {"$f": "batch", "list": [row], "n": len(records)}
    if producer:
        key = f"seq:{producer}:{topic}:{index}"
        by = case.weighted(((0, 12), (1, 1), (-1, 1.5), (-2, 0.6), (5, 0.4)))
        row["pid"] = said("pid:" + producer, 0, 99_998)
        row["epoch"] = said("pep:" + producer, case.weighted(((0, 14), (-1, 0.8), (1, 0.6))), 0)
        row["seq"] = said(key, by, 0)
        if by == 0:
            made["track"] = key
        if case.maybe(0.015):
            row["seq"] = case.one(-1, MAX_INT, 0, -2)
    if transactional:
        row["attrs"] = 16
    if case.maybe(faulty):
        made.pop("track", None)
        return _spoilt(case, made, row)
    return made


def _spoilt(case: Case, made: Values, row: Values) -> Plain:
    how = case.do(
        {
            "fault": 6, "two": 1, "empty": 0.6, "null": 0.03, "legacy": 0.7, "raw": 0.5, "no records": 0.7,
            "latest": 0.4, "offsets": 0.4, "unframed": 0.4, "producer": 0.6, "big": 0.3,
        }
    )  # fmt: skip  # a table, not a column of 12 lines
    if how == "fault":
        row["fault"] = list(case.rng.choice(FAULTS))
    elif how == "two":
        made["list"].append(dict(row))
    elif how == "empty":
        made["list"] = []
    elif how == "null":
        return None
    elif how == "legacy":
        made["list"] = [{"legacy": case.one(0, 1), "recs": row["recs"]}]
    elif how == "raw":
        made["list"] = [{"raw": case.one("00" * 61, "616263", "00" * 12, "ff" * 100)}]
    elif how == "no records":
        row["recs"] = []
    elif how == "latest":
        row["max_ts"] = case.one(0, TIME + 999, -1)
    elif how == "offsets":
        row["base"], row["lep"] = case.one(5, -1), case.one(0, 7, -1)
    elif how == "unframed":
        row["codec"], row["unframed"] = 0, True
    elif how == "producer":
        row["pid"], row["epoch"], row["seq"] = case.one(-1, 99_999, 5), case.one(-1, 0), case.one(-1, 0, 3)
    else:
        row["big"], row["codec"] = case.one(1_100_000, 1_048_500, 1_048_576), case.one(0, 0, 1)
        row["recs"] = [[None, None]]
    return made


def produce(
    case: Case,
    producer: str | None = None,
    transactional_id: str | None = None,
    transactional: bool = False,
    version: int | None = None,
    topics: Sequence[str] = TOPICS,
    faulty: float = 0.12,
) -> Values:
    """One or two partitions, each with a batch."""
    version = case.version("Produce") if version is None else version
    wanted = []
    for _ in range(1 + case.count(8, 1)):
        name = case.weighted(((case.rng.choice(topics), 12), (case.one("%nope", "&s0x", case.odd_topic()), 0.5)))
        parts = []
        for _ in range(case.weighted(((1, 8), (2, 1.5), (0, 0.15)))):
            index = case.weighted(INDEXES)
            parts.append({"Index": index, "Records": batch(case, producer, name, index, transactional, faulty)})
        wanted.append({"Name": name, "TopicId": topic_id(name), "PartitionData": parts})
    acks = case.weighted(((-1, 8), (1, 2), (0, 0.4), (2, 0.2), (-2, 0.1)))
    body = {"TransactionalId": transactional_id, "Acks": acks, "TimeoutMs": TIMEOUT_MS, "TopicData": wanted}
    return case.add("Produce", version, body, label=producer or "pr")


def fetch(case: Case, topics: Sequence[str] = TOPICS, session: Values | None = None) -> Values:
    wanted = []
    for _ in range(case.weighted(((1, 7), (2, 2), (0, 0.4)))):
        name = _some(case, topics)
        parts = []
        for _ in range(case.weighted(((1, 6), (2, 2)))):
            offset = case.weighted(
                ((0, 8), (1, 2), (2, 1), (3, 1), (5, 1), (-1, 0.3), (100, 0.5), (-5, 0.2), (2**62, 0.1))
            )
            parts.append(
                {
                    "Partition": case.weighted(INDEXES),
                    "CurrentLeaderEpoch": case.weighted(((-1, 8), (0, 2), (1, 0.3), (5, 0.3), (-3, 0.1))),
                    "FetchOffset": offset,
                    "LastFetchedEpoch": case.weighted(((-1, 8), (0, 1), (3, 0.3))),
                    "LogStartOffset": case.one(-1, -1, 0),
                    "PartitionMaxBytes": case.weighted(((1 << 20, 8), (1, 0.8), (100, 0.8), (0, 0.3), (200, 0.6))),
                }
            )
        wanted.append({"Topic": name, "TopicId": topic_id(name), "Partitions": parts})
    least = case.weighted(((0, 6), (1, 1)))
    body: Values = {
        "ReplicaId": case.weighted(((-1, 30), (-2, 0.3))),
        "MaxWaitMs": 20 if least or case.maybe(0.07) else 0,
        "MinBytes": least,
        "MaxBytes": case.weighted(((50 << 20, 8), (1, 0.6), (150, 0.5), (0, 0.4))),
        "IsolationLevel": case.weighted(((0, 4), (1, 4), (2, 0.02))),
        "SessionId": 0,
        "SessionEpoch": case.weighted(((-1, 6), (0, 2))),
        "Topics": wanted,
        "ForgottenTopicsData": [],
        "RackId": "",
        **(session or {}),
    }
    return case.add("Fetch", case.version("Fetch"), body, label="f" if body["SessionEpoch"] == 0 or session else None)


def _some(case: Case, topics: Sequence[str]) -> str:
    return case.weighted(((case.rng.choice(topics), 14), (case.one("%nope", case.odd_topic()), 1)))


def list_offsets(case: Case, topics: Sequence[str] = TOPICS) -> Values:
    name = _some(case, topics)
    times: tuple[tuple[Plain, float], ...] = (
        *((special, weight) for special, weight in ((-1, 5), (-2, 4), (-3, 3), (-4, 1), (-5, 1), (-6, 1), (-7, 0.2))),
        *(
            (TIME + by, weight)
            for by, weight in ((0, 3), (1, 1), (50, 2), (200, 1), (-3, 0.5), (2, 0.5), (100, 1), (150, 1))
        ),
        (0, 1),
        (2**62, 0.5),
        ({"$f": "now", "add": -1000}, 1),
    )
    parts = [
        {
            "PartitionIndex": case.weighted(INDEXES),
            "CurrentLeaderEpoch": case.weighted(((-1, 8), (0, 2), (1, 0.4), (5, 0.3), (-2, 0.1))),
            "Timestamp": case.weighted(times),
        }
        for _ in range(case.weighted(((1, 6), (2, 2))))
    ]
    body = {
        "ReplicaId": case.weighted(((-1, 9), (-2, 0.3))),
        "IsolationLevel": case.one(0, 1),
        "Topics": [{"Name": name, "Partitions": parts}],
        "TimeoutMs": 5000,
    }
    return case.add("ListOffsets", case.version("ListOffsets"), body)


def log_reads(case: Case, topics: Sequence[str] = TOPICS) -> Values:
    """One request that reads a log, or cuts its start."""
    how = case.do({"fetch": 8, "offsets": 4, "producers": 2, "epochs": 1.2, "delete": 1, "sizes": 0.6})
    if how == "fetch":
        return fetch(case, topics)
    if how == "offsets":
        return list_offsets(case, topics)
    name = _some(case, topics)
    index = case.weighted(INDEXES)
    if how == "producers":
        indexes = [index, *([case.weighted(INDEXES)] if case.maybe(0.3) else [])]
        return case.add("DescribeProducers", 0, {"Topics": [{"Name": name, "PartitionIndexes": indexes}]})
    if how == "epochs":
        part: Values = {
            "Partition": index,
            "CurrentLeaderEpoch": case.weighted(((-1, 8), (0, 2), (1, 0.4))),
            "LeaderEpoch": case.weighted(((0, 6), (-1, 1), (1, 1), (5, 1), (-2, 0.2))),
        }
        body: Values = {"ReplicaId": case.one(-1, -2), "Topics": [{"Topic": name, "Partitions": [part]}]}
        return case.add("OffsetForLeaderEpoch", case.version("OffsetForLeaderEpoch"), body)
    if how == "delete":
        name = name if name[:1] == "%" else "%t0"  # the lasting topics keep their records
        part = {
            "PartitionIndex": index,
            "Offset": case.weighted(((-1, 2), (0, 1), (1, 3), (2, 2), (100, 1), (-2, 0.5))),
        }
        body = {"Topics": [{"Name": name, "Partitions": [part]}], "TimeoutMs": 5000}
        return case.add("DeleteRecords", case.version("DeleteRecords"), body)
    wanted: Plain = case.weighted((([{"Topic": name, "Partitions": [0, 1]}], 4), (None, 1), ([], 0.5)))
    return case.add("DescribeLogDirs", case.version("DescribeLogDirs"), {"Topics": wanted})


def make_topics(case: Case, with_configs: bool = True) -> None:
    """%t0 and %t1, the second with a config now and then."""
    configs = case.rng.choice(TOPIC_CONFIGS) if with_configs and case.maybe(0.7) else {}
    case.topics({"%t0": 2, "%t1": 2}, configs)


def _session_fetch(case: Case, epoch: int) -> None:
    part = {"Partition": 0, "FetchOffset": case.one(0, 1, 2), "CurrentLeaderEpoch": -1, "PartitionMaxBytes": 1 << 20}
    added = [{"Topic": "%t1", "TopicId": topic_id("%t1"), "Partitions": [part]}]
    gone = [{"Topic": "%t0", "TopicId": topic_id("%t0"), "Partitions": case.one([0], [1], [0, 1], [9])}]
    session: Values = {
        "SessionEpoch": case.weighted(((epoch, 8), (epoch + 1, 0.7), (0, 0.4), (-1, 0.4))),
        "SessionId": said("session:f", 0, 0) if case.maybe(0.95) else 12_345,
        "Topics": [] if case.maybe(0.6) else added,
        "ForgottenTopicsData": gone if case.maybe(0.2) else [],
    }
    fetch(case, session=session)


def log(case: Case) -> None:
    """Two topics, plain and idempotent producers, readers with and without sessions."""
    make_topics(case)
    producers = ["p0", "p1"] if case.maybe(0.6) else []
    nobody = {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    for label in producers:
        case.add("InitProducerId", case.version("InitProducerId"), dict(nobody), label=label)
    near_wrap = bool(producers) and case.maybe(0.15)
    if near_wrap:  # a producer that begins close to the end of the sequences
        first = {
            "recs": rows(case, 1),
            "ts": TIME,
            "pid": said("pid:p0"),
            "epoch": said("pep:p0"),
            "seq": MAX_INT - case.one(0, 1, 4),
        }
        parts = [{"Index": 0, "Records": {"$f": "batch", "list": [first], "n": 1}}]
        topics = [{"Name": "%t0", "TopicId": topic_id("%t0"), "PartitionData": parts}]
        case.add("Produce", 9, {"Acks": -1, "TimeoutMs": TIMEOUT_MS, "TopicData": topics}, label="p0")
    epochs = [0]

    def session() -> None:
        if epochs[0] == 0 or case.maybe(0.2):
            fetch(case, session={"SessionEpoch": 0, "SessionId": 0})
            epochs[0] = 1
        else:
            _session_fetch(case, epochs[0])
            epochs[0] += 1

    def raise_epoch() -> Values:
        body = {**nobody, "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0", case.one(0, 0, 1, -1))}
        return case.add("InitProducerId", case.version("InitProducerId", 3), body, label="p0")

    def configure() -> None:
        key, value = case.rng.choice([item for configs in TOPIC_CONFIGS for item in configs.items()])
        configs = [{"Name": key, "ConfigOperation": case.one(0, 1), "Value": value}]
        body = {"Resources": [{"ResourceType": 2, "ResourceName": "%t1", "Configs": configs}]}
        case.add("IncrementalAlterConfigs", 1, body, settle=40)

    mix = Mix(case, 0.05)
    mix.action(10, lambda: produce(case, case.rng.choice([*producers, None])))
    mix.action(10, lambda: log_reads(case))
    mix.action(2, session)
    mix.action(0.4 if producers else 0, raise_epoch)
    mix.action(0.3, configure)
    mix.run(case.rng.randint(12, 40))
