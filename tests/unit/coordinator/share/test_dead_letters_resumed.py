"""Dead letters over restarts, moved leaders, ended sessions and faults: none is lost, and all records are archived."""

from __future__ import annotations

import logging

import pytest
from core_broker import Client
from unit.coordinator.share.kit import Member
from unit.coordinator.share.letters_kit import (
    ACCEPT,
    ENABLE,
    GROUP,
    QUEUE,
    REJECT,
    REJECTED,
    RELEASE,
    TOO_OFTEN,
    TOPIC_NAME,
    LettersWorld,
)
from unit.coordinator.share.test_share_offsets import alter

from broker.cluster.virtual_nodes import VirtualNodes
from broker.coordinator.share.dead_letters.sending import MOST_TRIES
from broker.coordinator.share.in_flight import ARCHIVED, ARCHIVING
from broker.journal.reading import entries
from protocol.errors import ErrorCode
from protocol.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

LIMIT = {"group_share_delivery_count_limit": "2"}


def states(world):
    """The states that are stored of t-0."""
    return [tuple(batch) for batch in world.state().batches]


def reject_and_stop(world, syncs, *acks):
    """Acknowledge, with only so many syncs of what follows, the last of them done by the disk but not told of."""
    world.world.auto_sync = False
    member = world.reader_
    member.client.send(member.acknowledge_request(*acks), 2)
    world.world.run()
    for _ in range(syncs):
        world.world.sync()
        world.world.run()


def stopped(syncs, *acks, **how):
    """A world in which the first four records are delivered, acknowledged, and the power goes after so many syncs."""
    world = LettersWorld(flush="fsync", **LIMIT, **how)
    world.produce(4)
    world.reader_ = world.reader()
    assert world.reader_.acquired() == [(0, 3, 1)]
    reject_and_stop(world, syncs, *acks)
    world.world = world.world.crash(lose_unsynced=True)
    world.client = Client(world.world)
    return world


@pytest.mark.parametrize(
    ("syncs", "before", "letters"),
    [(0, [], []), (1, ARCHIVING, []), (2, ARCHIVING, [0]), (3, ARCHIVED, [0])],
    ids=["nothing is durable", "ARCHIVING is durable", "the letter is durable", "ARCHIVED is durable"],
)
def test_letter_whose_sending_a_power_cut_ended_is_sent_again_at_the_next_use(syncs, before, letters):
    world = stopped(syncs, (0, 0, [REJECT]))
    with world:
        stored = [state for _, _, state, _ in states(world)]
        assert stored == ([before] if before else [])
        assert [offset for offset, _ in world.offsets()] == letters
        found = world.reader("n").acquired()
        if before:
            assert found == [(1, 3, 1)]
            again = [] if before == ARCHIVED else [0]
            assert world.offsets() == [(offset, REJECTED) for offset in letters + again]
            assert [state for _, _, state, _ in states(world)] == [ARCHIVED]
        else:
            assert found == [(0, 3, 1)]
        assert world.under_way == {}


def test_cause_of_a_letter_that_is_resumed_follows_from_its_deliveries():
    world = LettersWorld(flush="fsync", **LIMIT)
    world.produce(4)
    member = world.reader_ = world.reader()
    assert member.acquired() == [(0, 3, 1)]
    assert member.ack_error((0, 3, [RELEASE, RELEASE, ACCEPT, ACCEPT])) == 0
    assert member.acquired() == [(0, 1, 2)]
    world.produce(1)
    assert member.acquired() == [(4, 4, 1)]
    reject_and_stop(world, 1, (0, 0, [RELEASE]), (1, 1, [REJECT]), (4, 4, [REJECT]))
    world.world = world.world.crash(lose_unsynced=True)
    world.client = Client(world.world)
    with world:
        assert world.reader("n").acquired() == []
        # what was rejected at the last delivery cannot be told from what was given back then, as in Kafka
        assert world.offsets() == [(0, TOO_OFTEN), (1, TOO_OFTEN), (4, REJECTED)]


