"""Proofs of rules of the allow-list that random cases seldom meet: for each the requests that meet it every time.

`make differ ARGS=--prove` plays them to Apache Kafka and to momus, and fails where a rule explains nothing, so that a
new release shows which differences it has mended. BY_CHANCE names the rules that no request brings about at will.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from differential.generate import offsets as o
from differential.generate.builder import Case, said, topic_id
from differential.plain import Plain, Values
from differential.proof_requests import (
    GROUP,
    TOPIC,
    add_partitions,
    batch,
    by,
    commit,
    consumer_beat,
    describe,
    end,
    fetch,
    fetched,
    internal,
    join,
    list_offsets,
    produce,
    streams,
    sync,
)

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


# -- groups


def loads(case: Case) -> None:
    """Nothing has used the share coordinator's topic yet."""
    case.add("FindCoordinator", 6, {"KeyType": 2, "CoordinatorKeys": ["g:AAAAAAAAAAAAAAAAAAAAAA:0"]})


def forgets_an_empty_group(case: Case) -> None:
    consumer_beat(case, "k0", 0)
    consumer_beat(case, "k0", -1)
    join(case, "m0", SUBSCRIBED, MemberId="bogus")
    case.add("DeleteGroups", 2, {"GroupsNames": [GROUP]})


def hides_a_group_without_a_record(case: Case) -> None:
    commit(case, ["&s0"], "m" * 4097)
    join(case, "m0", SUBSCRIBED)
    case.add("ListGroups", 5, {"StatesFilter": [], "TypesFilter": []})
    case.add("DescribeGroups", 5, {"Groups": [GROUP], "IncludeAuthorizedOperations": False})


def connection_behind_a_forgotten_request(case: Case) -> None:
    case.topics({TOPIC: 1})
    for member in ("m0", "m1"):
        join(case, member, SUBSCRIBED)
        join(case, member, SUBSCRIBED)
    join(case, "m0", SUBSCRIBED)
    for member in ("m0", "m1"):
        sync(case, member, "m0", "m1")
    for link in ("m0", "other"):
        join(case, "m0", SUBSCRIBED, link=link)
    case.add("Metadata", 8, {"Topics": [{"Name": TOPIC}], "AllowAutoTopicCreation": False}, "m0")


def subscription_of_now(case: Case) -> None:
    both = {"$f": "sub", "topics": ["&s0", "&s1"], "v": 1}
    for member in ("m0", "m1"):
        join(case, member, both, GroupInstanceId="i" + member)
    join(case, "m0", both, GroupInstanceId="im0")
    for member in ("m0", "m1"):
        sync(case, member, "m0", "m1", GroupInstanceId="i" + member)
    for member in ("m1", "m0"):
        join(case, member, {"$f": "sub", "topics": ["&s0"], "v": 1}, GroupInstanceId="i" + member, MemberId="")
    parts: list[Plain] = [{"Name": "&s1", "Partitions": [{"PartitionIndex": 0}]}]
    case.add("OffsetDelete", 0, {"GroupId": GROUP, "Topics": parts})


def describes_a_group_made_again(case: Case) -> None:
    changes: list[Plain] = [internal("%changes")]
    for _ in range(2):
        streams(case, 0, StateChangelogTopics=changes)
        streams(case, 0, StateChangelogTopics=changes)
        case.add("StreamsGroupDescribe", 1, {"GroupIds": [GROUP]})
        streams(case, -1)
        case.add("StreamsGroupDescribe", 1, {"GroupIds": [GROUP]})
        case.add("DeleteGroups", 2, {"GroupsNames": [GROUP]})


def fails_at_a_repartition_topic_named_twice(case: Case) -> None:
    twice: list[Plain] = [internal("%repartitioned", Partitions=2)] * 2
    streams(case, 0, RepartitionSourceTopics=twice)


# -- logs


def check_lets_first_sequence_through(case: Case) -> None:
    case.topics({TOPIC: 1})
    o.init_transactional(case, "%x0", "p0", 4)
    produce(case, 11, batch(1, **by("p0", 5, attrs=16)), transactional_id="%x0")
    produce(case, 12, batch(1, **by("p0", 5, attrs=16)), transactional_id="%x0")


