"""Short stories of clients that repeat themselves, each aimed at one spot that random requests seldom reach: answers by
the shortcuts, readers beside an open transaction, limits, sequences that wrap, old generations and epochs."""

from __future__ import annotations

from differential.generate import offsets as o
from differential.generate.builder import MAX_INT, TIME, TIMEOUT_MS, Case, said, topic_id
from differential.plain import Plain, Values

GROUP = o.GROUP
REPEATS = 3  # a shortcut learns from the first, and serves the later ones


def _batch(count: int = 1, **fields: Plain) -> Values:
    rows: list[Plain] = [[None, f"v{at}", None, 0] for at in range(count)]
    return {"$f": "batch", "list": [{"recs": rows, "ts": TIME, **fields}], "n": count}


def _produce(case: Case, index: int, batch: Values, version: int, transactional_id: str | None = None) -> Values:
    parts = [{"Index": index, "Records": batch}]
    topics = [{"Name": "%t0", "TopicId": topic_id("%t0"), "PartitionData": parts}]
    body = {"TransactionalId": transactional_id, "Acks": -1, "TimeoutMs": TIMEOUT_MS, "TopicData": topics}
    return case.add("Produce", version, body, label="w")


def _written(label: str, sequence: int, **more: Plain) -> Values:
    """The fields of an idempotent producer's batch."""
    return {"pid": said("pid:" + label), "epoch": said("pep:" + label), "seq": sequence, **more}


def _fetch(case: Case, version: int, wanted: list[tuple[int, int, int]], **more: Plain) -> Values:
    """Of (partition, offset, most bytes) of %t0."""
    parts = [
        {"Partition": index, "FetchOffset": offset, "PartitionMaxBytes": most, "CurrentLeaderEpoch": -1}
        for index, offset, most in wanted
    ]
    topics = [{"Topic": "%t0", "TopicId": topic_id("%t0"), "Partitions": parts}] if parts else []
    body: Values = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "SessionEpoch": -1, "Topics": topics, **more}
    return case.add("Fetch", version, body, label="f")


def _offsets_at(case: Case, index: int, times: list[int], isolation: int = 0) -> None:
    version = case.version("ListOffsets", 7)
    for time in times:
        parts = [{"PartitionIndex": index, "CurrentLeaderEpoch": -1, "Timestamp": time}]
        body = {"ReplicaId": -1, "IsolationLevel": isolation, "Topics": [{"Name": "%t0", "Partitions": parts}]}
        case.add("ListOffsets", version, body)


def readers_beside_a_transaction(case: Case) -> None:
    """Committed and uncommitted reads while a transaction is open, and after its end; the same Fetch every time."""
    case.topics({"%t0": 2})
    o.init_transactional(case, "%x0", "p0")
    version, isolation = case.version("Fetch"), case.weighted(((1, 5), (0, 1)))

    def reads() -> None:
        for _ in range(REPEATS):
            _fetch(case, version, [(0, 0, 1 << 20)], IsolationLevel=isolation)
        for level in (0, 1):
            _offsets_at(case, 0, [-1], level)

    sequence = 0
    for _ in range(case.one(2, 3)):
        _produce(case, 0, _batch(case.one(1, 2)), case.version("Produce", 9))
        count = case.one(1, 2)
        _produce(case, 0, _batch(count, **_written("p0", sequence, attrs=16)), case.one(12, 13), "%x0")
        sequence = 0  # a new epoch begins anew
        reads()
        end = {"TransactionalId": "%x0", "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0")}
        case.add("EndTxn", 5, {**end, "Committed": case.maybe(0.3)}, label="p0")
        reads()
    case.add("DescribeProducers", 0, {"Topics": [{"Name": "%t0", "PartitionIndexes": [0, 1]}]})


def limits(case: Case) -> None:
    """Limits that cut the batches of two partitions at every place."""
    case.topics({"%t0": 2})
    for index in (0, 0, 0, 1, 1):
        _produce(case, index, _batch(case.one(1, 1, 2)), case.version("Produce", 9))
    version = case.version("Fetch")
    for _ in range(5):
        most, each = case.one(60, 100, 150, 200, 250, 400), case.one(1 << 20, 80, 100, 150, 200)
        isolation = case.one(0, 1)
        for _ in range(2):
            _fetch(case, version, [(0, 0, each), (1, 0, each)], MaxBytes=most, IsolationLevel=isolation)


def session_that_forgets(case: Case) -> None:
    """A fetch session from which partitions are taken away, while all of them get records."""
    case.topics({"%t0": 3})
    version, places = case.version("Fetch", 7), [(at, 0, 1 << 20) for at in range(3)]
    _fetch(case, version, places, SessionEpoch=0)
    epoch = 1
    for at in case.rng.sample(range(3), case.one(1, 2)):
        gone = [{"Topic": "%t0", "TopicId": topic_id("%t0"), "Partitions": [at]}]
        session: Values = {"SessionId": said("session:f", 0, 0)}
        _fetch(case, version, [], SessionEpoch=epoch, ForgottenTopicsData=gone, **session)
        for index in range(3):
            _produce(case, index, _batch(), 9)
        for _ in range(2):
            epoch += 1
            _fetch(case, version, [], SessionEpoch=epoch, **session)
        epoch += 1


