"""The end of a cluster: connections that were on their way, and the memory that it held."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import produce_request

from storage.files.sim_env import MemoryFiles


def test_connection_that_was_accepted_before_the_end_is_hung_up():
    world = World()
    before = Client(world)
    world.broker.clients.closed = True
    late = Client(world)
    world.run()
    assert (before.closed, late.closed) == (False, True)
    assert late.connection not in world.broker.clients.open


@pytest.mark.parametrize("is_held", [False, True])
def test_discarded_files_hold_no_memory_even_if_somebody_holds_them(is_held):
    files = MemoryFiles()
    files.makedirs("/data/t-0")
    file = files.open_append("/data/t-0/log")
    file.append([b"x" * 1000])
    files.write_file_atomic("/data/meta", b"y" * 1000)
    inode = files._find("/data/t-0/log")
    if not is_held:
        file.close()
    files.discard()
    assert len(inode.data) == 0
    assert not files.exists("/data/meta")
    assert files.listdir("/data") == []


def test_data_that_is_given_up_within_a_turn_is_not_written_and_nobody_waits_for_ever():
    """Clients have been hung up on before. What still waits is a call of the control plane, which then looks again."""
    world = World()
    client = Client(world)
    make_topic(client)
    durability, partition = (
        world.broker.turn.durability,
        world.broker.partitions.get(world.broker.metadata.topics["t"], 0),
    )
    client.send(produce_request("t", 0, b"x"), 9)
    durability.give_up()
    assert not durability.write_now(partition.flush_state)
    world.run()
    assert partition.log.end_offset == 1
    assert partition.log.flushed_offset == 0
    assert len(client.replies()) == 1
