"""TxnOffsetCommit of a group's member whose generation has passed, by the shortcut and by the general handler."""

from __future__ import annotations

import pytest
from core_broker import Client, World, count_repeats, make_topic
from core_pair import join
from txn_kit import Producer, committed

from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol


def join_again(client: Client, member_id: str) -> None:
    """The member begins generation 2."""
    again = JoinGroupRequest(group_id="g", session_timeout_ms=30_000, rebalance_timeout_ms=30_000, member_id=member_id)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")]
    again.protocol_type, again.protocols = "consumer", protocols
    assert client.call(again, 5).generation_id == 2


@pytest.mark.parametrize("shortcuts", [False, True])
@pytest.mark.parametrize("v2", [False, True])
def test_offsets_of_a_generation_that_has_passed_are_refused(shortcuts, v2):
    world = World("os")
    client = Client(world)
    make_topic(client)
    producer = Producer(client, v2=v2)
    assert producer.init() == 0
    member_id = join(client, "g", None)
    taken = count_repeats(world, ApiKey.TXN_OFFSET_COMMIT)
    if not shortcuts:
        world.broker.clients.shortcuts = {}
    if not v2:
        assert producer.add_offsets() == 0
    for offset in (1, 2):
        assert producer.send_offsets({0: offset}, generation_id_or_member_epoch=1, member_id=member_id) == {0: 0}
    assert any(taken) == shortcuts
    join_again(client, member_id)
    refused = producer.send_offsets({0: 3}, generation_id_or_member_epoch=1, member_id=member_id)
    assert refused == {0: ErrorCode.ILLEGAL_GENERATION}
    unknown = producer.send_offsets({0: 4}, generation_id_or_member_epoch=2, member_id="nobody")
    assert unknown == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    assert producer.end() == 0
    assert committed(client) == {0: (2, 0)}


@pytest.mark.parametrize("shortcuts", [False, True])
def test_offsets_with_which_a_transaction_begins_are_refused_alike(shortcuts):
    """Their partition is added to the transaction before the group is asked."""
    client = Client(World("os"))
    make_topic(client)
    producer = Producer(client, v2=True)
    assert producer.init() == 0
    member_id = join(client, "g", None)
    taken = count_repeats(client.world, ApiKey.TXN_OFFSET_COMMIT)
    if not shortcuts:
        client.world.broker.clients.shortcuts = {}
    for offset in (1, 2):
        assert producer.send_offsets({0: offset}, generation_id_or_member_epoch=1, member_id=member_id) == {0: 0}
        assert producer.end() == 0
    assert any(taken) == shortcuts
    join_again(client, member_id)
    refused = producer.send_offsets({0: 3}, generation_id_or_member_epoch=1, member_id=member_id)
    assert refused == {0: ErrorCode.ILLEGAL_GENERATION}
    assert producer.end() == 0
    assert committed(client) == {0: (2, 0)}


@pytest.mark.parametrize("verified", ["true", "false"])
def test_offsets_of_a_fenced_producer_are_refused(verified):
    """Verified or not: the new producer's commit would take them along."""
    world = World("os", transaction_partition_verification_enable=verified)
    client = Client(world)
    make_topic(client)
    old, new = Producer(client, v2=False), Producer(client, v2=False)
    assert old.init() == 0
    assert old.add_offsets() == 0
    assert old.send_offsets({0: 1}) == {0: 0}
    assert old.end() == 0
    assert new.init() == 0
    assert new.add_offsets() == 0
    assert new.send_offsets({0: 10}) == {0: 0}
    assert old.send_offsets({0: 3}) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert new.end() == 0
    assert committed(client) == {0: (10, 0)}
