"""Coordinators whose topic has too few in-sync replicas: what writes is refused as in Kafka, what reads is not."""

from __future__ import annotations

import pytest
from core_broker import Client
from core_requests import commit_request, committed
from trio_kit import Trio
from txn_kit import Producer

from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.transactions import InitProducerIdRequest

NOT_AVAILABLE = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
SHORT = {
    "offsets_topic_replication_factor": "3",
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_replication_factor": "3",
    "transaction_state_log_min_isr": "3",
    "min_insync_replicas": "3",
}


def trio(*, shortcuts: bool = True) -> Trio:
    return Trio([1], settings=SHORT, shortcuts=shortcuts)


def commit(made: Trio, offset: int) -> int:
    answer = made.clients[1].call(commit_request("g", {0: offset}, "t"), 8)
    return int(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("shortcuts", [True, False])
def test_commit_below_min_insync_replicas_is_refused_and_read_as_before(shortcuts):
    made = trio(shortcuts=shortcuts)
    assert [commit(made, n) for n in (1, 2, 3)] == [0, 0, 0]
    made.change("stop 3")
    assert [commit(made, n) for n in (4, 5, 6)] == [NOT_AVAILABLE] * 3
    assert committed(made.world, "g", topic="t") == {0: 3}
    made.change("start 3")
    assert commit(made, 7) == 0
    assert committed(made.world, "g", topic="t") == {0: 7}


def test_group_of_the_new_protocol_is_refused_and_a_join_of_the_classic_one_is_not():
    made = trio()
    made.change("stop 3")
    beat = ConsumerGroupHeartbeatRequest(
        group_id="new",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert made.clients[1].call(beat, 1).error_code == NOT_AVAILABLE
    join = JoinGroupRequest(
        group_id="old",
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert made.clients[1].call(join, 3).error_code == 0
    made.change("start 3")
    assert made.clients[1].call(beat, 1).error_code == 0


def test_transactional_id_is_refused_below_the_min_isr_of_the_transaction_log():
    made = trio()
    producer = Producer(made.clients[1], v2=False)
    assert producer.init() == 0
    assert producer.add({"t": [0]}) == {("t", 0): 0}
    made.change("stop 3")
    assert producer.end(commit=True) == NOT_AVAILABLE
    request = InitProducerIdRequest(
        transactional_id="other", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    assert Client(made.world).call(request, 4).error_code == NOT_AVAILABLE
    made.change("start 3")
    assert producer.end(commit=True) == 0
    assert Client(made.world).call(request, 4).error_code == 0


def test_offsets_and_partitions_of_a_transaction_are_refused_too():
    made = trio()
    producer = Producer(made.clients[1], v2=True)
    assert producer.init() == 0
    made.change("stop 3")
    assert producer.produce(b"a") == ErrorCode.NOT_ENOUGH_REPLICAS  # as Produce says it
    made.change("start 3")
    producer.sequences.clear()
    assert producer.produce(b"a") == 0


def test_offsets_of_a_transaction_are_refused_where_only_the_log_of_offsets_is_short():
    made = Trio([1], settings=SHORT | {"transaction_state_log_min_isr": "1"})
    producer = Producer(made.clients[1], v2=False)
    assert producer.init() == 0
    assert producer.add_offsets("g") == 0
    made.change("stop 3")
    assert producer.send_offsets({0: 4}, "g") == {0: NOT_AVAILABLE}
    made.change("start 3")
    assert producer.send_offsets({0: 5}, "g") == {0: 0}
    assert producer.end(commit=True) == 0
    assert committed(made.world, "g", topic="t") == {0: 5}
