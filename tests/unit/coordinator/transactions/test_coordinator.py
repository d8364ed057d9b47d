"""The transaction coordinator as clients meet it: whole requests against a simulated broker."""

from __future__ import annotations

import pytest
from core_broker import Client
from txn_kit import ABORT, COMMIT, Producer, committed, markers_of, state_of, states_in_log
from unit.coordinator.transactions.coordinator_kit import OFFSETS, group_partition

from broker.coordinator.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    LAST_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from protocol.errors import ErrorCode
from protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    InitProducerIdRequest,
)

# -- InitProducerId


def test_init_gives_a_producer_and_again_a_higher_epoch(client):
    producer = Producer(client)
    assert [(producer.init(), producer.epoch) for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    other = Producer(client, "other")
    other.init()
    assert other.id != producer.id


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_000}, ErrorCode.NONE),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_init_refuses_what_cannot_be(client, fields, code):
    request = InitProducerIdRequest(**{"transactional_id": "tx", "transaction_timeout_ms": 60_000, **fields})
    assert client.call(request, 5).error_code == code


@pytest.mark.parametrize(("version", "code"), [(3, 47), (4, 90), (5, 90)])
def test_init_of_a_fenced_producer_is_told_in_words_it_knows(client, version, code):
    old, new = Producer(client), Producer(client)
    old.init()
    new.init()
    assert old.init(version, resume=True) == code


def test_init_with_epoch_may_be_repeated(client):
    producer = Producer(client)
    producer.init()
    first = producer.id, producer.epoch
    assert producer.init(resume=True) == 0
    assert producer.epoch == 1
    producer.id, producer.epoch = first
    assert producer.init(resume=True) == 0
    assert producer.epoch == 1


def test_init_during_a_transaction_aborts_it_first(client):
    producer, successor = Producer(client), Producer(client)
    producer.init()
    producer.send_offsets({0: 5})
    assert successor.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert successor.init() == 0
    assert (successor.id, successor.epoch) == (producer.id, 2)
    assert committed(client) == {0: (-1, 0)}
    assert producer.send_offsets({0: 6}) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert producer.end() == ErrorCode.PRODUCER_FENCED


def exhaust(client, producer):
    """Let the coordinator believe that all epochs have been used."""
    shard = client.world.broker.transactions.shard(producer.name)
    shard.machine.transactions[producer.name].producer_epoch = producer.epoch = LAST_EPOCH


def test_init_without_epochs_left_gives_another_producer_id(client):
    producer = Producer(client)
    producer.init()
    exhaust(client, producer)
    before = producer.id
    assert producer.init() == 0
    assert producer.id != before
    assert producer.epoch == 0


def test_end_without_epochs_left_gives_another_producer_id(client):
    producer = Producer(client)
    producer.init()
    exhaust(client, producer)
    producer.send_offsets({0: 5})
    before = producer.id
    assert producer.end() == 0
    assert producer.id != before
    assert producer.epoch == 0
    assert committed(client, stable=True) == {0: (5, 0)}
    assert markers_of(client.world, OFFSETS, group_partition(client.world)) == [(before, 32767, COMMIT)]


def test_producer_ids_are_durable_before_they_are_told(world, client):
    producer = Producer(client)
    producer.init()
    again = world.crash(lose_unsynced=world.flush == "fsync")
    if world.flush == "memory":
        return
    other = Producer(Client(again), "other")
    other.init()
    assert other.id > producer.id


# -- AddPartitionsToTxn, AddOffsetsToTxn


def test_add_partitions_begins_and_extends_a_transaction(client):
    producer = Producer(client, v2=False)
    producer.init()
    assert producer.add({"t": [0]}) == {("t", 0): 0}
    assert producer.add({"t": [0, 1]}) == {("t", 0): 0, ("t", 1): 0}
    assert producer.add({"t": [1]}) == {("t", 1): 0}
    assert producer.add_offsets() == 0
    state = state_of(client)
    topics = {topic.topic: topic.partitions for topic in state.topics}
    assert (state.transaction_state, topics) == ("Ongoing", {"t": [0, 1], OFFSETS: [group_partition(client.world)]})
    assert states_in_log(client.world) == [EMPTY, ONGOING, ONGOING, ONGOING]


