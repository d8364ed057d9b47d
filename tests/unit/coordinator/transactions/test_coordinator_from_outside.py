"""The transaction coordinator as tools, other nodes and the settings see it."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from txn_kit import Producer, committed, find_coordinator, state_of
from unit.coordinator.transactions.coordinator_kit import OFFSETS, group_partition, set_feature

from broker.handlers import txn_admin
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from protocol.messages.transactions import (
    InitProducerIdRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

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


@pytest.mark.parametrize("expression", [r"(x)\1", "(?=x)x", "(x++)y"])
def test_list_refuses_an_expression_that_needs_backtracking(client, expression):
    request = ListTransactionsRequest(transactional_id_pattern=expression)
    assert client.call(request, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_list_by_an_expression_that_would_take_for_ever_elsewhere(client):
    assert Producer(client, "x" * 200).init() == 0
    assert listed(client, transactional_id_pattern="(x+x+)+y") == {}


def test_list_of_many_ids_is_matched_between_turns(client, monkeypatch):
    names = [f"id-{i}" for i in range(20)]
    assert [Producer(client, name).init() for name in names] == [0] * 20
    monkeypatch.setattr(txn_admin, "STEPS_A_SLICE", 1)
    client.send(ListTransactionsRequest(transactional_id_pattern="id-1.*"), 2)
    other = Client(client.world)
    world, slices = client.world, 0
    while world.broker.turn.jobs:
        world.broker.turn.begin()
        world.broker.turn.jobs.step()
        slices += 1
        assert client.replies() == []
        other.send(DescribeTransactionsRequest(transactional_ids=["id-1"]), 0)
        world.turn()
        assert [len(reply.transaction_states) for reply in other.replies()] == [1]
    world.run()
    (answer,) = client.replies()
    assert slices >= 20
    assert sorted(each.transactional_id for each in answer.transaction_states) == sorted(
        name for name in names if name.startswith("id-1")
    )


def test_list_for_a_client_that_leaves_ends_with_it(client, monkeypatch):
    assert [Producer(client, f"id-{i}").init() for i in range(20)] == [0] * 20
    monkeypatch.setattr(txn_admin, "STEPS_A_SLICE", 1)
    leaver = Client(client.world)
    leaver.send(ListTransactionsRequest(transactional_id_pattern="id-1.*"), 2)
    leaver.leave()
    client.world.turn()
    jobs = client.world.broker.turn.jobs
    jobs.step()
    jobs.step()
    assert not jobs


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


@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("commit", [True, False])
def test_write_txn_markers_of_an_older_epoch_leaves_pending_offsets_as_they_are(flush, commit):
    world = World(flush)
    client = Client(world)
    make_topic(client)
    producer = Producer(client, v2=False)
    producer.init()
    producer.init()
    producer.add_offsets()
    client.send(producer.offsets_request({0: 5}), 3)  # they are not durable when the marker comes

    def write(epoch, version=1):
        marker = WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=epoch,
            transaction_result=commit,
            coordinator_epoch=0,
            topics=[WritableTxnMarkerTopic(name=OFFSETS, partition_indexes=[group_partition(world)])],
            transaction_version=2 if version == 2 else 0,
        )
        answer = client.call(WriteTxnMarkersRequest(markers=[marker]), version).markers[0]
        return answer.topics[0].partitions[0].error_code

    assert write(producer.epoch - 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(producer.epoch, 2) == ErrorCode.INVALID_PRODUCER_EPOCH  # its transaction ends with a higher one
    assert committed(client, stable=True) == {0: (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)}
    assert write(producer.epoch) == 0
    assert committed(client, stable=True) == {0: (5 if commit else -1, 0)}


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
