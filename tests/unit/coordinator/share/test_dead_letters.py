"""Dead-letter queues of share groups (KIP-1191): what gets there, in which order the logs say so, what is copied."""

from __future__ import annotations

import gzip

import pytest
from core_requests import produce_request
from unit.coordinator.share.letters_kit import (
    ACCEPT,
    AUTO_CREATE,
    COPY,
    ENABLE,
    GROUP,
    PREFIX,
    QUEUE,
    REJECT,
    REJECTED,
    RELEASE,
    TOO_OFTEN,
    TOPIC_NAME,
    LettersWorld,
    Said,
)

from broker.coordinator.share.dead_letters.originals import Originals
from broker.coordinator.share.in_flight import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE
from protocol.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

FLUSHES = ["memory", "os", "fsync"]
GZIP = 1


@pytest.mark.parametrize("flush", FLUSHES)
def test_rejected_records_go_to_the_queue_with_their_headers_and_are_archived_after_that(flush):
    with LettersWorld(flush=flush) as world:
        world.produce(4)
        member = world.reader()
        assert member.acquired() == [(0, 3, 1)]
        assert member.ack_error((0, 2, [REJECT]), (3, 3, [ACCEPT])) == 0
        assert [(record.key, record.value, record.headers) for record in world.letters()] == [
            (
                None,
                None,
                (
                    ("__dlq.errors.topic", b"t"),
                    ("__dlq.errors.partition", b"0"),
                    ("__dlq.errors.offset", b"%d" % offset),
                    ("__dlq.errors.group", b"g"),
                    ("__dlq.errors.delivery.count", b"1"),
                    ("__dlq.errors.message", REJECTED),
                ),
            )
            for offset in range(3)
        ]
        assert {record.timestamp for record in world.letters()} == {world.world.broker.turn.now_ms}
        assert world.said() == [
            [Said(0, 2, ARCHIVING, 1), Said(3, 3, ACKNOWLEDGED, 1)],
            [Said(0, 2, ARCHIVED, 1)],
        ]
        assert world.under_way == {}
        assert world.world.broker.share.known(GROUP, world.topic_id(), 0).state.start_offset == 4
        assert world.state().delivery_complete_count == 4
        assert world.reader("n").acquired() == []


def release_to_the_limit(world, member):
    for count in (1, 2):
        assert member.acquired() == [(0, 1, count)]
        assert member.ack_error((0, 1, [RELEASE])) == 0


def let_locks_expire(world, member):
    for count in (1, 2):
        assert member.acquired() == [(0, 1, count)]
        world.world.advance(15_000)
        member.beat()
        world.world.advance(15_001)


def end_two_sessions(world, member):
    assert member.acquired() == [(0, 1, 1)]
    assert member.fetch(epoch=-1).error_code == 0
    other = world.reader("n")
    assert other.acquired() == [(0, 1, 2)]
    other.client.leave()
    world.world.run()


@pytest.mark.parametrize("give_back", [release_to_the_limit, let_locks_expire, end_two_sessions])
def test_record_that_was_delivered_as_often_as_it_may_goes_to_the_queue(give_back):
    with LettersWorld(group_share_delivery_count_limit="2") as world:
        world.produce(2)
        give_back(world, world.reader())
        assert world.offsets() == [(0, TOO_OFTEN), (1, TOO_OFTEN)]
        assert {dict(record.headers)["__dlq.errors.delivery.count"] for record in world.letters()} == {b"2"}
        assert [each for said in world.said() for each in said] == [
            Said(0, 1, AVAILABLE, 1),
            Said(0, 1, ARCHIVING, 2),
            Said(0, 1, ARCHIVED, 2),
        ]
        assert world.reader("x").acquired() == []


def test_record_that_is_rejected_at_its_last_delivery_was_rejected():
    with LettersWorld(group_share_delivery_count_limit="2") as world:
        world.produce(1)
        member = world.reader()
        assert (member.acquired(), member.ack_error((0, 0, [RELEASE]))) == ([(0, 0, 1)], 0)
        assert (member.acquired(), member.ack_error((0, 0, [REJECT]))) == ([(0, 0, 2)], 0)
        assert world.offsets() == [(0, REJECTED)]


def test_only_rejected_records_of_a_batch_go_to_the_queue_and_a_gap_does_not():
    with LettersWorld() as world:
        world.produce(6)
        member = world.reader()
        assert member.acquired() == [(0, 5, 1)]
        assert member.ack_error((0, 5, [REJECT, ACCEPT, 0, RELEASE, REJECT, ACCEPT])) == 0
        assert world.offsets() == [(0, REJECTED), (4, REJECTED)]
        assert member.acquired() == [(3, 3, 2)]


