"""Proofs of rules of the allow-list that random cases seldom meet: for each the requests that meet it every time.

`make differ ARGS=--prove` plays them to Apache Kafka and to momus, and fails where a rule explains nothing, so that a
new release shows which differences it has mended. BY_CHANCE names the rules that no request brings about at will.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from differential.generate import offsets as o
from differential.generate.builder import TIME, TIMEOUT_MS, Case, said, topic_id
from differential.plain import Plain, Values

GROUP, TOPIC = o.GROUP, "%t0"
NO_TOPIC: Final = {"$f": "id", "n": 0}
SUBSCRIBED: Final = {"$f": "sub", "topics": ["&s0"], "v": 1}

BY_CHANCE: Final = {
    "everybodys-own-topics": "what cases write beside each other",
    "everybodys-empty-group": "what cases write beside each other",
    "everybodys-partitions": "what cases write beside each other",
    "everybodys-producer-ids": "what cases write beside each other",
    "kafka-hash-order-of-tasks": "hash maps",
    "kafka-hash-order-of-leaders": "hash maps",
    "kafka-hash-order-of-members": "hash maps",
    "kafka-hash-order-of-configs": "hash maps",
    "kafka-random-ids-in-range": "random ids",
    "kafka-answers-before-its-group-is-written": "how soon Kafka writes; met in one of 20 tries, and in none of 200",
    "quotas-of-an-entity-named-twice": "met when asked alone, and in one of six runs of all proofs",
    "kafka-remembers-refused-sequences-seen-later": "how soon Kafka closes the connection of a batch with acks=0",
}


def _batch(count: int = 1, **fields: Plain) -> Values:
    rows: list[Plain] = [[None, f"v{at}"] for at in range(count)]
    return {"$f": "batch", "list": [{"recs": rows, "ts": TIME, **fields}], "n": count}


def _by(label: str, sequence: int, **more: Plain) -> dict[str, Plain]:
    return {"pid": said("pid:" + label), "epoch": said("pep:" + label), "seq": sequence, **more}


def _produce(case: Case, version: int, *batches: Values, acks: int = -1, transactional_id: str | None = None) -> Values:
    """A batch for each partition from 0 on."""
    parts: list[Plain] = [{"Index": at, "Records": batch} for at, batch in enumerate(batches)]
    topics: list[Plain] = [{"Name": TOPIC, "TopicId": topic_id(TOPIC), "PartitionData": parts}]
    body = {"TransactionalId": transactional_id, "Acks": acks, "TimeoutMs": TIMEOUT_MS, "TopicData": topics}
    return case.add("Produce", version, body, label="w")


def _list_offsets(case: Case, partition: int = 0, time: int = -1, isolation: int = 0) -> Values:
    parts: list[Plain] = [{"PartitionIndex": partition, "CurrentLeaderEpoch": -1, "Timestamp": time}]
    topics: list[Plain] = [{"Name": TOPIC, "Partitions": parts}]
    body = {"ReplicaId": -1, "IsolationLevel": isolation, "Topics": topics}
    return case.add("ListOffsets", 7, body, "reader")  # that of a refused batch with acks=0 is closed


def _fetch(case: Case, version: int, topics: list[Plain], **more: Plain) -> Values:
    body: Values = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "SessionEpoch": -1, "Topics": topics, **more}
    return case.add("Fetch", version, body, label="f")


def _fetched(partition: int = 0, offset: int = 0) -> Values:
    return {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20, "CurrentLeaderEpoch": -1}


def _add_partitions(case: Case, version: int = 3) -> Values:
    topics: list[Plain] = [{"Name": TOPIC, "Partitions": [0]}]
    who = {"TransactionalId": "%x0", "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0")}
    return case.add("AddPartitionsToTxn", version, {"V3AndBelow" + key: value for key, value in who.items()} | {
        "V3AndBelowTopics": topics})  # fmt: skip  # one request


def _end(case: Case, version: int = 3, *, committed: bool = True) -> Values:
    who = {"TransactionalId": "%x0", "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0")}
    return case.add("EndTxn", version, {**who, "Committed": committed}, label="p0")


def _join(case: Case, member: str, metadata: Plain, version: int = 9, link: str = "", **more: Plain) -> Values:
    body: Values = {
        "GroupId": GROUP, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 60_000, "ProtocolType": "consumer",
        "MemberId": said("mid:" + member, 0, ""), "GroupInstanceId": None, "Reason": None,
        "Protocols": [{"Name": "range", "Metadata": metadata}], **more,
    }  # fmt: skip  # a table, not a column of 9 lines
    return case.add("JoinGroup", version, body, link or member, member)


def _sync(case: Case, member: str, *members: str, **more: Plain) -> Values:
    body: Values = {
        "GroupId": GROUP, "GenerationId": said("gen:" + member), "MemberId": said("mid:" + member, 0, ""),
        "GroupInstanceId": None, "ProtocolType": "consumer", "ProtocolName": "range",
        "Assignments": {"$f": "assign", "m": member, "all": list(members)}, **more,
    }  # fmt: skip  # a table, not a column of 7 lines
    return case.add("SyncGroup", 5, body, member, member)


def _consumer_beat(case: Case, member: str, epoch: Plain, **more: Plain) -> Values:
    body: Values = {
        "GroupId": GROUP, "MemberId": "%" + member, "MemberEpoch": epoch, "RebalanceTimeoutMs": 60_000,
        "SubscribedTopicNames": ["&s0"], "ServerAssignor": "range", "TopicPartitions": [], **more,
    }  # fmt: skip  # a table, not a column of 7 lines
    return case.add("ConsumerGroupHeartbeat", 1, body, member, member)


def _commit(case: Case, topics: list[str], metadata: str = "") -> Values:
    part: Values = {"PartitionIndex": 0, "CommittedOffset": 1, "CommittedLeaderEpoch": -1}
    rows: list[Plain] = [{"Name": topic, "Partitions": [{**part, "CommittedMetadata": metadata}]} for topic in topics]
    body: Values = {"GroupId": GROUP, "GenerationIdOrMemberEpoch": -1, "MemberId": "", "Topics": rows}
    return case.add("OffsetCommit", 9, body)


def _streams(case: Case, epoch: int, **part: Plain) -> Values:
    first: Values = {
        "SubtopologyId": "0", "SourceTopics": ["&s0"], "SourceTopicRegex": [], "StateChangelogTopics": [],
        "RepartitionSinkTopics": [], "RepartitionSourceTopics": [], "CopartitionGroups": [], **part,
    }  # fmt: skip  # a table, not a column of 7 lines
    body: Values = {
        "GroupId": GROUP, "MemberId": "%q0", "MemberEpoch": epoch, "EndpointInformationEpoch": 0,
        "RebalanceTimeoutMs": 60_000, "Topology": {"Epoch": 0, "Subtopologies": [first]} if epoch == 0 else None,
        "ActiveTasks": [], "StandbyTasks": [], "WarmupTasks": [], "ProcessId": "p", "ClientTags": [],
    }  # fmt: skip  # a table, not a column of 9 lines
    return case.add("StreamsGroupHeartbeat", 1, body, "q0", "q0")


def _internal(name: str, **more: Plain) -> Values:
    return {"Name": name, "Partitions": 0, "ReplicationFactor": 0, "TopicConfigs": [], **more}


def _describe(case: Case, kind: int, name: str, *keys: str) -> Values:
    resource: Values = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": list(keys) or None}
    return case.add("DescribeConfigs", 4, {"Resources": [resource]})


# -- groups


def loads(case: Case) -> None:
    """Nothing has used the share coordinator's topic yet."""
    case.add("FindCoordinator", 6, {"KeyType": 2, "CoordinatorKeys": ["g:AAAAAAAAAAAAAAAAAAAAAA:0"]})