def never_answers_two_unknown_partitions(case: Case) -> None:
    case.topics({TOPIC: 1})
    twice: Values = {"TopicId": NO_TOPIC, "Partitions": [fetched(0), fetched(1)]}
    known: Values = {"TopicId": topic_id(TOPIC), "Partitions": [fetched()]}
    fetch(case, 13, [twice, known], MaxWaitMs=300, MinBytes=1)


def stable_offset_below_the_start(case: Case) -> None:
    case.topics({TOPIC: 1})
    o.init_transactional(case, "%x0", "p0", 4)
    produce(case, 12, batch(3, **by("p0", 0, attrs=16)), transactional_id="%x0")
    part: Values = {"PartitionIndex": 0, "Offset": 2}
    case.add("DeleteRecords", 2, {"Topics": [{"Name": TOPIC, "Partitions": [part]}], "TimeoutMs": 5000})
    list_offsets(case, isolation=1)


def cannot_make_a_log(case: Case) -> None:
    case.topics({TOPIC: 1}, {"segment.index.bytes": "4"})
    produce(case, 9, batch())


def appends_nothing_below_v7(case: Case) -> None:
    case.topics({TOPIC: 2})
    produce(case, 6, batch(), batch(1, fault=["attributes", 7]), acks=0)
    case.pass_time(100)
    list_offsets(case)


def hangs_behind_a_later_epoch(case: Case) -> None:
    case.topics({TOPIC: 1})
    o.init_transactional(case, "%x0", "p0", 4)
    add_partitions(case)
    later: Values = {"pid": said("pid:p0"), "epoch": said("pep:p0", 1), "seq": 0}
    produce(case, 9, batch(1, **later))
    end(case)
    case.add("DescribeTransactions", 0, {"TransactionalIds": ["%x0"]})


# -- the cluster


def created_before_the_next_request(case: Case) -> None:
    for at in range(20):
        case.add("Metadata", 4, {"Topics": [{"Name": f"%t{at}"}], "AllowAutoTopicCreation": True})
        body: Values = {"Topics": [{"Name": f"%t{at}"}], "ResponsePartitionLimit": 10, "Cursor": None}
        case.add("DescribeTopicPartitions", 0, body)


def client_metrics(case: Case) -> None:
    describe(case, 16, "metrics")


def min_insync_is_listed(case: Case) -> None:
    describe(case, 4, "")


def keys_of_a_broker(case: Case) -> None:
    describe(case, 4, "1")


# -- restarts


def _restarted(case: Case) -> Case:
    """Records before and after a restart: in Kafka each is of a leader epoch of its own."""
    case.topics({TOPIC: 1})
    produce(case, 9, batch())
    case.restart()
    produce(case, 9, batch())
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
    add_partitions(case)
    produce(case, 9, batch(1, **by("p0", 0, attrs=16)), transactional_id="%x0")
    end(case)
    marker: Values = {
        "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0"), "TransactionResult": False,
        "CoordinatorEpoch": 0, "Topics": [{"Name": TOPIC, "PartitionIndexes": [0]}],
    }  # fmt: skip  # a table, not a column of 5 lines
    case.add("WriteTxnMarkers", 1, {"Markers": [marker]})


def deleted_records_over_restarts(case: Case) -> None:
    case.topics({TOPIC: 1})
    produce(case, 9, batch(3))
    part: Values = {"PartitionIndex": 0, "Offset": 2}
    case.add("DeleteRecords", 2, {"Topics": [{"Name": TOPIC, "Partitions": [part]}], "TimeoutMs": 5000})
    case.restart()
    produce(case, 9, batch())


def _producer_of_2023(case: Case) -> Case:
    case.topics({TOPIC: 1})
    body: Values = {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    case.add("InitProducerId", 4, body, label="p0")
    produce(case, 9, batch(1, **by("p0", 0)))
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
    "leader-epochs-over-restarts": lambda case: list_offsets(_restarted(case)),
    "ends-of-leader-epochs-over-restarts": ends_of_leader_epochs_over_restarts,
    "fenced-by-leader-epochs-over-restarts": fenced_by_leader_epochs_over_restarts,
    "fenced-by-coordinator-epochs-over-restarts": fenced_by_coordinator_epochs_over_restarts,
    "deleted-records-over-restarts": deleted_records_over_restarts,
    "producers-over-restarts": lambda case: produce(_producer_of_2023(case), 9, batch(1, **by("p0", 5))),
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