def test_acknowledgements_that_come_with_a_fetch_send_letters_too():
    with LettersWorld() as world:
        world.produce(2)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        world.produce(1)
        assert member.acquired(acks={0: [(0, 1, [REJECT])]}) == [(2, 2, 1)]
        assert world.offsets() == [(0, REJECTED), (1, REJECTED)]


def test_records_of_an_archiving_batch_are_neither_delivered_nor_acknowledged_and_count_as_in_flight():
    with LettersWorld(flush="fsync") as world:
        world.produce(3)
        member = world.reader()
        assert member.acquired() == [(0, 2, 1)]
        world.world.auto_sync = False
        member.client.send(member.acknowledge_request((0, 1, [REJECT])), 2)
        world.world.run()
        live = world.world.broker.share.known(GROUP, world.topic_id(), 0).state
        assert [each[:3] for each in live.archiving()] == [(0, 0, ARCHIVING), (1, 1, ARCHIVING)]
        assert (live.start_offset, live.in_flight, live.complete_count) == (0, 3, 0)
        member.client.send(member.acknowledge_request((0, 1, [ACCEPT])), 2)
        world.world.auto_sync = True
        world.world.run()
        replies = member.client.replies()
        assert [reply.responses[0].partitions[0].error_code for reply in replies] == [0, 121]
        assert (live.start_offset, live.in_flight) == (2, 1)


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_letters_go_to_the_partition_of_their_own_number_modulo_those_of_the_queue(partitions):
    with LettersWorld({"t": 4}, queue=partitions) as world:
        member = world.reader()
        for index in range(4):
            world.produce(1, partition=index)
        assert member.acquired(*range(4)) == [(0, 0, 1)] * 4
        for index in range(4):
            assert member.ack_error((0, 0, [REJECT]), partition=index) == 0
        found = [
            [int(dict(record.headers)["__dlq.errors.partition"]) for record in world.letters(index)]
            for index in range(partitions)
        ]
        assert found == [list(range(index, 4, partitions)) for index in range(partitions)]


def test_group_without_a_queue_archives_at_once():
    with LettersWorld() as world:
        assert world.set(**{TOPIC_NAME: ""}) == 0
        world.produce(1)
        member = world.reader()
        assert (member.acquired(), member.ack_error((0, 0, [REJECT]))) == ([(0, 0, 1)], 0)
        assert world.letters() == []
        assert world.said() == [[Said(0, 0, ARCHIVED, 1)]]


@pytest.mark.parametrize("how", ["by the feature's level", "by the release"])
def test_below_level_2_of_the_feature_there_are_no_queues(how):
    with LettersWorld(**({"as_version": "4.3"} if how == "by the release" else {})) as world:
        if how == "by the feature's level":
            update = FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=2)
            assert world.client.call(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == 0
        world.produce(1)
        member = world.reader()
        assert (member.acquired(), member.ack_error((0, 0, [REJECT]))) == ([(0, 0, 1)], 0)
        assert world.letters() == []
        assert world.said() == [[Said(0, 0, ARCHIVED, 1)]]


def test_queue_is_made_when_it_is_first_needed_with_the_settings_of_kafka():
    with LettersWorld({"t": 2}, queue=0, num_partitions="3") as world:
        world.set_broker(**{AUTO_CREATE: "true"})
        for index in (1, 0):
            world.produce(2, partition=index)
        member = world.reader()
        assert member.acquired(1) == [(0, 1, 1)]
        assert QUEUE not in world.world.broker.metadata.topics
        assert member.ack_error((0, 1, [REJECT]), partition=1) == 0
        made = world.world.broker.metadata.topics[QUEUE]
        assert (len(made.partitions), dict(made.configs)) == (
            3,
            {ENABLE: "true", "message.timestamp.type": "CreateTime"},
        )
        assert world.offsets(1) == [(0, REJECTED), (1, REJECTED)]
        world.restart()
        assert QUEUE in world.world.broker.metadata.topics


@pytest.mark.parametrize("name", ["letters", "dlq.q"])
def test_without_a_prefix_every_name_is_good(name):
    with LettersWorld(name=name, errors_deadletterqueue_topic_name_prefix="x.") as world:
        world.set_broker(**{PREFIX: ""})
        world.produce(1)
        member = world.reader()
        assert (member.acquired(), member.ack_error((0, 0, [REJECT]))) == ([(0, 0, 1)], 0)
        assert world.offsets(name=name) == [(0, REJECTED)]


def produce(world, *records, attributes=0):
    """A batch of (key, value, headers) of t-0."""
    data = build_batch(records, timestamp_ms=5, attributes=attributes)
    row = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=data)])
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[row])
    assert world.client.call(request, 7).responses[0].partition_responses[0].error_code == 0


def rejected(world, last):
    """All of t-0, up to this offset, is rejected."""
    member = world.reader()
    taken = member.acquired(max_records=5000)
    assert (taken[0][0], taken[-1][1]) == (0, last)
    assert member.ack_error(*((first, end, [REJECT]) for first, end, _ in taken)) == 0


