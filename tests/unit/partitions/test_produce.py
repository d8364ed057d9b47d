"""Produce as a whole: who may write where, how refusals are told, and what a reply waits for."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from unit.partitions.data_path import NOW_MS, DataPath, batch, values_of
from unit.partitions.data_path_parts import OTHER_NODE

from broker.requests.produce import ADMIN_CLIENT
from protocol.codegen import codec
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    error_response,
)
from protocol.record_batch import TRANSACTIONAL


@pytest.mark.parametrize("version", range(3, 14))
def test_produce_answers_the_base_offset_in_every_version(path: DataPath, version: int) -> None:
    path.topic()
    path.produce(batch(b"before"), version=version)
    answer = path.produce(batch(b"a", b"b"), version=version)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (0, 1, -1, 0)


@pytest.mark.parametrize("version", range(3, 14))
def test_produce_request_travels_through_the_codec(path: DataPath, version: int) -> None:
    topic = path.topic()
    named = {"topic_id": topic.topic_id} if version >= 13 else {"name": "t"}
    data = TopicProduceData(**named, partition_data=[PartitionProduceData(index=0, records=batch(b"a"))])
    raw = codec(ProduceRequest, version).encode(ProduceRequest(acks=1, topic_data=[data]))
    request, _ = codec(ProduceRequest, version).decode(memoryview(raw), 0)
    response = path.produce_request(request, path.context(version))
    path.end_turn()
    again, _ = codec(ProduceResponse, version).decode(codec(ProduceResponse, version).encode(response), 0)
    assert again.responses[0].partition_responses[0].base_offset == 0
    assert path.partition(topic, 0).high_watermark == 1


def test_unknown_topic_and_partition_are_told_apart_by_version(path: DataPath) -> None:
    path.topic()
    assert path.produce(batch(), "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert path.produce(batch(), "nowhere", version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    for index in (-1, 1, 2**31 - 1):
        assert path.produce(batch(), index=index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_refusal_before_the_partition_has_no_offsets(path: DataPath) -> None:
    answer = path.produce(batch(), "nowhere")
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (-1, -1, -1)


def test_log_start_offset_is_told_once_the_partition_has_looked(path: DataPath) -> None:
    path.topic()
    assert path.produce(b"junk").log_start_offset == -1
    assert path.produce(batch(b"a") + batch(b"b")).log_start_offset == -1
    assert path.produce(batch(b"a", attributes=4), version=6).log_start_offset == -1
    assert path.produce(batch(b"a", pid=1, epoch=0, seq=-1)).log_start_offset == 0


def test_one_bad_partition_does_not_hurt_the_others(path: DataPath) -> None:
    topic = path.topic(partitions=3)
    parts = [
        PartitionProduceData(index=0, records=batch(b"a")),
        PartitionProduceData(index=1, records=b"junk"),
        PartitionProduceData(index=2, records=batch(b"c")),
        PartitionProduceData(index=9, records=batch(b"d")),
    ]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    response = path.produce_request(request, path.context(9))
    codes = [answer.error_code for answer in response.responses[0].partition_responses]
    assert codes == [0, ErrorCode.INVALID_RECORD, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    path.end_turn()
    assert [path.partition(topic, i).high_watermark for i in range(3)] == [1, 0, 1]


def rows(response: ProduceResponse) -> list[tuple[str, list[tuple[int, int, int]]]]:
    """Topics of an answer with index, error and base offset of each partition."""
    return [
        (row.name, [(p.index, p.error_code, p.base_offset) for p in row.partition_responses])
        for row in response.responses
    ]


def test_partition_named_twice_gets_one_batch_and_one_answer(path: DataPath) -> None:
    path.topic(partitions=2)
    path.topic("u")
    parts = [PartitionProduceData(index=0, records=batch(value)) for value in (b"first", b"second")]
    other = PartitionProduceData(index=1, records=batch(b"other"))
    data = [
        TopicProduceData(name="t", partition_data=parts),
        TopicProduceData(name="u", partition_data=parts[:1]),
        TopicProduceData(name="t", partition_data=[other, PartitionProduceData(index=0, records=batch(b"last"))]),
    ]
    response = path.produce_request(ProduceRequest(acks=-1, topic_data=data), path.context(9))
    assert rows(response) == [("t", [(0, 0, 0), (1, 0, 0)]), ("u", [(0, 0, 0)])]
    path.end_turn()
    assert values_of(path.fetch().records) == [b"last"]


@pytest.mark.parametrize("order", [1, -1])
def test_partition_named_twice_with_one_broken_batch_is_appended_and_answered_with_the_error(
    path: DataPath, order: int
) -> None:
    path.topic()
    parts = [PartitionProduceData(index=0, records=records) for records in (batch(b"a"), batch(b"b") * 2)][::order]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    response = path.produce_request(request, path.context(9))
    assert rows(response) == [("t", [(0, ErrorCode.INVALID_RECORD, -1)])]
    path.end_turn()
    assert values_of(path.fetch().records) == [b"a"]


def test_partition_named_twice_once_without_records_gets_the_batch(path: DataPath) -> None:
    path.topic()
    for records in ((None, batch(b"a")), (batch(b"b"), None)):
        parts = [PartitionProduceData(index=0, records=each) for each in records]
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
        response = path.produce_request(request, path.context(9))
        path.end_turn()
        expected = (0, 0, 0) if records[0] is None else (0, ErrorCode.INVALID_RECORD, -1)
        assert rows(response) == [("t", [expected])]
    assert values_of(path.fetch().records) == [b"a"]


def test_refused_request_answers_each_partition_once() -> None:
    parts = [PartitionProduceData(index=index, records=None) for index in (1, 0, 1)]
    data = [TopicProduceData(name=name, partition_data=parts) for name in ("t", "u", "t")]
    response = error_response(ProduceRequest(acks=-1, topic_data=data), 9, ErrorCode.CORRUPT_MESSAGE)
    assert rows(response) == [(name, [(1, 2, -1), (0, 2, -1)]) for name in ("t", "u")]


@pytest.mark.parametrize("data", [batch()[:16] + b"\3" + batch()[17:], batch()[:8] + bytes(4) + batch()[12:]])
@pytest.mark.parametrize("acks", [-1, 0])
def test_records_that_do_not_begin_with_a_batch_refuse_the_request(path: DataPath, data: bytes, acks: int) -> None:
    topic = path.topic(partitions=2)
    parts = [PartitionProduceData(index=0, records=batch(b"a")), PartitionProduceData(index=1, records=data)]
    request = ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    with pytest.raises(KafkaError) as refused:
        path.produce_request(request, path.context(9))
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    assert path.partition(topic, 0).log.end_offset == 0


def test_second_batch_that_is_none_is_corrupt_for_its_partition(path: DataPath) -> None:
    path.topic()
    for second in (batch()[:16] + b"\3" + batch()[17:], batch()[:8] + bytes(4) + batch()[12:]):
        assert path.produce(batch() + second).error_code == ErrorCode.CORRUPT_MESSAGE
    assert path.produce(batch() + batch()[:40]).error_code == ErrorCode.NONE


def test_no_records_are_an_invalid_record(path: DataPath) -> None:
    path.topic()
    assert path.produce(None).error_code == ErrorCode.INVALID_RECORD
    assert path.produce(b"").error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("acks", [-2, 2, 3])
def test_other_acks_are_refused(path: DataPath, acks: int) -> None:
    path.topic()
    assert path.produce(batch(), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_acks_0_gets_no_reply_and_is_written(path: DataPath) -> None:
    topic = path.topic()
    assert path.produce(batch(b"a"), acks=0) is None
    assert path.partition(topic, 0).high_watermark == 1


def test_acks_0_with_an_error_closes_the_connection(path: DataPath) -> None:
    path.topic()
    for records, closes in ((batch(b"a"), False), (b"junk", True)):
        data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
        assert path.produce_request(ProduceRequest(acks=0, topic_data=[data]), path.context(9)) is None
        assert path.decided.close is closes


def test_acks_0_that_is_refused_as_a_whole_closes_the_connection() -> None:
    client = Client(World())
    make_topic(client)
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch()[:16] + b"\3" * 60)])
    client.send(ProduceRequest(acks=0, topic_data=[data]), 9)
    client.world.run()
    assert client.closed


def test_client_may_not_write_to_internal_topics(path: DataPath) -> None:
    path.topic("__consumer_offsets", cleanup_policy="compact")
    answer = path.produce(batch((b"k", b"v")), "__consumer_offsets")
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert path.produce(batch((b"k", b"v")), "__consumer_offsets", client_id=ADMIN_CLIENT).error_code == 0


def test_wrong_node_names_the_leader_from_version_10_on(path: DataPath) -> None:
    topic = path.topic(leader=OTHER_NODE)
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch())])
    for version in (9, 10):
        response = path.produce_request(ProduceRequest(acks=1, topic_data=[data]), path.context(version))
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        if version == 9:
            assert answer.current_leader is None
            assert not response.node_endpoints
        else:
            leader = topic.partitions[0]
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, leader.leader_epoch)
            assert [(n.node_id, n.host, n.port) for n in response.node_endpoints] == [(1, "node1", 9093)]
    assert path.produce(batch(), node_id=OTHER_NODE).error_code == 0


def test_moved_leadership_is_obeyed_and_stamped(path: DataPath) -> None:
    topic = path.topic()
    path.produce(batch(b"a"))
    path.move_leader(topic, 0, OTHER_NODE)
    assert path.produce(batch(b"b")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert path.produce(batch(b"b"), node_id=OTHER_NODE).base_offset == 1
    assert path.partition(topic, 0).log.epoch_end_offset(0) == (0, 1)


def test_changed_config_rules_the_next_append(path: DataPath) -> None:
    path.topic()
    assert path.produce(batch(b"x" * 500)).error_code == 0
    path.set_config("t", "max.message.bytes", "100")
    assert path.produce(batch(b"x" * 500)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    path.set_config("t", "max.message.bytes", "1000")
    assert path.produce(batch(b"x" * 500)).error_code == 0


def test_record_errors_are_listed(path: DataPath) -> None:
    path.topic(cleanup_policy="compact")
    answer = path.produce(batch((b"k", b"v"), (None, b"v")))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1]
    assert answer.record_errors[0].batch_index_error_message
    assert answer.error_message
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)


def test_transactional_records_without_an_id_refuse_the_request(path: DataPath) -> None:
    path.topic()
    data = batch(b"v", pid=1, epoch=0, seq=0, attributes=TRANSACTIONAL)
    with pytest.raises(KafkaError) as refused:
        path.produce(data)
    assert refused.value.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_transactional_records_of_an_unknown_id_have_no_mapping(path: DataPath) -> None:
    topic = path.topic()
    data = batch(b"v", pid=1, epoch=0, seq=0, attributes=TRANSACTIONAL)
    path.transactions.code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    answer = path.produce(data, transactional_id="tx")
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert path.partition(topic, 0).log.end_offset == 0


# ---------------------------------------------------------------- durability


def test_reply_waits_for_the_flush_of_each_partition_it_touched(path: DataPath) -> None:
    topic = path.topic(partitions=3)
    parts = [PartitionProduceData(index=i, records=batch(b"a")) for i in (0, 2)]
    data = TopicProduceData(name="t", partition_data=parts)
    path.produce_request(ProduceRequest(acks=1, topic_data=[data]), path.context(9))
    assert list(path.decided.reads) == [path.partition(topic, i).flush_state for i in (0, 2)]


def test_nothing_is_visible_before_the_flush(path: DataPath) -> None:
    topic = path.topic()
    path.produce(batch(b"a"), end_turn=False)
    partition = path.partition(topic, 0)
    assert (partition.log.end_offset, partition.high_watermark) == (1, 0)
    assert len(path.fetch().records) == 0
    assert path.list_offset(-1).offset == 0
    path.end_turn()
    assert partition.high_watermark == 1
    assert len(path.fetch().records) > 0


def test_repetition_in_the_same_turn_waits_too(path: DataPath) -> None:
    topic = path.topic()
    first = batch(b"a", pid=1, epoch=0, seq=0)
    path.produce(first, end_turn=False)
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=first)])
    response = path.produce_request(ProduceRequest(acks=1, topic_data=[data]), path.context(9))
    assert response.responses[0].partition_responses[0].base_offset == 0
    assert list(path.decided.reads) == [path.partition(topic, 0).flush_state]


def test_failed_write_takes_back_records_and_producers(path: DataPath) -> None:
    topic = path.topic()
    path.produce(batch(b"a", pid=1, epoch=0, seq=0))
    partition = path.partition(topic, 0)
    before = partition.producers.fingerprint()
    path.env.files.inject(1, short_bytes=20)
    path.produce(batch(b"lost", b"lost", pid=1, epoch=0, seq=1))
    path.env.files.heal()
    assert len(path.refused) == 1
    assert (partition.log.end_offset, partition.high_watermark) == (1, 1)
    assert partition.producers.fingerprint() == before
    retried = path.produce(batch(b"b", b"c", pid=1, epoch=0, seq=1))
    assert (retried.error_code, retried.base_offset) == (0, 1)


def test_failed_write_does_not_forget_batches_that_a_snapshot_leaves_out() -> None:
    path = DataPath(producer_state="batches")
    topic = path.topic()
    for seq in range(7):
        path.produce(batch(b"a", pid=1, epoch=0, seq=seq))
    partition = path.partition(topic, 0)
    partition.take_snapshot()
    path.env.files.inject(1)
    path.produce(batch(b"lost", pid=1, epoch=0, seq=7))
    path.env.files.heal()
    # five in flight were 3..7 at most, and 7 is not among the written
    assert [b.base_sequence for b in partition.producers.batches(1)] == [3, 4, 5, 6]


def test_batches_behind_a_lost_first_one_wait_for_it(path: DataPath) -> None:
    path.topic()
    path.env.files.inject(1)
    path.produce(batch(b"lost", pid=1, epoch=0, seq=5))
    path.env.files.heal()
    assert path.produce(batch(b"b", pid=1, epoch=0, seq=6)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [path.produce(batch(b"b", pid=1, epoch=0, seq=seq)).base_offset for seq in (5, 6)] == [0, 1]


def test_failed_first_write_leaves_an_empty_partition_that_works(path: DataPath) -> None:
    topic = path.topic()
    path.env.files.inject(1, short_bytes=20)
    path.produce(batch(b"lost", pid=1, epoch=0, seq=0))
    path.env.files.heal()
    assert path.partition(topic, 0).log.end_offset == 0
    assert path.produce(batch(b"a", pid=1, epoch=0, seq=0, ts=NOW_MS)).base_offset == 0
    assert path.partition(topic, 0).log.epoch_end_offset(0) == (0, 1)
