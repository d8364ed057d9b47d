"""The end of a cluster: connections that were on their way, and the memory that it held."""

from __future__ import annotations

import pytest
from core_broker import Client, World

from storage.sim_env import MemoryFiles


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
