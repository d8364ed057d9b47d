"""Dead letters that cannot be written: nothing gets into the queue, the log says why, the records are archived."""

from __future__ import annotations

import logging

import pytest
from core_requests import GROUP_RESOURCE, alter_request
from unit.coordinator.share.letters_kit import (
    AUTO_CREATE,
    ENABLE,
    GROUP,
    PREFIX,
    QUEUE,
    REJECT,
    REJECTED,
    TOPIC_NAME,
    LettersWorld,
    Said,
)

from broker.cluster.metadata import GROUP as GROUP_RECORD
from broker.cluster.topics import config_record
from broker.coordinator.runtime import LOAD_AT_ONCE_BYTES, LOADING, READY
from broker.coordinator.share.in_flight import ARCHIVED, ARCHIVING
from protocol.errors import ErrorCode
from protocol.messages.topics import DeleteTopicsRequest


def reject_one(world):
    """The first record of t-0 is delivered and rejected: the error code."""
    world.produce(1)
    member = world.reader()
    assert member.acquired() == [(0, 0, 1)]
    return member.ack_error((0, 0, [REJECT]))


def errors(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def check_archived(world):
    """As if there were no queue, but for the way through ARCHIVING."""
    assert world.said() == [[Said(0, 0, ARCHIVING, 1)], [Said(0, 0, ARCHIVED, 1)]]
    assert world.under_way == {}
    assert world.world.broker.share.known(GROUP, world.topic_id(), 0).state.start_offset == 1
    assert world.reader("n").acquired() == []


@pytest.mark.parametrize(
    ("how", "settings", "why"),
    [
        ({"enabled": False}, {}, f"the topic {QUEUE} is not enabled for it: its {ENABLE} is false"),
        ({"queue": 0}, {}, f"the topic {QUEUE} does not exist, and {AUTO_CREATE} is false"),
        ({"name": "letters"}, {}, f"the name letters does not begin with dlq., the {PREFIX}"),
        ({"name": "x.q"}, {PREFIX: "x.y"}, f"the name x.q does not begin with x.y, the {PREFIX}"),
        ({"queue": 0, "name": "q"}, {AUTO_CREATE: "true"}, f"the name q does not begin with dlq., the {PREFIX}"),
        (
            {"queue": 0, "name": "dlq. q"},
            {AUTO_CREATE: "true"},
            "INVALID_TOPIC_EXCEPTION: Topic name is invalid: 'dlq. q' contains one or more characters other than ASCII"
            " alphanumerics, '.', '_' and '-'",
        ),
        (
            {"queue": 0, "name": "dlq.t.1", "topics": {"t": 1, "dlq.t_1": 1}},
            {AUTO_CREATE: "true"},
            "INVALID_TOPIC_EXCEPTION: Topic 'dlq.t.1' collides with existing topic: dlq.t_1",
        ),
        ({"configs": {"cleanup.policy": "compact"}}, {}, "INVALID_RECORD: "),
        ({"configs": {"max.message.bytes": "150"}}, {}, "MESSAGE_TOO_LARGE: "),
    ],
)  # fmt: skip  # one a line
def test_queue_that_may_not_be_written_to_gets_nothing_and_the_log_says_why(how, settings, why, caplog):
    with LettersWorld(**how) as world:
        if settings:
            world.set_broker(**settings)
        assert reject_one(world) == 0
        assert world.letters(name=how.get("name", QUEUE)) == []
        (error,) = errors(caplog)
        assert error.startswith(
            f"group g: offsets 0 to 0 of t-0 are archived without a record in the dead-letter queue: {why}"
        )
        check_archived(world)
        assert ("name" in how and how.get("queue") == 0) <= (how.get("name") not in world.world.broker.metadata.topics)


def test_name_with_two_underscores_is_refused_as_a_setting():
    with LettersWorld() as world:
        reply = world.client.call(alter_request(GROUP_RESOURCE, GROUP, {TOPIC_NAME: "__dlq"}), 1).responses[0]
        assert (reply.error_code, reply.error_message) == (
            ErrorCode.INVALID_CONFIG,
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        )
        assert world.set(**{TOPIC_NAME: "_dlq"}) == 0
        assert world.set(**{TOPIC_NAME: "no prefix, and no name of a topic"}) == 0


def test_name_with_two_underscores_that_a_log_has_all_the_same_is_not_written_to(caplog):
    with LettersWorld() as world:
        world.world.broker.metadata_shard.append(
            [(None, config_record(GROUP_RECORD, GROUP, TOPIC_NAME, "__consumer_offsets"))]
        )
        assert reject_one(world) == 0
        assert "the name __consumer_offsets begins with __" in errors(caplog)[0]
        check_archived(world)


@pytest.mark.parametrize(("flush", "kind"), [("os", "fail_write"), ("fsync", "fail_write"), ("fsync", "fail_fsync")])
def test_log_of_the_queue_that_cannot_be_written_loses_the_letter_and_the_record_is_archived(flush, kind, caplog):
    with LettersWorld(flush=flush) as world:
        fault = world.world.broker.faults.add({"fault": kind, "topic": QUEUE, "trigger": "once"})
        assert reject_one(world) == 0
        assert fault.hits == 1
        assert world.letters() == []
        assert errors(caplog)[-1].endswith(f"the log of {QUEUE}-0 could not be written")
        check_archived(world)


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_state_that_cannot_be_written_is_refused_and_no_letter_is_sent(flush):
    with LettersWorld(flush=flush) as world:
        world.produce(1)
        member = world.reader()
        assert member.acquired() == [(0, 0, 1)]
        world.world.broker.faults.add({"fault": "fail_write", "topic": "__share_group_state", "trigger": "once"})
        assert member.ack_error((0, 0, [REJECT])) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (world.letters(), world.under_way) == ([], {})
        assert member.acquired() == [(0, 0, 1)]
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert world.offsets() == [(0, REJECTED)]


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_end_that_cannot_be_written_is_tried_again_and_no_second_letter_is_sent(flush):
    with LettersWorld(flush=flush) as world:
        fault = {"fault": "fail_write", "topic": "__share_group_state", "trigger": {"on_call": 2}}
        world.produce(1)
        member = world.reader()
        assert member.acquired() == [(0, 0, 1)]
        world.world.broker.faults.add(fault)
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert [each.delivery_state for each in world.state().batches] == [ARCHIVING]
        assert member.acquired() == []  # it is made again from the state
        world.world.advance(1000)
        assert [each.delivery_state for each in world.state().batches] == [ARCHIVED]
        assert world.offsets() == [(0, REJECTED)]
        assert world.under_way == {}


@pytest.mark.parametrize("is_in_use", [True, False])
def test_end_waits_for_a_log_of_the_state_that_is_loading(is_in_use):
    with LettersWorld() as world:
        world.world.broker.faults.add({"fault": "fail_dead_letter", "error": "NETWORK_EXCEPTION", "trigger": "once"})
        world.produce(2)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        assert member.ack_error((0, 0, [REJECT])) == 0
        if not is_in_use:
            member.client.leave()
            world.world.run()
        shard = world.world.broker.share.coordinator.shard(world.key())
        shard.state = LOADING
        steps, shard._loading, shard.load_at_once_bytes = shard._loading, iter(()), 0
        world.world.advance(1500)
        assert world.offsets() == [(0, REJECTED)]
        assert world.under_way
        shard.state, shard._loading, shard.load_at_once_bytes = READY, steps, LOAD_AT_ONCE_BYTES
        world.world.advance(1000)
        assert world.under_way == {}
        assert [each.delivery_state for each in world.state().batches][:1] == [ARCHIVED]


def test_metadata_that_cannot_be_written_leaves_no_queue(caplog):
    with LettersWorld(queue=0) as world:
        world.set_broker(**{AUTO_CREATE: "true"})
        world.produce(1)
        member = world.reader()
        assert member.acquired() == [(0, 0, 1)]
        world.world.broker.faults.add({"fault": "fail_write", "topic": "__cluster_metadata", "trigger": "once"})
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert QUEUE not in world.world.broker.metadata.topics
        assert errors(caplog)[-1].endswith("the queue could not be made: the log of the metadata could not be written")
        check_archived(world)


def test_queue_that_is_deleted_while_its_letter_is_synced_does_not_hold_up_the_record(caplog):
    with LettersWorld(flush="fsync") as world:
        world.produce(1)
        member = world.reader()
        assert member.acquired() == [(0, 0, 1)]
        world.world.auto_sync = False
        member.client.send(member.acknowledge_request((0, 0, [REJECT])), 2)
        world.world.run()
        world.world.sync()  # the state; the letter is in the next job
        world.client.send(DeleteTopicsRequest(topic_names=[QUEUE], timeout_ms=1000), 5)
        world.world.run()
        world.world.auto_sync = True
        world.world.run()
        assert world.under_way == {}
        check_archived(world)


def test_topic_of_the_records_that_is_deleted_meanwhile_takes_its_letters_along(caplog):
    with LettersWorld(flush="fsync") as world:
        world.produce(1)
        member = world.reader()
        assert member.acquired() == [(0, 0, 1)]
        world.world.auto_sync = False
        member.client.send(member.acknowledge_request((0, 0, [REJECT])), 2)
        world.client.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        world.world.run()
        world.world.auto_sync = True
        world.world.run()
        assert (world.letters(), world.under_way) == ([], {})
        assert "UNKNOWN_TOPIC_ID" in errors(caplog)[-1]
