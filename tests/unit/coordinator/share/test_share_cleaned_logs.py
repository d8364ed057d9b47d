"""Share groups read logs of which the cleaner has removed records that were in flight."""

from __future__ import annotations

from core_requests import TOPIC, alter_request
from unit.coordinator.share.kit import ShareWorld, acquired

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch, iter_batches

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.0",
    "max.compaction.lag.ms": "2000",
}


def produce(world: ShareWorld, *keys: bytes) -> None:
    """A batch of one record for each key."""
    for key in keys:
        records = build_batch([(key, b"v")], leader_epoch=-1, timestamp_ms=world.world.clock.now_ms())
        topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
        world.client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 7)


def test_removed_record_that_is_delivered_alone_comes_with_the_batch_in_front_of_it():
    """As in Kafka: its offset is acquired, and the client that does not find it acknowledges a gap."""
    with ShareWorld() as world:
        world.set(**{"share.delivery.count.limit": "3"})
        world.client.call(alter_request(TOPIC, "t", COMPACTED), 1)
        produce(world, b"a", b"b", b"a", b"a")
        m = world.reader()
        assert m.acquired(0) == [(0, 3, 1)]
        assert m.ack_error((0, 3, [2])) == 0
        assert m.acquired() == [(0, 3, 2)]
        assert m.ack_error((0, 3, [2, 1, 2, 2])) == 0
        world.world.advance(10_000)
        produce(world, b"c")  # in another segment: the one before is cleaned
        world.world.advance(30_000)
        reply = m.fetch()
        assert (reply.error_code, acquired(reply)) == (0, [(2, 2, 3)])
        records = bytes(reply.responses[0].partitions[0].records)
        assert [header.base_offset for _, header in iter_batches(records)] == [1]
        assert m.ack_error((2, 2, [0])) == 0
        assert m.acquired() == [(3, 3, 3)]
        assert m.ack_error((3, 3, [1])) == 0
        assert m.acquired() == [(4, 4, 1)]