@pytest.mark.parametrize("change", ["no queue", "level 1"])
def test_letter_is_resumed_though_the_group_has_no_queue_any_more(change, caplog):
    world = stopped(1, (0, 0, [REJECT]))
    with world:
        if change == "no queue":
            assert world.set(**{TOPIC_NAME: ""}) == 0
        else:
            update = FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=2)
            assert world.client.call(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == 0
        assert world.reader("n").acquired() == [(1, 3, 1)]
        assert [state for _, _, state, _ in states(world)] == [ARCHIVED]
        assert world.offsets() == ([] if change == "no queue" else [(0, REJECTED)])


def test_letters_under_way_are_sent_once_when_all_sessions_end_and_the_partition_is_read_again():
    world = LettersWorld(flush="fsync")
    with world:
        world.produce(4)
        member = world.reader()
        assert member.acquired() == [(0, 3, 1)]
        world.world.auto_sync = False
        member.client.send(member.acknowledge_request((0, 1, [REJECT])), 2)
        world.world.run()
        world.world.sync()
        world.world.run()
        member.client.leave()
        world.world.run()
        assert world.world.broker.share.known(GROUP, world.topic_id(), 0) is None
        other = Member(world, "n", GROUP)
        other.client.send(other.fetch_request(0), 2)  # not a member, as far as ShareFetch looks
        world.world.run()
        assert [each[:2] for each in world.under_way[world.key()]] == [(0, 0), (1, 1)]
        world.world.auto_sync = True
        world.world.run()
        assert world.offsets() == [(0, REJECTED), (1, REJECTED)]
        assert world.under_way == {}
        live = world.world.broker.share.known(GROUP, world.topic_id(), 0).state
        assert live.start_offset == 2


def test_records_of_a_partition_that_is_not_in_use_any_more_are_archived_all_the_same():
    with LettersWorld(flush="fsync") as world:
        world.produce(4)
        member = world.reader()
        assert member.acquired() == [(0, 3, 1)]
        world.world.auto_sync = False
        member.client.send(member.acknowledge_request((0, 1, [REJECT])), 2)
        world.world.run()
        member.client.leave()
        world.world.auto_sync = True
        world.world.run()
        assert world.world.broker.share.known(GROUP, world.topic_id(), 0) is None
        assert (states(world)[0], world.state().delivery_complete_count) == ((0, 1, ARCHIVED, 1), 2)
        assert world.reader("n").acquired() == [(2, 3, 2)]


def test_state_that_was_begun_again_meanwhile_is_not_archived_by_a_letter():
    """An operator resets the offsets while the queue has no leader."""
    with LettersWorld() as world:
        world.world.broker.faults.add({"fault": "fail_dead_letter", "error": "NETWORK_EXCEPTION", "trigger": "once"})
        world.produce(2)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        assert member.ack_error((0, 1, [REJECT])) == 0
        member.fetch(epoch=-1)
        member.leave()
        assert alter(world, p0=0).responses[0].partitions[0].error_code == 0
        world.world.advance(1000)
        assert world.offsets() == [(0, REJECTED), (1, REJECTED)]
        assert states(world) == []
        assert world.reader("n").acquired() == [(0, 1, 1)]


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"])
@pytest.mark.parametrize("times", range(1, MOST_TRIES + 1))
def test_fault_that_passes_is_tried_again_five_times_in_all(error, times, caplog):
    with LettersWorld() as world:
        fault = world.world.broker.faults.add(
            {"fault": "fail_dead_letter", "error": error, "trigger": {"times": times}}
        )
        world.produce(2)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        assert member.ack_error((0, 0, [REJECT])) == 0
        for number, wait_ms in enumerate((1000, 2000, 4000, 8000)[: times - (times == MOST_TRIES)], 1):
            assert fault.hits == number
            world.world.advance(wait_ms - 1)
            assert (world.offsets(), [state for _, _, state, _ in states(world)]) == ([], [ARCHIVING])
            world.world.advance(1)
        assert fault.hits == times
        assert world.offsets() == ([(0, REJECTED)] if times < MOST_TRIES else [])
        assert [state for _, _, state, _ in states(world)] == [ARCHIVED]
        failed = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert [f"{error}: a fault is set" in record.getMessage() for record in failed] == [True] * (
            times == MOST_TRIES
        )


@pytest.mark.parametrize(
    ("filters", "is_met"),
    [
        ({}, True),
        ({"group": "g", "topic": QUEUE, "partition": 0}, True),
        ({"topic": "dlq.*"}, True),
        ({"group": "other"}, False),
        ({"topic": "t"}, False),
        ({"topic": QUEUE, "partition": 1}, False),
    ],
)
def test_fault_that_does_not_pass_loses_the_letter_and_the_record_is_archived(filters, is_met):
    with LettersWorld() as world:
        faults = world.world.broker.faults
        fault = faults.add({"fault": "fail_dead_letter", "error": "POLICY_VIOLATION", "trigger": "once", **filters})
        world.produce(2)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert (fault.calls, fault.hits) == (is_met, is_met)
        assert world.offsets() == ([] if is_met else [(0, REJECTED)])
        assert [state for _, _, state, _ in states(world)] == [ARCHIVED]
        faults.remove(fault.name)
        assert member.ack_error((1, 1, [REJECT])) == 0
        assert world.offsets()[-1] == (1, REJECTED)


def test_fault_of_letters_leaves_requests_to_their_shortcuts():
    with LettersWorld() as world:
        clients = world.world.broker.clients
        dispatch = clients.dispatch
        world.world.broker.faults.add({"fault": "fail_dead_letter", "error": "POLICY_VIOLATION"})
        assert clients.dispatch == dispatch
        assert not clients._disabled_by


class Three(LettersWorld):
    """Three brokers; the queue has its replicas on the second and the third, records and state lie on the first."""

    def __init__(self, **configs: str) -> None:
        super().__init__(
            {"on-2": 1, "on-3": 1, "t": 1},
            queue=0,
            brokers=3,
            replica_lag_time_max_ms="600000",
            share_coordinator_state_topic_num_partitions="1",
            offsets_topic_num_partitions="1",
        )
        broker = self.world.broker
        self.nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
        replicas = CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 3])
        rows = [CreatableTopicConfig(name=key, value=value) for key, value in {ENABLE: "true", **configs}.items()]
        wanted = CreatableTopic(
            name=QUEUE, num_partitions=-1, replication_factor=-1, assignments=[replicas], configs=rows
        )
        answer = self.client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)
        assert answer.topics[0].error_code == 0
        assert broker.metadata.topics["t"].partitions[0].leader == 1

    def change(self, what: str, node_id: int) -> None:
        done: list[bool] = []
        getattr(self.nodes, what)(self.nodes.find(node_id), done.append)
        self.world.run()
        assert done == [True]