def test_add_partitions_of_which_one_is_missing_adds_none(client):
    producer = Producer(client, v2=False)
    producer.init()
    assert producer.add({"t": [0, 3], "nope": [0]}) == {
        ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("t", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert state_of(client).transaction_state == "Empty"


@pytest.mark.parametrize("version", range(4))
def test_add_partitions_of_an_internal_topic_is_refused_and_adds_none(client, version):
    producer = Producer(client, v2=False)
    producer.init()
    for _ in range(2):  # the shortcut may learn the second one
        assert producer.add({OFFSETS: [0]}, version) == {(OFFSETS, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert producer.add({"t": [0], OFFSETS: [0, 99], "nope": [0], "__transaction_state": [0]}, version) == {
            ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            (OFFSETS, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            (OFFSETS, 99): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("nope", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("__transaction_state", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
    assert state_of(client).transaction_state == "Empty"


@pytest.mark.parametrize(("version", "code"), [(0, 47), (1, 47), (2, 90), (3, 90)])
def test_add_of_a_fenced_producer_is_told_in_words_it_knows(client, version, code):
    producer, successor = Producer(client, v2=False), Producer(client)
    producer.init()
    successor.init()
    assert producer.add({"t": [0]}, version) == {("t", 0): code}
    assert producer.add_offsets(version=version) == code
    assert producer.end(version=version) == code


def test_add_with_unknown_ids_is_refused(client):
    producer = Producer(client, v2=False)
    producer.init()
    producer.id += 1
    assert producer.add({"t": [0]}) == {("t", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert producer.add_offsets() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stranger = Producer(client, "stranger", v2=False)
    assert stranger.add({"t": [0]}) == {("t", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    nameless = Producer(client, "", v2=False)
    assert nameless.add({"t": [0]}) == {("t", 0): ErrorCode.INVALID_REQUEST}
    assert nameless.add_offsets() == ErrorCode.INVALID_REQUEST
    assert nameless.end() == ErrorCode.INVALID_REQUEST


def test_add_for_several_transactions_answers_each(client):
    first, second = Producer(client, "one"), Producer(client, "two")
    first.init()
    second.init()

    def part(producer, *partitions, epoch=0, verify_only=False, topic="t"):
        return AddPartitionsToTxnTransaction(
            transactional_id=producer.name,
            producer_id=producer.id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def ask(*parts):
        answer = client.call(AddPartitionsToTxnRequest(transactions=list(parts)), 5)
        assert answer.error_code == 0
        return {
            result.transactional_id: [e.partition_error_code for e in result.topic_results[0].results_by_partition]
            for result in answer.results_by_transaction
        }

    assert ask(part(first, 0, 1), part(second, 0, epoch=3)) == {"one": [0, 0], "two": [ErrorCode.PRODUCER_FENCED]}
    assert ask(part(first, 0, 2, verify_only=True), part(second, 0, topic="nope")) == {
        "one": [0, ErrorCode.TRANSACTION_ABORTABLE],
        "two": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    }
    assert ask(part(second, 0, verify_only=True)) == {"two": [ErrorCode.TRANSACTION_ABORTABLE]}
    assert state_of(client, "two").transaction_state == "Empty"


@pytest.mark.parametrize(("way", "version"), [("partitions", 0), ("offsets", 0), ("several transactions", 2)])
def test_transaction_knows_by_the_way_it_was_added_to_which_version_of_transactions_its_client_has(
    client, way, version
):
    producer = Producer(client)
    producer.init()
    if way == "partitions":
        producer.add({"t": [0]})
    elif way == "offsets":
        producer.add_offsets()
    else:
        topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
        one = AddPartitionsToTxnTransaction(
            transactional_id="tx", producer_id=producer.id, producer_epoch=0, topics=topics
        )
        client.call(AddPartitionsToTxnRequest(transactions=[one]), 5)
    transaction = client.world.broker.transactions.shard("tx").machine.transactions["tx"]
    assert (transaction.state, transaction.client_version) == (ONGOING, version)


# -- EndTxn


@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_end_writes_the_marker_and_answers_when_all_is_done(client, v2, commit):
    producer = Producer(client, v2=v2)
    producer.init()
    if not v2:
        producer.add_offsets()
    assert producer.send_offsets({0: 5, 2: 6}) == {0: 0, 2: 0}
    assert committed(client, partitions=(0, 1, 2), stable=True) == {0: (-1, 88), 1: (-1, 0), 2: (-1, 88)}
    assert committed(client) == {0: (-1, 0)}
    assert producer.end(commit=commit) == 0
    assert producer.epoch == (1 if v2 else 0)
    expected = {0: (5, 0), 2: (6, 0)} if commit else {0: (-1, 0), 2: (-1, 0)}
    assert committed(client, partitions=(0, 2), stable=True) == expected
    assert states_in_log(client.world) == (
        [EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT] if commit else [EMPTY, ONGOING, PREPARE_ABORT, COMPLETE_ABORT]
    )
    marker = (producer.id, 1 if v2 else 0, COMMIT if commit else ABORT)
    assert markers_of(client.world, OFFSETS, group_partition(client.world)) == [marker]
    state = state_of(client)
    assert (state.transaction_state, state.topics) == ("CompleteCommit" if commit else "CompleteAbort", [])


@pytest.mark.parametrize("v2", [False, True])
def test_next_transaction_begins_at_once(client, v2):
    producer = Producer(client, v2=v2)
    producer.init()
    for number in range(5):
        if not v2:
            assert producer.add_offsets() == 0
        assert producer.send_offsets({0: number}) == {0: 0}
        assert producer.end() == 0
        assert committed(client) == {0: (number, 0)}


def test_end_v1_may_be_repeated_and_not_be_turned(client):
    producer = Producer(client, v2=False)
    producer.init()
    assert producer.end() == ErrorCode.INVALID_TXN_STATE
    producer.add_offsets()
    assert [producer.end(), producer.end()] == [0, 0]
    assert producer.end(commit=False) == ErrorCode.INVALID_TXN_STATE
    assert states_in_log(client.world)[-1] == COMPLETE_COMMIT


def test_end_v2_is_repeated_with_the_old_epoch(client):
    producer = Producer(client)
    producer.init()
    producer.send_offsets({0: 1})
    assert producer.end() == 0
    producer.epoch = 0
    assert producer.end() == 0
    assert producer.epoch == 1
    assert producer.end() == ErrorCode.INVALID_TXN_STATE
    assert producer.end(commit=False) == 0  # nothing was begun, which may be aborted
    assert producer.epoch == 2
    assert states_in_log(client.world)[-2:] == [PREPARE_ABORT, COMPLETE_ABORT]


def test_end_of_an_unknown_producer_is_refused(client):
    producer = Producer(client)
    producer.init()
    stranger = Producer(client, "stranger")
    assert stranger.end() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer.id += 1
    assert producer.end() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
