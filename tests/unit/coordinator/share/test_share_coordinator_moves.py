"""Another broker gets the log of the share coordinator: who has acquired records keeps them, as in Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client
from unit.coordinator.share.kit import Member, ShareWorld

from broker.cluster.virtual_nodes import VirtualNodes

STATE = "__share_group_state"


class Moves:
    """Three brokers: the state of group g lies on the first, or on its replica, the second; records on the third."""

    def __init__(self, **settings: str) -> None:
        self.made = ShareWorld(
            {"t": 3},
            brokers=3,
            share_coordinator_state_topic_num_partitions="1",
            default_replication_factor="1",
            **settings,
        )
        broker = self.made.world.broker
        (self.index,) = (each.index for each in broker.metadata.topics["t"].partitions if each.leader == 3)
        self.nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
        self.third = Client(self.made.world, node=2)
        self.made.client = self.third
        self.made.produce(4, partition=self.index)
        self.m = self.reader("m")

    def reader(self, name: str) -> Member:
        """A member that heartbeats to the coordinator of the group and reads on the third broker."""
        member = self.made.member(name)
        metadata = self.made.world.broker.metadata
        member.client = Client(self.made.world, node=metadata.coordinator_node("g") - 1)
        member.join()
        member.beat()
        member.client = Client(self.made.world, node=2)
        return member

    def leader(self) -> int:
        return int(self.made.world.broker.metadata.topics[STATE].partitions[0].leader)

    def change(self, what: Any, node_id: int) -> None:
        done: list[bool] = []
        what(self.nodes.find(node_id), done.append)
        self.made.world.run()
        assert done == [True]


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_acquired_records_stay_acquired(flush):
    moves = Moves(flush=flush)
    m, n = moves.m, moves.reader("n")
    assert m.acquired(moves.index) == [(0, 3, 1)]
    assert m.ack_error((0, 0, [1]), partition=moves.index) == 0
    moves.change(moves.nodes.stop, 1)
    assert moves.leader() != 1
    assert n.acquired(moves.index) == []
    assert m.ack_error((1, 1, [1]), (2, 2, [2]), partition=moves.index) == 0
    assert n.acquired() == [(2, 2, 2)]
    moves.change(moves.nodes.start, 1)
    assert moves.leader() == 1
    assert m.ack_error((3, 3, [1]), partition=moves.index) == 0
    assert n.ack_error((2, 2, [1]), partition=moves.index) == 0
    moves.made.check_replay()
    assert moves.made.state(moves.index).delivery_complete_count + moves.made.state(moves.index).start_offset == 4


def test_state_that_the_new_leader_has_missed_is_forgotten():
    moves = Moves(share_coordinator_state_topic_replication_factor="2", share_coordinator_state_topic_min_isr="1")
    m, n = moves.m, moves.reader("n")
    assert m.acquired(moves.index) == [(0, 3, 1)]
    moves.change(moves.nodes.lag, 2)
    assert m.ack_error((0, 1, [1]), partition=moves.index) == 0
    assert n.acquired(moves.index) == []
    moves.change(moves.nodes.stop, 1)
    assert moves.leader() == 2
    assert n.acquired() == [(0, 3, 1)]  # the log says nothing of the acknowledgement any more
