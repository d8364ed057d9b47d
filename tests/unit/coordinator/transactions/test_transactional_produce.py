"""Transactional records at the gate: who may write, in which words others are refused, in which order all happens."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from txn_kit import (
    ABORT,
    COMMIT,
    Producer,
    committed,
    fetched,
    markers_of,
    state_of,
    states_in_log,
    visible,
)

from broker.coordinator.transactions.transaction import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceData
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

OLD, MIDDLE, NEW = 10, 11, 12


@pytest.fixture(params=["os", "fsync"])
def world(request):
    return World(request.param)


def producer_of(client, name="tx", **fields):
    producer = Producer(client, name, **fields)
    assert producer.init() == 0
    return producer


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("v2", [True, False])
def test_records_are_seen_when_their_transaction_has_committed(client, v2, commit):
    producer = producer_of(client, v2=v2)
    if not v2:
        producer.add({"t": [0]})
    assert [producer.produce(b"a", b"b"), producer.produce(b"c")] == [0, 0]
    assert visible(client) == []
    answer = fetched(client)
    assert (answer.last_stable_offset, answer.high_watermark) == (0, 3)
    assert producer.end(commit=commit) == 0
    assert visible(client) == ([b"a", b"b", b"c"] if commit else [])
    answer = fetched(client)
    assert (answer.last_stable_offset, answer.high_watermark) == (4, 4)
    assert markers_of(client.world) == [(producer.id, 1 if v2 else 0, COMMIT if commit else ABORT)]


def test_produce_v12_adds_each_partition_once(client):
    producer = producer_of(client)
    assert [producer.produce(b"a"), producer.produce(b"b"), producer.produce(b"c", index=1)] == [0, 0, 0]
    assert {topic.topic: topic.partitions for topic in state_of(client).topics} == {"t": [0, 1]}
    assert states_in_log(client.world) == [EMPTY, ONGOING, ONGOING]


@pytest.mark.parametrize(("version", "code"), [(OLD, 48), (MIDDLE, 120), (NEW, 0)])
def test_partition_that_was_not_added_is_refused_below_version_12(client, version, code):
    producer = producer_of(client, v2=False)
    assert producer.produce(b"a", version=version) == code


@pytest.mark.parametrize("version", [OLD, MIDDLE, NEW])
def test_fenced_producer_is_told_that_its_epoch_is_invalid(client, version):
    """Not that its transaction is in a wrong state, from which a client would not see that it is fenced."""
    old = producer_of(client, v2=False)
    old.add({"t": [0]})
    old.produce(b"a", version=version)
    new = Producer(client)
    assert new.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert new.init() == 0
    assert old.produce(b"b", version=version) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.produce(b"b", index=1, version=version) == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", [OLD, MIDDLE, NEW])
def test_unknown_producer_is_told_so(client, version):
    producer = producer_of(client)
    producer.id += 1
    assert producer.produce(b"a", version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stranger = Producer(client, "stranger")
    stranger.id, stranger.epoch = 5, 0
    assert stranger.produce(b"a", version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", [OLD, MIDDLE, NEW])
def test_without_a_coordinator_the_client_asks_again(version):
    client = Client(World("os"))
    make_topic(client)
    stranger = Producer(client, "stranger")
    stranger.id, stranger.epoch = 5, 0
    assert stranger.produce(b"a", version=version) == ErrorCode.NOT_ENOUGH_REPLICAS


def test_verification_can_be_turned_off():
    client = Client(World("os", transaction_partition_verification_enable="false"))
    make_topic(client)
    producer = producer_of(client, v2=False)
    assert producer.produce(b"a") == 0


def test_one_request_for_several_partitions_passes_as_a_whole(client):
    producer = producer_of(client)
    request = producer.produce_request(b"a", index=0)
    for index in (1, 2):
        more = producer.produce_request(b"%d" % index, index=index).topic_data[0].partition_data[0]
        request.topic_data[0].partition_data.append(PartitionProduceData(index=index, records=more.records))
    answer = client.call(request, 12)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [0, 0, 0]
    assert states_in_log(client.world) == [EMPTY, ONGOING]
    producer.end()
    assert [visible(client, "t", index) for index in range(3)] == [[b"a"], [b"1"], [b"2"]]


def test_pipelined_records_keep_their_order_behind_the_gate(client):
    producer = producer_of(client)
    for number in range(5):
        client.send(producer.produce_request(b"%d" % number), 12)
    client.send(producer.offsets_request({0: 5}), 5)
    client.world.run()
    codes = [reply.responses[0].partition_responses[0].error_code for reply in client.replies()[:5]]
    assert codes == [0] * 5
    producer.end()
    assert visible(client) == [b"0", b"1", b"2", b"3", b"4"]
    assert committed(client) == {0: (5, 0)}


def test_whole_transaction_may_come_in_one_go(client):
    producer = producer_of(client)
    client.send(producer.produce_request(b"a"), 12)
    client.send(producer.offsets_request({0: 5}), 5)
    client.send(producer.end_request(), 5)
    client.world.run()
    produced, sent, ended = client.replies()
    assert (produced.responses[0].partition_responses[0].error_code, ended.error_code) == (0, 0)
    assert sent.topics[0].partitions[0].error_code == 0
    states = states_in_log(client.world)
    assert states[-1] == COMPLETE_COMMIT
    # whatever was still at the gate when the end was asked for is refused, or part of it: never half of it
    assert fetched(client).last_stable_offset == fetched(client).high_watermark


def test_client_that_leaves_while_its_records_are_at_the_gate_leaves_a_transaction_behind(client):
    world = client.world
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    other = Client(world)
    other.send(producer.produce_request(b"a"), 12)
    other.leave()
    world.run()
    assert state_of(client).transaction_state == "Ongoing"
    world.advance(10_001)
    assert state_of(client).transaction_state == "CompleteAbort"
    assert visible(client) == []


# -- failures


def test_lost_record_of_the_coordinator_refuses_what_waited_for_it(client):
    producer = producer_of(client)
    world = client.world
    if world.flush == "os":
        world.files.inject(1, kinds=("write",), forever=True)
        assert producer.produce(b"a") == ErrorCode.NOT_ENOUGH_REPLICAS
        world.files.heal()
    else:
        world.auto_sync = False
        client.send(producer.produce_request(b"a"), 12)
        world.run()
        world.sync(fail=True)
        world.auto_sync = True
        world.run()
        (reply,) = client.replies()
        assert reply.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert visible(client) == []
    producer.sequences.clear()
    assert producer.produce(b"a") == 0
    assert producer.end() == 0
    assert visible(client) == [b"a"]


def test_marker_that_cannot_be_written_is_written_later():
    world = World("os")
    client = Client(world)
    make_topic(client)
    producer = producer_of(client)
    producer.produce(b"a")
    world.files.inject(2, kinds=("write",))  # Prepare is the first
    client.send(producer.end_request(), 5)
    world.run()
    assert client.replies() == []
    assert state_of(Client(world)).transaction_state == "PrepareCommit"
    assert states_in_log(world)[-1] == PREPARE_COMMIT
    world.advance(100)
    ended = client.replies()[-1]
    assert (ended.error_code, ended.producer_epoch) == (0, 1)
    assert visible(client) == [b"a"]
    assert markers_of(world) == [(producer.id, 1, COMMIT)]


def test_lost_prepare_is_told_and_may_be_asked_again():
    world = World("os")
    client = Client(world)
    make_topic(client)
    producer = producer_of(client)
    producer.produce(b"a")
    world.files.inject(1, kinds=("write",))
    assert producer.end() == ErrorCode.NOT_COORDINATOR
    assert state_of(client).transaction_state == "Ongoing"
    assert markers_of(world) == []
    assert producer.end() == 0
    assert visible(client) == [b"a"]


def test_request_that_repeats_a_lost_one_is_refused_with_it():
    world = World("os")
    client = Client(world)
    make_topic(client)
    producer = producer_of(client, v2=False)
    producer.add({"t": [0]})
    producer.produce(b"a")
    producer.end()
    world.files.inject(1, kinds=("write",))
    adding = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    for _ in range(2):  # in one turn: the second one finds the partition in the transaction already
        client.send(adding, 3)
    world.run()
    codes = [
        each.partition_error_code
        for answer in client.replies()
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    assert codes == [ErrorCode.NOT_COORDINATOR] * 2
    assert state_of(client).transaction_state == "CompleteCommit"


def test_lost_complete_is_made_up_for():
    world = World("os")
    client = Client(world)
    make_topic(client)
    producer = producer_of(client)
    producer.produce(b"a")
    world.files.inject(3, kinds=("write",))  # Prepare, marker, Complete
    assert producer.end() == 0
    assert producer.epoch == 1
    assert state_of(client).transaction_state == "CompleteCommit"
    assert visible(client) == [b"a"]
    assert markers_of(world) == [(producer.id, 1, COMMIT)] * 2  # as Kafka's new coordinator would
    assert fetched(client).last_stable_offset == fetched(client).high_watermark


def test_deleted_topic_does_not_hold_up_the_end(client):
    make_topic(client, "u")
    producer = producer_of(client)
    producer.produce(b"a")
    producer.produce(b"a", topic="u")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="u")], timeout_ms=1000)
    assert client.call(request, 6).responses[0].error_code == 0
    assert producer.end() == 0
    assert visible(client) == [b"a"]


def test_hanging_transaction_is_ended_by_its_marker(client):
    producer = producer_of(client)
    producer.produce(b"a")

    def write(epoch, coordinator_epoch, version):
        marker = WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            transaction_version=version,
            topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        )
        answer = client.call(WriteTxnMarkersRequest(markers=[marker]), 2).markers[0]
        return answer.topics[0].partitions[0].error_code

    assert write(-1, 0, 0) == ErrorCode.UNKNOWN_SERVER_ERROR  # it is no epoch
    assert write(0, 0, 2) == ErrorCode.INVALID_PRODUCER_EPOCH  # in transactions v2 a marker has a higher one
    assert write(1, 5, 2) == 0
    assert write(1, 4, 2) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert fetched(client).last_stable_offset == fetched(client).high_watermark
    assert visible(client) == []
