"""The log of a group's offsets as a partition that clients read: its transactions are those of the shard."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from txn_kit import Producer

from protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.transaction_admin import DescribeProducersRequest, DescribeProducersRequestTopicRequest

LOG = "__consumer_offsets"


def ends(client: Client) -> tuple[int, int]:
    """Last stable offset and high watermark of all partitions of the log, added up."""
    parts = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(5)]
    found = []
    for isolation_level in (1, 0):
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation_level, topics=[ListOffsetsTopic(name=LOG, partitions=parts)]
        )
        found.append(sum(part.offset for part in client.call(request, 9).topics[0].partitions))
    return found[0], found[1]


@pytest.mark.parametrize("commit", [True, False])
def test_pending_offsets_are_not_stable(commit: bool) -> None:
    world = World()
    client = Client(world)
    make_topic(client)
    producer = Producer(client)
    producer.init()
    stable, end = ends(client)
    assert stable == end
    assert producer.send_offsets({0: 5}) == {0: 0}
    assert ends(client) == (stable, end + 1)
    topics = [DescribeProducersRequestTopicRequest(name=LOG, partition_indexes=list(range(5)))]
    described = client.call(DescribeProducersRequest(topics=topics), 0)
    open_ = [p for part in described.topics[0].partitions for p in part.active_producers]
    assert [(p.producer_id, p.current_txn_start_offset) for p in open_] == [(producer.id, 0)]
    producer.end(commit=commit)
    assert ends(client) == (end + 2, end + 2)