def test_queue_without_a_leader_gets_its_letters_when_one_leads():
    with Three() as world:
        world.produce(2)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        for node in (2, 3):
            world.change("stop", node)
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert [state for _, _, state, _ in states(world)] == [ARCHIVING]
        world.change("start", 3)
        assert world.letters() == []
        world.world.advance(1000)
        assert world.offsets() == [(0, REJECTED)]
        assert [state for _, _, state, _ in states(world)] == [ARCHIVED]
        world.change("start", 2)


def test_letters_wait_for_in_sync_replicas_that_lag_as_acks_all_does(caplog):
    with Three() as world:
        world.produce(3)
        member = world.reader()
        assert member.acquired() == [(0, 2, 1)]
        world.change("lag", 3)
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert [state for _, _, state, _ in states(world)] == [ARCHIVING]
        world.change("release", 3)
        assert world.offsets() == [(0, REJECTED)]
        assert [state for _, _, state, _ in states(world)] == [ARCHIVED]
        world.change("lag", 3)
        assert member.ack_error((1, 1, [REJECT])) == 0
        world.world.advance(29_999)
        assert world.under_way
        world.world.advance(1)
        assert "REQUEST_TIMED_OUT" in caplog.records[-1].getMessage()
        assert world.under_way == {}
        assert world.state().delivery_complete_count == 1  # one more was behind the start offset by then


def test_queue_with_too_few_replicas_in_sync_gets_no_letters(caplog):
    with Three(**{"min.insync.replicas": "2"}) as world:
        world.produce(1)
        member = world.reader()
        assert member.acquired() == [(0, 0, 1)]
        world.change("stop", 3)
        assert member.ack_error((0, 0, [REJECT])) == 0
        assert "NOT_ENOUGH_REPLICAS" in caplog.records[-1].getMessage()
        assert [state for _, _, state, _ in states(world)] == [ARCHIVED]
        world.change("start", 3)


def test_broker_that_ends_while_replicas_lag_sends_the_letter_again_at_its_next_start():
    with Three() as world:
        world.produce(2)
        member = world.reader()
        assert member.acquired() == [(0, 1, 1)]
        world.change("lag", 3)
        assert member.ack_error((0, 0, [REJECT])) == 0
        world.world = world.world.restart()
        world.client = Client(world.world)
        assert [state for _, _, state, _ in states(world)] == [ARCHIVING]
        assert world.reader("n").acquired() == [(1, 1, 1)]
        assert world.offsets() == [(0, REJECTED)] * 2  # the one of before was in the log of the leader


def test_journal_shows_what_the_broker_has_written_and_what_was_refused():
    with LettersWorld() as world:
        broker = world.world.broker
        broker.keep_journal(1 << 20)
        broker.faults.add({"fault": "fail_dead_letter", "error": "INVALID_RECORD", "trigger": {"on_call": 2}})
        world.produce(2)
        member = world.reader()
        member.acquired()
        for offset in (0, 1):
            assert member.ack_error((offset, offset, [REJECT])) == 0
        own = [each for each in entries(broker.clients.journal) if each.client_id == "momus-dead-letters"]
        assert [(each.api, each.peer.address) for each in own] == [("Produce", "")] * 2
        answers = [each.response().responses[0].partition_responses[0] for each in own]
        assert [(each.error_code, each.base_offset) for each in answers] == [(0, 0), (ErrorCode.INVALID_RECORD, -1)]
        assert [each.request().topic_data[0].name for each in own] == [QUEUE] * 2
        notes = [broker.clients.journal.notes(each.peer, each.correlation_id) for each in own]
        assert notes == [{}, {"why": "a fault is set"}]