def copies(world):
    return [(record.key, record.value) for record in world.letters()]


@pytest.mark.parametrize("codec", [0, GZIP])
def test_copy_has_key_and_value_and_not_the_headers(codec):
    with LettersWorld(copy=True) as world:
        produce(world, (b"k", b"v", [("h", b"1")]), (None, b"w", []), (b"x", None, []), attributes=codec)
        rejected(world, 2)
        assert copies(world) == [(b"k", b"v"), (None, b"w"), (b"x", None)]
        assert {name for record in world.letters() for name, _ in record.headers} == {
            f"__dlq.errors.{what}" for what in ("topic", "partition", "offset", "group", "delivery.count", "message")
        }


def test_copies_of_one_partition_are_of_the_records_that_were_rejected():
    with LettersWorld(copy=True) as world:
        world.produce(3, 3)
        member = world.reader()
        member.acquired()
        assert member.ack_error((0, 5, [ACCEPT, REJECT, ACCEPT, ACCEPT, REJECT, REJECT])) == 0
        assert copies(world) == [(None, b"1"), (None, b"1"), (None, b"2")]


def test_letters_fill_batches_up_to_the_limit_of_the_queue():
    with LettersWorld(configs={"max.message.bytes": "1000"}) as world:
        world.produce(40)
        rejected(world, 39)
        sizes = [len(batch) for batch in world.batches()]
        assert [offset for offset, _ in world.offsets()] == list(range(40))
        one = len(world.batches()[0]) // 5  # about
        assert all(1000 - one < size <= 1000 for size in sizes[:-1])
        assert world.state().delivery_complete_count == 40


@pytest.mark.parametrize("codec", [0, GZIP])
def test_copies_that_are_too_many_for_a_batch_come_in_several_and_one_that_is_too_large_is_left_out(codec):
    with LettersWorld(copy=True, configs={"max.message.bytes": "2000"}) as world:
        values = [b"%02d" % number * 300 for number in range(6)]
        for value in (*values[:3], b"z" * 1980, *values[3:]):
            produce(world, (None, value, []), attributes=codec)
        rejected(world, 6)
        expected = [*values[:3], None, *values[3:]]
        assert [value for _, value in copies(world)] == expected
        assert all(len(batch) <= 2000 for batch in world.batches())


def test_compressed_batch_that_inflates_beyond_the_limit_is_not_copied():
    with LettersWorld(copy=True, configs={"max.message.bytes": "2000"}) as world:
        bomb = b"0" * 3000
        assert len(gzip.compress(bomb)) < 100
        produce(world, (None, bomb, []), (None, b"small", []), attributes=GZIP)
        produce(world, (None, b"other", []))
        rejected(world, 2)
        assert copies(world) == [(None, None), (None, None), (None, b"other")]


def test_records_that_retention_has_removed_are_told_of_and_not_copied():
    with LettersWorld(copy=True) as world:
        world.produce(2, 2)
        member = world.reader()
        assert member.acquired()[0][0] == 0
        topic = world.world.broker.metadata.topics["t"]
        world.world.broker.partitions.get(topic, 0).delete_records(2)
        assert member.ack_error((0, 3, [REJECT])) == 0
        assert [offset for offset, _ in world.offsets()] == [0, 1, 2, 3]
        assert copies(world) == [(None, None), (None, None), (None, b"0"), (None, b"1")]


def test_settings_of_the_queue_are_those_of_its_topic():
    """A queue may compress what it gets, and may stamp it."""
    with LettersWorld(configs={"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"}) as world:
        world.produce(2)
        rejected(world, 1)
        (batch,) = world.batches()
        assert batch[22] & 0x0F == GZIP | 8
        assert world.offsets() == [(0, REJECTED), (1, REJECTED)]


def test_setting_that_copies_is_looked_at_when_letters_are_written():
    with LettersWorld() as world:
        world.client.call(produce_request("t", 0, b"a", b"b"), 7)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        assert world.set(**{COPY: "true"}) == 0
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert copies(world) == [(None, b"a")]


@pytest.mark.parametrize("codec", [0, GZIP])
def test_records_to_copy_are_read_a_bounded_part_at_a_time(codec):
    with LettersWorld() as world:
        values = [b"%03d" % number * 100 for number in range(40)]
        for at in range(0, 40, 4):
            produce(world, *[(None, value, []) for value in values[at : at + 4]], attributes=codec)
        partition = world.world.broker.partitions.get(world.world.broker.metadata.topics["t"], 0)
        original, kept = Originals(partition, 30, 2000), []
        for offset in range(5, 31):
            assert original(offset) == (None, values[offset])
            kept.append(len(original._found))
        assert (min(kept), max(kept)) == (2, 6)
        assert original(31) == (None, None)
