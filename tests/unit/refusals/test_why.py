"""The sentences that say why a request was refused: with the numbers that decided, in the journal and in the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from cases import each_case
from consumer_kit import Groups
from core_broker import Client, World, make_topic
from core_requests import commit_request, produce_request
from txn_kit import Producer

from broker.journal.reading import describe, entries, judged
from broker.refusals import why as why_module
from protocol.errors import ErrorCode
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
)

CONSUMER = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer"}


def reasons(world: World, **filters: str) -> list[str]:
    """What the journal says of refused requests, oldest first."""
    world.run()
    chosen = judged(entries(world.broker.clients.journal), filters, lambda topic_id: "")
    shown = [describe(entry, world.broker.clients.journal) for entry, is_fit in chosen if is_fit]
    return [each["why"] for each in reversed(shown) if "why" in each]


def journaled(world: World) -> World:
    world.broker.keep_journal(1 << 20)
    return world


# -- consumer groups


def test_stale_epoch_names_both_epochs_and_what_was_assigned_later():
    with Groups({"t": 2}) as groups:
        journaled(groups.world)
        (first,) = groups.joined("a")
        second = groups.member("b")
        second.join()
        groups.settle([first, second])
        assert (first.count(), second.count()) == (1, 1)
        (mine,) = second.assigned["t"]
        theirs = 1 - mine
        old = second.epoch
        groups.joined("c", topics=("u",))
        second.beat()
        assert second.epoch > old
        assert groups.commit("b", old - 1, mine) == ErrorCode.STALE_MEMBER_EPOCH
        assert set(groups.commit("b", old, mine, theirs)) == {ErrorCode.STALE_MEMBER_EPOCH}
        assert groups.commit("b", second.epoch + 1, theirs) == ErrorCode.STALE_MEMBER_EPOCH
        fencing = "; group.commit.fencing=assignment-epoch"
        assert reasons(groups.world, api="OffsetCommit") == [
            f"member b sent epoch {old - 1}, its epoch is {second.epoch}; t-{mine} was assigned to it at epoch {old}"
            + fencing,
            f"member b sent epoch {old}, its epoch is {second.epoch}; t-{theirs} is not assigned to it{fencing}",
            f"member b sent epoch {second.epoch + 1}, its epoch is {second.epoch}{fencing}",
        ]


def test_many_partitions_are_cut_to_some():
    with Groups({"t": 9}) as groups:
        journaled(groups.world)
        (first,) = groups.joined("a")
        groups.joined("b", topics=("u",))
        first.beat()
        assert set(groups.commit("a", 0, *range(9))) == {ErrorCode.STALE_MEMBER_EPOCH}
        (text,) = reasons(groups.world, api="OffsetCommit")
        assert text.count("was assigned to it at epoch 2") == 5
        assert " and 4 more;" in text


@each_case("fencing, says", [("strict", "=strict"), ("revocation-epoch", "gave partitions back at epoch 0; group.")])
def test_fencing_by_another_rule_names_it(fencing, says):
    groups = Groups({"t": 1}, group_commit_fencing=fencing)
    journaled(groups.world)
    (first,) = groups.joined("a")
    assert groups.commit("a", first.epoch + 1, 0) == ErrorCode.STALE_MEMBER_EPOCH
    (text,) = reasons(groups.world)
    assert says in text


def test_unknown_member_says_what_the_group_is():
    with Groups({"t": 1}) as groups:
        journaled(groups.world)
        groups.joined("a")
        assert groups.commit("b", 1, 0) == ErrorCode.UNKNOWN_MEMBER_ID
        assert reasons(groups.world) == ["member b is not in group g, which is Stable with 1 member"]


def test_heartbeat_that_is_fenced_says_so():
    with Groups({"t": 1}) as groups:
        journaled(groups.world)
        (first,) = groups.joined("a")
        assert first.beat(epoch=first.epoch + 5).error_code == ErrorCode.FENCED_MEMBER_EPOCH
        (text,) = reasons(groups.world)
        assert text == f"member a sent epoch {first.epoch + 5}; it is {first.epoch} in group g, which is Stable"


# -- classic groups


class Classic:
    def __init__(self) -> None:
        self.world = journaled(World())
        self.client = Client(self.world)
        make_topic(self.client, "t", 1)
        request = JoinGroupRequest(
            group_id="g", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")], member_id="", **CONSUMER
        )
        first = self.client.call(request, 5)
        request.member_id = first.member_id
        self.member_id = self.client.call(request, 5).member_id

    def commit(self, **fields: Any) -> int:
        answer = self.client.call(commit_request("g", {0: 1}, **fields), 8)
        return int(answer.topics[0].partitions[0].error_code)


def test_generation_that_is_old_names_both():
    classic = Classic()
    code = classic.commit(member_id=classic.member_id, generation_id_or_member_epoch=7)
    assert code == ErrorCode.ILLEGAL_GENERATION
    member = f"member {classic.member_id}"
    assert reasons(classic.world, api="OffsetCommit") == [
        f"{member} sent generation 7; it is 1 in group g, which is CompletingRebalance"
    ]


def test_rebalance_and_unknown_members_say_the_state():
    classic = Classic()
    assert classic.commit(member_id=classic.member_id, generation_id_or_member_epoch=1) == 27
    assert classic.commit(member_id="x", generation_id_or_member_epoch=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert classic.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    assert reasons(classic.world, api="OffsetCommit") == [
        f"member {classic.member_id} is of generation 1 of group g, which is CompletingRebalance",
        "member x is not in group g, which is CompletingRebalance with 1 member",
        "a request without a member id is not in group g, which is CompletingRebalance with 1 member",
    ]


def test_instance_that_another_member_has_taken_over_says_which():
    """The answer to a SyncGroup that waits."""
    world = journaled(World())
    leader, follower, successor = Client(world), Client(world), Client(world)
    range_ = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    join = JoinGroupRequest(group_id="g", protocols=range_, member_id="", group_instance_id="l", **CONSUMER)
    first = leader.call(join, 5)
    join.member_id = first.member_id
    other = JoinGroupRequest(group_id="g", protocols=range_, member_id="", group_instance_id="i", **CONSUMER)
    follower.send(other, 5)
    leader.send(join, 5)
    world.run()
    (joined,) = follower.replies()
    sync = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, group_instance_id="i"
    )
    follower.send(sync, 4)
    successor.send(other, 5)
    world.run()
    (answer,) = follower.replies()
    assert answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    (text,) = reasons(world, api="SyncGroup")
    assert text.startswith(f"member {joined.member_id} came as instance i, which is member ")


def test_request_to_another_node_says_so_in_the_brokers_words():
    world = World(brokers=2)
    groups = world.broker.groups
    group_id = next(name for name in "abcdefgh" if groups.coordinator_of(name) == 2)
    journaled(world)
    Client(world).call(HeartbeatRequest(group_id=group_id, generation_id=3, member_id="m"), 3)
    (text,) = reasons(world)
    assert text == f"node 1 does not coordinate group '{group_id}'"


def test_group_that_is_not_there_says_so():
    classic = Classic()
    classic.client.call(HeartbeatRequest(group_id="none", generation_id=3, member_id="m"), 3)
    (text,) = reasons(classic.world, api="Heartbeat")
    assert text == "member m sent epoch 3, and group none has no members"


# -- producers


@pytest.mark.parametrize("v2", [False, True])
def test_fenced_producer_says_which_epoch_is_known(v2):
    world = journaled(World())
    client = Client(world)
    make_topic(client, "t", 1)
    zombie, successor = Producer(client, v2=v2), Producer(client, v2=v2)
    assert zombie.init() == successor.init() == 0
    assert zombie.end() != 0
    (text,) = reasons(world, api="EndTxn")
    assert text.startswith(f"the producer sent id {zombie.id}, epoch {zombie.epoch}; transactional id tx is Empty")
    assert text.endswith(f"with producer id {successor.id}, epoch {successor.epoch}")


def test_produce_with_an_old_epoch_says_which_was_seen():
    world = journaled(World())
    client = Client(world)
    make_topic(client, "t", 1)
    for epoch in (1, 0):
        batch = {"producer_id": 7, "producer_epoch": epoch, "base_sequence": 0}
        client.call(produce_request("t", 0, b"a", **batch), 9)
    assert reasons(world) == ["Producer 7 has epoch 0, the last one seen is 1"]


def test_sequence_out_of_order_says_what_was_expected():
    world = journaled(World())
    client = Client(world)
    make_topic(client, "t", 1)
    batch = {"producer_id": 7, "producer_epoch": 0}
    client.call(produce_request("t", 0, b"a", base_sequence=0, **batch), 9)
    client.call(produce_request("t", 0, b"a", base_sequence=5, **batch), 9)
    assert reasons(world) == ["Producer 7 sent sequence 5 after 0"]


# -- the log, and what goes wrong


def test_log_shows_refusals_at_level_info(caplog):
    caplog.set_level(logging.INFO, "momus.refusals")
    world = World()
    client = Client(world)
    make_topic(client, "t", 1)
    client.call(commit_request("g", {0: 1}, member_id="m", generation_id_or_member_epoch=3), 8)
    (record,) = [each for each in caplog.records if each.name == "momus.refusals"]
    assert record.getMessage() == (
        "OffsetCommitRequest of client 'client' is refused: member m sent epoch 3, and group g has no members"
    )


def test_nothing_is_explained_unless_somebody_reads_it():
    assert World().broker.router.refused is None


def test_explanation_that_fails_does_not_reach_the_client(monkeypatch, caplog):
    world = journaled(World())
    client = Client(world)
    make_topic(client, "t", 1)
    monkeypatch.setattr(why_module, "explain_commit", lambda *_: 1 // 0)
    answer = client.call(commit_request("g", {0: 1}, member_id="m", generation_id_or_member_epoch=3), 8)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.ILLEGAL_GENERATION
    assert "cannot say why" in caplog.text


@pytest.mark.parametrize("v2", [False, True])
def test_records_of_a_fenced_producer_say_what_the_partition_knows(v2):
    world = journaled(World())
    client = Client(world)
    make_topic(client, "t", 1)
    zombie, successor = Producer(client, v2=v2), Producer(client, v2=v2)
    zombie.init()
    successor.init()
    if not v2:
        successor.add({"t": [0]})
    assert successor.produce(b"new") == 0
    assert zombie.produce(b"old") != 0
    (text,) = reasons(world, api="Produce")
    assert text == f"Producer {zombie.id} has epoch {zombie.epoch}, the last one seen is {successor.epoch}"


# -- topics and partitions


def test_unknown_topics_and_partitions_are_named():
    world = journaled(World())
    client = Client(world)
    make_topic(client, "orders", 3)
    client.call(commit_request("billing", {0: 1}, "nowhere"), 8)
    client.call(commit_request("billing", {1: 1, 7: 1}, "orders"), 8)
    client.call(commit_request("billing", {1: 1}, "orders"), 8)
    assert reasons(world, api="OffsetCommit") == [
        "there is no topic nowhere",
        "topic orders has 3 partitions, and none with the number 7",
    ]


def test_many_unknown_partitions_are_cut_to_some():
    world = journaled(World())
    client = Client(world)
    make_topic(client, "orders", 1)
    client.call(commit_request("billing", dict.fromkeys(range(9), 1), "orders"), 8)
    (text,) = reasons(world, api="OffsetCommit")
    assert text.count("topic orders has 1 partition, and none with the number") == 5
    assert text.endswith(", and 3 more")
