"""Faults of the disk, below the logs of a whole broker."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed, produce_request

from protocol.errors import ErrorCode
from storage.files.disk import SystemFiles
from storage.files.env import Files
from storage.files.sim_env import MemoryFiles
from storage.files.troubles import Trouble


def made(flush: str) -> tuple[World, Client]:
    world = World(flush)
    client = Client(world)
    make_topic(client, "t", 2)
    assert commit(client, 1) == 0
    return world, client


def commit(client: Client, offset: int) -> int:
    answer = client.call(commit_request("g", {0: offset}), 8)
    return int(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("flush", FLUSHES)
@pytest.mark.parametrize("kind", ["fail_write", "full_disk"])
def test_failed_write_refuses_the_commit_and_keeps_the_one_before(flush, kind):
    world, client = made(flush)
    fault = world.broker.faults.add({"fault": kind, "topic": "__consumer_offsets"})
    assert commit(client, 2) == ErrorCode.NOT_COORDINATOR
    assert fault.hits == 1
    world.broker.faults.remove(fault.name)
    assert committed(world, "g") == {0: 1}
    assert commit(client, 3) == 0
    after = world.crash()
    assert committed(after, "g") == {0: 3}


def test_failed_sync_refuses_the_commit_where_a_reply_waits_for_it():
    world, client = made("fsync")
    fault = world.broker.faults.add({"fault": "fail_fsync", "trigger": "once"})
    assert commit(client, 2) == ErrorCode.NOT_COORDINATOR
    assert fault.hits == 1
    assert committed(world, "g") == {0: 1}


def test_full_disk_leaves_room_for_so_many_bytes_and_cuts_the_write_that_does_not_fit():
    world, client = made("os")
    fault = world.broker.faults.add({"fault": "full_disk", "free_bytes": 200, "topic": "t", "partition": 1})
    codes = [
        client.call(produce_request("t", index, b"x" * 60), 9).responses[0].partition_responses[0].error_code
        for index in (1, 1, 0)
    ]
    assert codes == [0, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert fault.hits == 1
    world.broker.faults.remove(fault.name)
    after = world.crash()
    answer = Client(after).call(produce_request("t", 1, b"y"), 9)
    assert answer.responses[0].partition_responses[0].base_offset == 1


def test_full_disk_writes_as_much_as_there_is_room_for():
    world, _ = made("os")
    world.broker.faults.add({"fault": "full_disk", "free_bytes": 200})
    ((root, ask),) = world.files.troubles.items()
    assert ask("write", f"{root}t-0/0.log", 150) is None
    found = ask("write", f"{root}t-0/0.log", 51)
    assert found is not None
    assert found.short_bytes == 50


def test_slow_disk_takes_longer_and_succeeds():
    world, client = made("os")
    fault = world.broker.faults.add({"fault": "slow_disk", "ms": 1})
    assert commit(client, 2) == 0
    assert fault.hits
    assert committed(world.crash(), "g") == {0: 2}


def test_files_of_another_cluster_are_left_alone():
    world, client = made("os")
    world.broker.faults.add({"fault": "fail_write"})
    (root,) = world.files.troubles
    world.files.troubles["/other/"] = world.files.troubles.pop(root)
    assert commit(client, 2) == 0


def test_remove_of_the_last_fault_leaves_nothing_to_ask():
    world, _ = made("os")
    faults = world.broker.faults
    names = [faults.add({"fault": kind}).name for kind in ("fail_write", "fail_fsync")]
    faults.remove(names[0])
    assert world.files.troubles
    faults.remove(names[1])
    assert not world.files.troubles


@pytest.mark.parametrize("make", [SystemFiles, MemoryFiles])
def test_write_that_fails_leaves_a_part_of_itself_in_the_file(make, tmp_path: Path):
    files: Files = make()
    root = str(tmp_path)
    files.makedirs(root)
    file = files.open_append(f"{root}/f")
    file.append([b"abc"])
    files.troubles[f"{root}/"] = lambda kind, path, size: Trouble(errno.ENOSPC, short_bytes=2)
    with pytest.raises(OSError, match="No space"):
        file.append([b"d", b"ef"])
    assert file.size == 3
    assert files.read_file(f"{root}/f") == b"abcde"
    with pytest.raises(OSError, match="No space"):
        file.sync()
    files.troubles.clear()
    file.truncate(3)
    file.append([b"d"])
    file.sync()
    assert files.read_file(f"{root}/f") == b"abcd"


@pytest.mark.parametrize(("fault", "words"), [("fail_write", {}), ("full_disk", {"free_bytes": 0})])
def test_fault_of_the_disk_acts_as_often_as_its_trigger_says(fault, words):
    world = World("os")
    client = Client(world)
    make_topic(client, "t")
    made = world.broker.faults.add({"fault": fault, "topic": "t", "trigger": {"times": 2}, **words})
    codes = [
        client.call(produce_request("t", 0, b"v"), 9).responses[0].partition_responses[0].error_code for _ in range(4)
    ]
    assert [bool(code) for code in codes] == [True, True, False, False]
    assert made.hits == 2
