"""The transaction coordinator as clients meet it: whole requests against a simulated broker."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from txn_kit import (
    ABORT,
    COMMIT,
    Producer,
    committed,
    find_coordinator,
    markers_of,
    state_of,
    states_in_log,
)

from broker.coordinator.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    LAST_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.cluster import (
    ApiVersionsRequest,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from protocol.messages.own_records import TransactionGroupValue
from protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    InitProducerIdRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

OFFSETS = "__consumer_offsets"
WEEK_MS = 7 * 86_400_000


@pytest.fixture(params=["memory", "os", "fsync"])
def world(request):
    return World(request.param)


@pytest.fixture
def client(world):
    client = Client(world)
    make_topic(client, "t", 3)
    return client


def group_partition(world, group_id="g"):
    return world.broker.shard_of_group(group_id).machine.index


def set_feature(client, level):
    kind = 3 if level < 2 else 1
    update = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=kind)
    assert client.call(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == 0


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


# -- time


@pytest.mark.parametrize("level", [0, 1, 2])
def test_transaction_that_lasts_too_long_is_aborted_and_its_producer_fenced(client, level):
    if level < 2:
        set_feature(client, level)
    producer = Producer(client, v2=level == 2)
    producer.init(timeout_ms=10_000)
    producer.add_offsets()
    producer.send_offsets({0: 5})
    client.world.advance(10_000)
    assert state_of(client).transaction_state == "Ongoing"
    client.world.advance(1)
    state = state_of(client)
    assert (state.transaction_state, state.producer_epoch) == ("CompleteAbort", 1)
    assert committed(client, stable=True) == {0: (-1, 0)}
    assert producer.send_offsets({0: 6}) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert producer.end() in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
    assert producer.init() == 0
    assert producer.epoch == 2


def test_transaction_does_not_time_out_after_its_end(client):
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    producer.send_offsets({0: 5})
    producer.end()
    client.world.advance(20_000)
    assert state_of(client).transaction_state == "CompleteCommit"
    producer.send_offsets({0: 6})
    client.world.advance(9_000)
    assert producer.end() == 0
    assert committed(client) == {0: (6, 0)}


def test_transaction_times_out_after_a_restart(world, client):
    if world.flush == "memory":
        return
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    producer.send_offsets({0: 5})
    again = world.crash(lose_unsynced=world.flush == "fsync")
    client = Client(again)
    assert committed(client, stable=True) == {0: (-1, 88)}
    again.advance(10_000)
    assert committed(client, stable=True) == {0: (-1, 0)}
    assert state_of(client).transaction_state == "CompleteAbort"


def test_unused_id_is_forgotten(client):
    idle, busy = Producer(client, "idle"), Producer(client, "busy")
    idle.init()
    busy.init()
    client.world.advance(WEEK_MS - 1_000)
    busy.init()
    client.world.advance(3_600_000)
    assert state_of(client, "idle").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert state_of(client, "busy").error_code == 0
    assert idle.send_offsets({0: 1}) == {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert idle.init() == 0


# -- tools


def test_describe_tells_all_there_is(client):
    producer = Producer(client)
    producer.init(timeout_ms=12_345)
    producer.send_offsets({0: 1})
    state = state_of(client)
    assert (state.error_code, state.transaction_state, state.transaction_timeout_ms) == (0, "Ongoing", 12_345)
    assert (state.producer_id, state.producer_epoch) == (producer.id, 0)
    assert state.transaction_start_time_ms == client.world.clock.now_ms()


def test_describe_of_what_is_not_there(client):
    request = DescribeTransactionsRequest(transactional_ids=["tx", ""])
    assert [each.error_code for each in client.call(request, 0).transaction_states] == [16, 42]
    find_coordinator(client)
    assert [each.error_code for each in client.call(request, 0).transaction_states] == [105, 42]


def listed(client, version=2, **filters):
    answer = client.call(ListTransactionsRequest(**filters), version)
    assert answer.error_code == 0
    found = {each.transactional_id: each.transaction_state for each in answer.transaction_states}
    return (found, answer.unknown_state_filters) if answer.unknown_state_filters else found


def test_list_filters(client):
    assert listed(client) == {}
    open_one, done = Producer(client, "open"), Producer(client, "done")
    for producer in (open_one, done):
        producer.init()
        producer.send_offsets({0: 1})
    done.end()
    assert listed(client) == {"open": "Ongoing", "done": "CompleteCommit"}
    assert listed(client, state_filters=["Ongoing"]) == {"open": "Ongoing"}
    assert listed(client, state_filters=["Ongoing", "Nonsense"]) == ({"open": "Ongoing"}, ["Nonsense"])
    assert listed(client, state_filters=["Nonsense"]) == ({}, ["Nonsense"])
    assert listed(client, producer_id_filters=[done.id]) == {"done": "CompleteCommit"}
    assert listed(client, transactional_id_pattern="op.*") == {"open": "Ongoing"}
    assert listed(client, transactional_id_pattern="op") == {}
    client.world.advance(1000)
    assert listed(client, duration_filter=1000) == {}
    assert listed(client, duration_filter=999) == {"open": "Ongoing", "done": "CompleteCommit"}
    request = ListTransactionsRequest(transactional_id_pattern="(")
    assert client.call(request, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_write_txn_markers_ends_what_hangs(client):
    producer = Producer(client)
    producer.init()
    producer.send_offsets({0: 5})
    place = group_partition(client.world)

    def write(topic, *partitions, epoch=0):
        marker = WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=0,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
        )
        answer = client.call(WriteTxnMarkersRequest(markers=[marker]), 1).markers[0]
        assert answer.producer_id == producer.id
        return [each.error_code for each in answer.topics[0].partitions]

    assert write(OFFSETS, place, 99) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert write("nope", 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert committed(client, stable=True) == {0: (-1, 0)}


# -- where it is


def test_coordinator_of_another_node_is_named_and_others_refuse():
    world = World(brokers=3)
    client = Client(world)
    node = find_coordinator(client).node_id
    nodes = [Client(world, index) for index in range(3)]
    answers = {
        each.connection.node_id: each.call(
            InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 5
        ).error_code
        for each in nodes
    }
    assert answers == {n: 0 if n == node else ErrorCode.NOT_COORDINATOR for n in answers}


@pytest.mark.parametrize("level", [0, 1, 2])
def test_feature_level_says_how_records_are_written(client, level):
    if level < 2:
        set_feature(client, level)
    producer = Producer(client, v2=False)
    producer.init()
    log = client.world.broker.transactions.shard("tx").log
    from protocol.record_batch import iter_records

    (record,) = [record for _, batch in log.batches(0) for record in iter_records(batch)]
    assert record.value[:2] == (b"\x00\x01" if level else b"\x00\x00")
    finalized = client.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    found = {each.name: each.max_version_level for each in finalized.finalized_features}
    assert found.get("transaction.version", 0) == level


def test_feature_level_of_the_settings_is_kept_over_restarts():
    world = World("os", feature_transaction_version="1")
    assert world.broker.transactions.version == 1
    del world.settings["feature_transaction_version"]
    again = world.crash()
    assert again.broker.transactions.version == 1
    assert again.restart(feature_transaction_version="2").broker.transactions.version == 2


# -- whose offsets they were


def groups_of(world, name="tx"):
    return world.broker.transactions.shard(name).machine.groups.get(name, {})


def decoded(value):
    return codec(TransactionGroupValue, 0).decode(value, 2)[0]


@pytest.mark.parametrize("commit", [True, False])
def test_groups_of_a_transaction_are_kept_with_its_decision(world, client, commit):
    producer = Producer(client)
    producer.init()
    producer.send_offsets({0: 1, 2: 3}, "g")
    producer.send_offsets({1: 1}, "h", version=5, generation_id=-1, member_id="", group_instance_id=None)
    assert groups_of(world) == {}
    producer.end(commit=commit)
    kept = {group: decoded(value) for group, value in groups_of(world).items()}
    assert {g: (v.producer_id, v.producer_epoch, v.client_id) for g, v in kept.items()} == {
        "g": (producer.id, 0, "client"),
        "h": (producer.id, 0, "client"),
    }
    assert {g: [(t.topic, t.partitions) for t in v.topics] for g, v in kept.items()} == {
        "g": [("t", [0, 2])],
        "h": [("t", [1])],
    }
    before = groups_of(world)
    producer.send_offsets({1: 9}, "g")
    producer.end()
    assert decoded(groups_of(world)["g"]).topics[0].partitions == [1]
    assert groups_of(world)["h"] == before["h"]
    assert states_in_log(world).count(PREPARE_COMMIT if commit else PREPARE_ABORT) == (2 if commit else 1)


def test_groups_of_a_transaction_are_known_after_a_crash_before_its_end():
    world = World("os")
    client = Client(world)
    make_topic(client, "t", 3)
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    producer.send_offsets({0: 1}, "g")
    again = world.crash()
    again.advance(10_001)
    (value,) = groups_of(again).values()
    assert (decoded(value).client_id, decoded(value).topics[0].partitions) == ("client", [0])
    third = again.crash()
    assert groups_of(third) == groups_of(again)


def test_groups_go_with_the_id(client):
    producer = Producer(client)
    producer.init()
    producer.send_offsets({0: 1})
    producer.end()
    client.world.advance(WEEK_MS + 3_600_000)
    assert state_of(client).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert groups_of(client.world) == {}