def forgets_an_empty_group(case: Case) -> None:
    _consumer_beat(case, "k0", 0)
    _consumer_beat(case, "k0", -1)
    _join(case, "m0", SUBSCRIBED, MemberId="bogus")
    case.add("DeleteGroups", 2, {"GroupsNames": [GROUP]})


def hides_a_group_without_a_record(case: Case) -> None:
    _commit(case, ["&s0"], "m" * 4097)
    _join(case, "m0", SUBSCRIBED)
    case.add("ListGroups", 5, {"StatesFilter": [], "TypesFilter": []})


def connection_behind_a_forgotten_request(case: Case) -> None:
    case.topics({TOPIC: 1})
    for member in ("m0", "m1"):
        _join(case, member, SUBSCRIBED)
        _join(case, member, SUBSCRIBED)
    _join(case, "m0", SUBSCRIBED)
    for member in ("m0", "m1"):
        _sync(case, member, "m0", "m1")
    for link in ("m0", "other"):
        _join(case, "m0", SUBSCRIBED, link=link)
    case.add("Metadata", 8, {"Topics": [{"Name": TOPIC}], "AllowAutoTopicCreation": False}, "m0")


def subscription_of_now(case: Case) -> None:
    both = {"$f": "sub", "topics": ["&s0", "&s1"], "v": 1}
    for member in ("m0", "m1"):
        _join(case, member, both, GroupInstanceId="i" + member)
    _join(case, "m0", both, GroupInstanceId="im0")
    for member in ("m0", "m1"):
        _sync(case, member, "m0", "m1", GroupInstanceId="i" + member)
    for member in ("m1", "m0"):
        _join(case, member, {"$f": "sub", "topics": ["&s0"], "v": 1}, GroupInstanceId="i" + member, MemberId="")
    parts: list[Plain] = [{"Name": "&s1", "Partitions": [{"PartitionIndex": 0}]}]
    case.add("OffsetDelete", 0, {"GroupId": GROUP, "Topics": parts})


