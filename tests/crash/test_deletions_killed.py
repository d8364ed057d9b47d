"""A deletion that is killed at any of its changes to the disk leaves nothing to a topic that is made anew."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from core_broker import Client, SimulatedCrash, World, make_topic
from core_requests import fetch_bytes, fetch_request, produce_request
from stepped_kit import remove_backwards

from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from protocol.record_batch import iter_batches, iter_records
from storage.files.sim_env import MemoryFiles


@pytest.fixture(params=["by name", "backwards"], autouse=True)
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order in which the files of a directory are removed: a file system has its own."""
    if request.param == "backwards":
        monkeypatch.setattr(MemoryFiles, "remove_tree", remove_backwards)


def values(client: Client) -> list[bytes | None]:
    data = fetch_bytes(client.call(fetch_request("t", 0, 0), 11))
    return [record.value for at, header in iter_batches(data) for record in iter_records(data[at : at + header.size])]


def delete(client: Client) -> None:
    client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)


def killed(before: Callable[[], World]) -> Iterator[World]:
    """Brokers that died at the first, the second, ... change of the disk by a deletion of the topic."""
    for nth in itertools.count(1):
        world = before()
        world.files.kill_at(nth)
        try:
            delete(Client(world))
        except SimulatedCrash:
            yield world
        else:
            assert nth > 5
            return


def check_anew(again: World) -> None:
    client = Client(again)
    if "t" in again.broker.metadata.topics:
        delete(client)
    make_topic(client, "t")
    produced = client.call(produce_request("t", 0, b"new"), 9).responses[0].partition_responses[0]
    assert (produced.error_code, produced.base_offset) == (0, 0)
    assert values(client) == [b"new"]
    again.run()
    assert not [name for name in again.files.listdir("/data") if name.endswith("-delete")]


def world_with_records() -> World:
    world = World("os")
    client = Client(world)
    make_topic(client, "t")
    client.call(produce_request("t", 0, *[b"old %d" % n for n in range(100)]), 9)
    return world


def test_topic_made_anew_begins_at_its_beginning_though_records_of_the_old_one_had_been_deleted():
    def before() -> World:
        world = world_with_records()
        rows = [DeleteRecordsPartition(partition_index=0, offset=50)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=1)
        Client(world).call(request, 2)
        return world

    for dead in killed(before):
        check_anew(dead.crash())


def test_topic_made_anew_has_no_records_of_the_old_one_that_was_not_open():
    for dead in killed(lambda: world_with_records().restart()):
        check_anew(dead.crash())


def test_files_of_a_topic_that_a_start_removes_are_not_those_of_a_topic_made_anew():
    """Killed in the deletion, and killed again, at each change, while the next start removes what was left."""
    again_killed = 0
    for dead in killed(lambda: world_with_records().restart()):
        left = dead.files.crash()
        for nth in range(1, 8):
            files = left.crash()
            files.kill_at(nth)
            try:
                dead.again(files)
            except SimulatedCrash:
                again_killed += 1
            check_anew(dead.again(files.crash()))
    assert again_killed > 10


def test_topic_with_the_longest_name_is_deleted():
    world = World("os")
    client = Client(world)
    name = "n" * 249
    make_topic(client, name)
    client.call(produce_request(name, 0, b"v"), 9)
    renamed = []
    rename = world.files.rename
    world.files.rename = lambda old, new: (renamed.append(new), rename(old, new))[1]
    client.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5)
    world.run()
    gone = [new.rpartition("/")[2] for new in renamed if new.endswith("-delete")]
    assert [len(each) for each in gone] == [255]
    assert not [each for each in world.files.listdir("/data") if each.startswith("n")]
    world.files.makedirs(f"/data/{gone[0]}")  # as a kill would leave it
    again = world.crash()
    assert not again.files.exists(f"/data/{gone[0]}")
