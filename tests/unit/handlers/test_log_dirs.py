"""DescribeLogDirs of a whole broker: where the data lies, how much there is, and how much room."""

from __future__ import annotations

from core_broker import DATA, Client, World, make_topic
from core_requests import produce_request

from protocol.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest


def describe(client: Client, version: int = 5):
    topics = [DescribableLogDirTopic(topic="t", partitions=[0, 1, 2])]
    (directory,) = client.call(DescribeLogDirsRequest(topics=topics), version).results
    assert directory.error_code == 0
    return directory


def sizes(directory) -> dict[int, int]:
    return {p.partition_index: p.partition_size for topic in directory.topics for p in topic.partitions}


def test_log_dir_tells_sizes_of_open_logs_and_of_others():
    world = World()
    client = Client(world)
    make_topic(client, "t", 3)
    client.call(produce_request("t", 1, b"value"), 9)
    size = world.files.file_size(f"{DATA}/t-1/{0:020d}.log")
    assert sizes(describe(client)) == {0: 0, 1: size, 2: 0}
    after = world.crash()
    assert sizes(describe(Client(after))) == {0: 0, 1: size, 2: 0}
    assert ("t", 1) not in after.broker.directory.logs, "telling a size opened a log"


def test_log_dir_is_the_data_directory_with_the_room_on_its_volume():
    world = World()
    client = Client(world)
    make_topic(client, "t", 3)
    directory = describe(client)
    assert directory.log_dir == DATA
    assert (directory.total_bytes, directory.usable_bytes) == world.files.free_bytes(DATA)
    assert (describe(client, 3).total_bytes, directory.is_cordoned) == (-1, False)


def test_log_dir_of_a_node_has_what_lies_there():
    world = World(brokers=2)
    first, second = Client(world), Client(world, node=1)
    make_topic(first, "t", 3)
    held = sizes(describe(first)).keys(), sizes(describe(second)).keys()
    assert held[0] | held[1] == {0, 1, 2}
    assert not held[0] & held[1]