def describes_a_group_made_again(case: Case) -> None:
    changes: list[Plain] = [_internal("%changes")]
    for _ in range(2):
        _streams(case, 0, StateChangelogTopics=changes)
        _streams(case, 0, StateChangelogTopics=changes)
        case.add("StreamsGroupDescribe", 1, {"GroupIds": [GROUP]})
        _streams(case, -1)
        case.add("StreamsGroupDescribe", 1, {"GroupIds": [GROUP]})
        case.add("DeleteGroups", 2, {"GroupsNames": [GROUP]})


def fails_at_a_repartition_topic_named_twice(case: Case) -> None:
    twice: list[Plain] = [_internal("%repartitioned", Partitions=2)] * 2
    _streams(case, 0, RepartitionSourceTopics=twice)


# -- logs


def check_lets_first_sequence_through(case: Case) -> None:
    case.topics({TOPIC: 1})
    o.init_transactional(case, "%x0", "p0", 4)
    _produce(case, 11, _batch(1, **_by("p0", 5, attrs=16)), transactional_id="%x0")
    _produce(case, 12, _batch(1, **_by("p0", 5, attrs=16)), transactional_id="%x0")


def never_answers_two_unknown_partitions(case: Case) -> None:
    case.topics({TOPIC: 1})
    twice: Values = {"TopicId": NO_TOPIC, "Partitions": [_fetched(0), _fetched(1)]}
    known: Values = {"TopicId": topic_id(TOPIC), "Partitions": [_fetched()]}
    _fetch(case, 13, [twice, known], MaxWaitMs=300, MinBytes=1)


def stable_offset_below_the_start(case: Case) -> None:
    case.topics({TOPIC: 1})
    o.init_transactional(case, "%x0", "p0", 4)
    _produce(case, 12, _batch(3, **_by("p0", 0, attrs=16)), transactional_id="%x0")
    part: Values = {"PartitionIndex": 0, "Offset": 2}
    case.add("DeleteRecords", 2, {"Topics": [{"Name": TOPIC, "Partitions": [part]}], "TimeoutMs": 5000})
    _list_offsets(case, isolation=1)


def cannot_make_a_log(case: Case) -> None:
    case.topics({TOPIC: 1}, {"segment.index.bytes": "4"})
    _produce(case, 9, _batch())


def appends_nothing_below_v7(case: Case) -> None:
    case.topics({TOPIC: 2})
    _produce(case, 6, _batch(), _batch(1, fault=["attributes", 7]), acks=0)
    case.pass_time(100)
    _list_offsets(case)


def hangs_behind_a_later_epoch(case: Case) -> None:
    case.topics({TOPIC: 1})
    o.init_transactional(case, "%x0", "p0", 4)
    _add_partitions(case)
    later: Values = {"pid": said("pid:p0"), "epoch": said("pep:p0", 1), "seq": 0}
    _produce(case, 9, _batch(1, **later))
    _end(case)
    case.add("DescribeTransactions", 0, {"TransactionalIds": ["%x0"]})


# -- the cluster


def created_before_the_next_request(case: Case) -> None:
    for at in range(20):
        case.add("Metadata", 4, {"Topics": [{"Name": f"%t{at}"}], "AllowAutoTopicCreation": True})
        body: Values = {"Topics": [{"Name": f"%t{at}"}], "ResponsePartitionLimit": 10, "Cursor": None}
        case.add("DescribeTopicPartitions", 0, body)


def client_metrics(case: Case) -> None:
    _describe(case, 16, "metrics")


def min_insync_is_listed(case: Case) -> None:
    _describe(case, 4, "")


def keys_of_a_broker(case: Case) -> None:
    _describe(case, 4, "1")


# -- restarts