def sequences_that_wrap(case: Case) -> None:
    """A producer whose sequences end: behind 2147483647 comes 0, within a batch or between two."""
    case.topics({"%t0": 1})
    nobody = {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    case.add("InitProducerId", case.version("InitProducerId"), nobody, label="p0")
    sequence = MAX_INT - case.one(0, 1, 3)
    sent: list[tuple[int, int]] = []
    for _ in range(5):
        count = case.one(1, 2, 4)
        sent.append((sequence, count))
        _produce(case, 0, _batch(count, **_written("p0", sequence)), 9)
        sequence = sequence + count & MAX_INT
        if case.maybe(0.5):
            first, count = case.rng.choice(sent)
            _produce(case, 0, _batch(count, **_written("p0", first)), 9)
    _produce(case, 0, _batch(1, **_written("p0", sequence + 1 & MAX_INT)), 9)
    _fetch(case, 12, [(0, 0, 1 << 20)])


def times_behind_a_moved_start(case: Case) -> None:
    """Offsets by time where the log begins inside a batch."""
    case.topics({"%t0": 1})
    for _ in range(3):
        rows: list[Plain] = [[None, "v", None, case.one(0, 5, 10, 50, 100)] for _ in range(case.one(2, 3))]
        batch = {"$f": "batch", "list": [{"recs": rows, "ts": TIME, "codec": case.one(0, 0, 1)}], "n": len(rows)}
        _produce(case, 0, batch, 9)
    for offset in (1, case.one(2, 3, 4)):
        part = {"PartitionIndex": 0, "Offset": offset}
        body = {"Topics": [{"Name": "%t0", "Partitions": [part]}], "TimeoutMs": 5000}
        case.add("DeleteRecords", case.version("DeleteRecords"), body)
        _offsets_at(case, 0, [TIME - 1, TIME, TIME + 1, TIME + 5, TIME + 11, TIME + 50, -3, -2, -1])


def offsets_of_an_old_generation(case: Case) -> None:
    """The only member of a classic group commits in a transaction, again and again, and by an older generation too."""
    o.init_transactional(case, "%x0", "p0")
    subscribed = {"$f": "sub", "topics": ["&s0"], "v": 1}

    def rejoin() -> None:
        body = {
            "GroupId": GROUP, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 60_000, "ProtocolType": "consumer",
            "MemberId": said("mid:m0", 0, ""), "Protocols": [{"Name": "range", "Metadata": subscribed}], "Reason": None,
        }  # fmt: skip  # a table, not a column of 9 lines
        case.add("JoinGroup", 9, body, "m0", "m0")
        member = {"MemberId": said("mid:m0", 0, ""), "GenerationId": said("gen:m0")}
        named = {"ProtocolType": "consumer", "ProtocolName": "range"}
        assign = {"$f": "assign", "m": "m0", "all": ["m0"]}
        case.add("SyncGroup", 5, {"GroupId": GROUP, **member, **named, "Assignments": assign}, "m0", "m0")

    rejoin()  # is given an id
    rejoin()
    version = case.one(3, 4, 5)
    who = {"TransactionalId": "%x0", "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0")}
    if version < 5:
        case.add("AddOffsetsToTxn", case.version("AddOffsetsToTxn"), {**who, "GroupId": GROUP})

    def commit(behind: int) -> None:
        for at in range(REPEATS):
            part = {
                "PartitionIndex": 0,
                "CommittedOffset": 10 + at,
                "CommittedLeaderEpoch": -1,
                "CommittedMetadata": "",
            }
            member = {"GenerationId": said("gen:m0", -behind), "MemberId": said("mid:m0", 0, "")}
            body = {**who, "GroupId": GROUP, **member, "Topics": [{"Name": "&s0", "Partitions": [part]}]}
            case.add("TxnOffsetCommit", version, body)

    commit(0)
    rejoin()
    commit(case.one(0, 1))
    commit(1)
    o.offset_fetch(case, [GROUP])


def commits_by_older_epochs(case: Case) -> None:
    """A partition is taken away and given back; then every older epoch commits on every partition."""

    def beat(member: str, epoch: Plain, **more: Plain) -> None:
        body: Values = {
            "GroupId": GROUP, "MemberId": "%" + member, "MemberEpoch": epoch, "RebalanceTimeoutMs": -1,
            "SubscribedTopicNames": None, "ServerAssignor": None, "TopicPartitions": None, **more,
        }  # fmt: skip  # a table, not a column of 8 lines
        case.add("ConsumerGroupHeartbeat", 1, body, member, member)

    def join(member: str) -> None:
        wants: Values = {"RebalanceTimeoutMs": 60_000, "SubscribedTopicNames": ["&s2"], "ServerAssignor": "range"}
        beat(member, 0, TopicPartitions=[], **wants)

    def settle(*members: str) -> None:
        for member in members:
            beat(member, said("ep:" + member), TopicPartitions=said("own:" + member, 0, []))

    join("m0")
    join("m1")
    settle("m0", "m1", "m0", "m1")
    beat("m1", -1)
    settle("m0", "m0")
    version = case.one(9, 10)
    for behind in range(4):
        parts = case.rng.sample(range(6), 2)
        for part in parts:
            row = {"PartitionIndex": part, "CommittedOffset": 1, "CommittedLeaderEpoch": -1, "CommittedMetadata": ""}
            topics = [{"Name": "&s2", "TopicId": topic_id("&s2"), "Partitions": [row]}]
            member = {"GenerationIdOrMemberEpoch": said("ep:m0", -behind), "MemberId": "%m0", "GroupInstanceId": None}
            case.add("OffsetCommit", version, {"GroupId": GROUP, **member, "Topics": topics})


STORIES = (
    readers_beside_a_transaction, limits, session_that_forgets, sequences_that_wrap, times_behind_a_moved_start,
    offsets_of_an_old_generation, commits_by_older_epochs,
)  # fmt: skip  # names, not a column of 7 lines


def stories(case: Case) -> None:
    """One of them."""
    case.rng.choice(STORIES)(case)
