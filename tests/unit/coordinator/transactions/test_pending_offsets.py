"""Offsets that wait for their transaction's end: who wins, who sees them, what deletes them."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request
from txn_kit import Producer, committed

from protocol.errors import ErrorCode
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

WEEK_MS = 7 * 86_400_000


@pytest.fixture
def world():
    return World("os")


def producer_of(client, name, **fields):
    producer = Producer(client, name, **fields)
    producer.init()
    return producer


def replayed_equals_live(world):
    world.check_replay()
    again = world.crash()
    for shard in again.broker.groups.shards:
        shard.require()
    return Client(again)


def test_what_was_sent_later_wins_whoever_commits_first(client):
    first, second = producer_of(client, "one"), producer_of(client, "two")
    first.send_offsets({0: 10})
    second.send_offsets({0: 20})
    second.end()
    assert committed(client, stable=True) == {0: (-1, 88)}
    assert committed(client) == {0: (20, 0)}
    first.end()
    assert committed(client, stable=True) == {0: (20, 0)}
    assert committed(replayed_equals_live(client.world)) == {0: (20, 0)}


def test_what_was_sent_later_replaces_what_was_committed_earlier(client):
    first, second = producer_of(client, "one"), producer_of(client, "two")
    first.send_offsets({0: 10})
    second.send_offsets({0: 5})
    first.end()
    assert committed(client) == {0: (10, 0)}
    second.end()
    assert committed(client) == {0: (5, 0)}
    assert committed(replayed_equals_live(client.world)) == {0: (5, 0)}


def test_plain_commit_after_a_pending_one_stays(client):
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 10, 1: 11})
    client.call(commit_request("g", {0: 3}), 9)
    assert committed(client, stable=True, partitions=(0, 1)) == {0: (-1, 88), 1: (-1, 88)}
    producer.end()
    assert committed(client, stable=True, partitions=(0, 1)) == {0: (3, 0), 1: (11, 0)}
    replayed_equals_live(client.world)


def test_pending_one_after_a_plain_commit_replaces_it(client):
    client.call(commit_request("g", {0: 30}), 9)
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 1})
    producer.send_offsets({0: 2})
    producer.end()
    assert committed(client) == {0: (2, 0)}
    replayed_equals_live(client.world)


def test_abort_leaves_what_was_committed(client):
    client.call(commit_request("g", {0: 30}), 9)
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 1, 2: 5})
    producer.end(commit=False)
    assert committed(client, stable=True, partitions=(0, 2)) == {0: (30, 0), 2: (-1, 0)}
    replayed_equals_live(client.world)


def test_all_of_a_transaction_counts_at_once(client):
    producer = producer_of(client, "tx")
    for group_id in ("g", "h", "i"):
        producer.send_offsets({0: 1, 1: 2}, group_id)
    for group_id in ("g", "h", "i"):
        assert committed(client, group_id, partitions=(0, 1)) == {0: (-1, 0), 1: (-1, 0)}
    producer.end()
    for group_id in ("g", "h", "i"):
        assert committed(client, group_id, partitions=(0, 1), stable=True) == {0: (1, 0), 1: (2, 0)}
    replayed_equals_live(client.world)


def test_kept_answers_follow_what_is_pending(client):
    client.call(commit_request("g", {0: 30}), 9)
    for _ in range(3):  # from the second on it is the kept one
        assert committed(client, stable=True) == {0: (30, 0)}
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 1})
    for _ in range(3):
        assert committed(client, stable=True) == {0: (-1, 88)}
        assert committed(client) == {0: (30, 0)}
    producer.end(commit=False)
    for _ in range(3):
        assert committed(client, stable=True) == {0: (30, 0)}


def test_old_fetches_know_unstable_offsets_too(client):
    client.call(commit_request("g", {0: 30}), 9)
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 1, 1: 1})

    def fetch_all(version, stable):
        if version >= 8:
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        else:
            request = OffsetFetchRequest(group_id="g", topics=None)
        request.require_stable = stable
        answer = client.call(request, version)
        topics = answer.groups[0].topics if version >= 8 else answer.topics
        return {p.partition_index: (p.committed_offset, p.error_code) for t in topics for p in t.partitions}

    for version in (7, 8, 9):
        assert fetch_all(version, False) == {0: (30, 0)}
        assert fetch_all(version, True) == {0: (-1, 88)}


def test_group_with_nothing_but_pending_offsets_lists_none(client):
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 1})
    answer = client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 8)
    assert answer.groups[0].topics == []


def test_deleted_group_takes_its_pending_offsets_along(client):
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 1})
    assert client.call(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0
    assert committed(client, stable=True) == {0: (-1, 0)}
    assert producer.end() == 0
    assert committed(client) == {0: (-1, 0)}
    replayed_equals_live(client.world)


def test_deleted_offset_takes_the_pending_one_along(client):
    producer = producer_of(client, "tx")
    producer.send_offsets({0: 1, 1: 2})
    topic = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    assert client.call(OffsetDeleteRequest(group_id="g", topics=[topic]), 0).error_code == 0
    producer.end()
    assert committed(client, partitions=(0, 1)) == {0: (-1, 0), 1: (2, 0)}
    replayed_equals_live(client.world)


def test_offset_does_not_expire_while_one_is_pending(client):
    client.call(commit_request("g", {0: 30, 1: 31}), 9)
    client.world.leap(WEEK_MS - 10_000)
    producer = Producer(client, "tx")
    producer.init(timeout_ms=900_000)
    producer.send_offsets({0: 1})
    client.world.advance(620_000)
    assert committed(client, partitions=(0, 1)) == {0: (30, 0), 1: (-1, 0)}
    client.world.advance(2 * 900_000)
    assert committed(client, partitions=(0, 1)) == {0: (-1, 0), 1: (-1, 0)}


def test_too_much_metadata_does_not_stop_the_others(client):
    producer = producer_of(client, "tx")
    request = producer.offsets_request({0: 1, 1: 2})
    request.topics[0].partitions[0].committed_metadata = "x" * 4097
    answer = client.call(request, 5)
    assert [p.error_code for p in answer.topics[0].partitions] == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]
    producer.end()
    assert committed(client, partitions=(0, 1)) == {0: (-1, 0), 1: (2, 0)}


# -- the order of checks


def test_unknown_topics_do_not_stop_the_others(client):
    producer = producer_of(client, "tx")
    assert producer.send_offsets({0: 1, 3: 1, -1: 1}) == {0: 0, 3: 3, -1: 3}
    assert producer.send_offsets({0: 1}, topic="nope") == {0: ErrorCode.UNKNOWN_TOPIC_ID}
    assert producer.send_offsets({0: 1}, topic="nope", version=5) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_fenced_producer_hears_of_it_even_with_a_wrong_generation(client):
    old = producer_of(client, "tx")
    producer_of(client, "tx")
    assert old.send_offsets({0: 1}, generation_id_or_member_epoch=7, member_id="zombie") == {
        0: ErrorCode.INVALID_PRODUCER_EPOCH
    }
    assert old.send_offsets({0: 1}, version=3) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_wrong_generation_is_refused_and_nothing_written(client, version):
    producer = producer_of(client, "tx", v2=False)
    producer.add_offsets()
    refused = producer.send_offsets({0: 1}, version=version, generation_id_or_member_epoch=7, member_id="zombie")
    assert refused == {0: ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.ILLEGAL_GENERATION}
    producer.end(version=5 if version >= 5 else 4)
    assert committed(client, stable=True) == {0: (-1, 0)}


@pytest.mark.parametrize(("version", "code"), [(0, 48), (3, 48), (4, 120)])
def test_offsets_without_adding_them_first_are_refused_below_version_5(client, version, code):
    producer = producer_of(client, "tx", v2=False)
    assert producer.send_offsets({0: 1}, version=version) == {0: code}


def test_verification_can_be_turned_off():
    world = World("os", transaction_partition_verification_enable="false")
    client = Client(world)
    make_topic(client)
    producer = producer_of(client, "tx", v2=False)
    assert producer.send_offsets({0: 1}) == {0: 0}


def test_empty_group_id_is_refused(client):
    producer = producer_of(client, "tx")
    assert producer.send_offsets({0: 1}, "") == {0: ErrorCode.INVALID_GROUP_ID}


def test_unknown_producer_is_refused(client):
    producer = producer_of(client, "tx")
    producer.id += 1
    assert producer.send_offsets({0: 1}) == {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_log_that_breaks_while_offsets_wait_for_their_transaction_refuses_them_and_nothing_else():
    """At fsync they wait until the record that names their partition is durable."""
    world = World("fsync")
    client = Client(world)
    make_topic(client)
    producer = producer_of(client, "x")
    producer.send_offsets({0: 1})
    producer.end()
    shard = world.broker.groups.of("g")
    world.auto_sync = False
    client.send(producer.offsets_request({0: 5}), 5)
    world.run()
    assert (client.replies(), len(world.syncs)) == ([], 1)
    shard.log.give_up("could not be cleaned")
    world.auto_sync = True
    world.run()
    (answer,) = client.replies()
    assert [row.error_code for row in answer.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR]
    assert producer.send_offsets({0: 7}) == {0: 0}
    assert producer.end() == 0
    assert committed(client) == {0: (7, 0)}


def test_log_that_breaks_while_a_transaction_waits_for_its_markers_keeps_nothing_else_from_its_sync():
    world = World("fsync", transaction_state_log_num_partitions="1")
    client = Client(world)
    make_topic(client)
    producer = producer_of(client, "x")
    producer.send_offsets({0: 5})
    world.auto_sync = False
    client.send(producer.end_request(), 5)
    world.run()
    world.sync()  # it is prepared
    world.run()
    assert (client.replies(), len(world.syncs)) == ([], 1)
    world.broker.transactions.shards[0].log.give_up("could not be cleaned")
    world.auto_sync = True
    world.run()
    (answer,) = client.replies()
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert producer.end() == ErrorCode.CONCURRENT_TRANSACTIONS  # its markers are sent again
    assert producer.end() == 0
    assert committed(client) == {0: (5, 0)}


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_coordinator_whose_log_was_out_of_use_opens_it_again(flush):
    world = World(flush)
    client = Client(world)
    producer = producer_of(client, "x")
    world.broker.transactions.shard("x").log.give_up("could not be cleaned")
    assert producer.init() != 0
    assert producer.init() == 0