def _restarted(case: Case) -> Case:
    """Records before and after a restart: in Kafka each is of a leader epoch of its own."""
    case.topics({TOPIC: 1})
    _produce(case, 9, _batch())
    case.restart()
    _produce(case, 9, _batch())
    return case


def ends_of_leader_epochs_over_restarts(case: Case) -> None:
    _restarted(case)
    part: Values = {"Partition": 0, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}
    case.add("OffsetForLeaderEpoch", 4, {"ReplicaId": -1, "Topics": [{"Topic": TOPIC, "Partitions": [part]}]})


def fenced_by_leader_epochs_over_restarts(case: Case) -> None:
    _restarted(case)
    part: Values = {"PartitionIndex": 0, "CurrentLeaderEpoch": 0, "Timestamp": -1}
    case.add(
        "ListOffsets", 7, {"ReplicaId": -1, "IsolationLevel": 0, "Topics": [{"Name": TOPIC, "Partitions": [part]}]}
    )


def fenced_by_coordinator_epochs_over_restarts(case: Case) -> None:
    case.topics({TOPIC: 1})
    o.init_transactional(case, "%x0", "p0", 4)
    case.restart()
    _add_partitions(case)
    _produce(case, 9, _batch(1, **_by("p0", 0, attrs=16)), transactional_id="%x0")
    _end(case)
    marker: Values = {
        "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0"), "TransactionResult": False,
        "CoordinatorEpoch": 0, "Topics": [{"Name": TOPIC, "PartitionIndexes": [0]}],
    }  # fmt: skip  # a table, not a column of 5 lines
    case.add("WriteTxnMarkers", 1, {"Markers": [marker]})


def deleted_records_over_restarts(case: Case) -> None:
    case.topics({TOPIC: 1})
    _produce(case, 9, _batch(3))
    part: Values = {"PartitionIndex": 0, "Offset": 2}
    case.add("DeleteRecords", 2, {"Topics": [{"Name": TOPIC, "Partitions": [part]}], "TimeoutMs": 5000})
    case.restart()
    _produce(case, 9, _batch())


def _producer_of_2023(case: Case) -> Case:
    case.topics({TOPIC: 1})
    body: Values = {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    case.add("InitProducerId", 4, body, label="p0")
    _produce(case, 9, _batch(1, **_by("p0", 0)))
    case.restart()
    return case


PROOFS: Final[dict[str, Callable[[Case], object]]] = {
    "kafka-loads": loads,
    "kafka-forgets-an-empty-group": forgets_an_empty_group,
    "kafka-hides-a-group-without-a-record": hides_a_group_without_a_record,
    "kafka-connection-behind-a-forgotten-request": connection_behind_a_forgotten_request,
    "subscription-of-now": subscription_of_now,
    "kafka-describes-a-group-made-again": describes_a_group_made_again,
    "kafka-fails-at-a-repartition-topic-named-twice": fails_at_a_repartition_topic_named_twice,
    "kafka-check-lets-first-sequence-through": check_lets_first_sequence_through,
    "kafka-never-answers-two-unknown-partitions": never_answers_two_unknown_partitions,
    "kafka-stable-offset-below-the-start": stable_offset_below_the_start,
    "kafka-appends-nothing-below-v7": appends_nothing_below_v7,
    "kafka-hangs-behind-a-later-epoch": hangs_behind_a_later_epoch,
    "auto-create-before-the-next-request": created_before_the_next_request,
    "client-metrics": client_metrics,
    "min-insync-of-the-cluster-is-listed": min_insync_is_listed,
    "keys-of-a-broker": keys_of_a_broker,
    "leader-epochs-over-restarts": lambda case: _list_offsets(_restarted(case)),
    "ends-of-leader-epochs-over-restarts": ends_of_leader_epochs_over_restarts,
    "fenced-by-leader-epochs-over-restarts": fenced_by_leader_epochs_over_restarts,
    "fenced-by-coordinator-epochs-over-restarts": fenced_by_coordinator_epochs_over_restarts,
    "deleted-records-over-restarts": deleted_records_over_restarts,
    "producers-over-restarts": lambda case: _produce(_producer_of_2023(case), 9, _batch(1, **_by("p0", 5))),
    "expired-producers-over-restarts": lambda case: _producer_of_2023(case).add(
        "DescribeProducers", 0, {"Topics": [{"Name": TOPIC, "PartitionIndexes": [0]}]}
    ),
    "kafka-cannot-make-a-log": cannot_make_a_log,  # the last: some later changes do not reach that broker
}


def proof_of(rule: str) -> list[Values]:
    """The steps that meet a rule."""
    case = Case(0)
    PROOFS[rule](case)
    return case.steps
