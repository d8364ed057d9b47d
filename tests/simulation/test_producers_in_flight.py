"""Producers with a hundred batches in flight, while connections are cut, writes fail and the broker is killed.

Exact count, exact order, no duplicates: what KAFKA-12207 promises without the limit of five.
"""

from __future__ import annotations

from random import Random

import pytest
from budget import short_and_slow
from core_broker import Client, World, make_topic
from raw_producer import VERSION, RawProducer, check_records

from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.header import decode_response_header
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.transactions import InitProducerIdRequest
from protocol.record_batch import iter_batches, iter_records
from storage.segments.file_slice import FileSlice

BATCHES = 1500
EXPECTED = {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
WRAP = 2**31 - 300  # the sequences of one producer pass their end on the way


def read_all(world: World, name: str) -> list[bytes]:
    client, values, offset = Client(world), [], 0
    while True:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=1 << 24, topics=[FetchTopic(topic=name, partitions=[part])]
        )
        answer = client.call(request, 11).responses[0].partitions[0]
        data = answer.records.read() if isinstance(answer.records, FileSlice) else bytes(answer.records)
        if not data:
            return values
        for position, header in iter_batches(data):
            offset = header.next_offset
            values += [bytes(r.value or b"") for r in iter_records(data[position : position + header.size])]


class Wire:
    """A producer's connection: bytes as they come, so that it can be cut anywhere."""

    def __init__(self, world: World, producer: RawProducer) -> None:
        self.client = Client(world)
        self.producer = producer
        self.read = 0

    def receive(self) -> None:
        received = self.client.transport.received
        while len(received) - self.read >= 4:
            size = int.from_bytes(received[self.read : self.read + 4], "big")
            body = bytes(received[self.read + 4 : self.read + 4 + size])
            if len(body) < size:
                return
            self.read += 4 + size
            _, position = decode_response_header(body, ProduceRequest.API_KEY, VERSION)
            response, _ = codec(ProduceResponse, VERSION).decode(body, position)
            answer = response.responses[0].partition_responses[0]
            self.producer.answered(answer.error_code, answer.base_offset)


@pytest.mark.heavy
@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("seed", short_and_slow(range(6), 2))
def test_all_records_are_there_once_and_in_order(flush: str, seed: int) -> None:
    rng = Random(seed)
    world = World(flush)
    make_topic(Client(world))
    producers = []
    for first in (0, WRAP, 0):
        producer_id = (
            Client(world).call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4).producer_id
        )
        producers.append(RawProducer(producer_id, "t", BATCHES, rng, first_sequence=first))
    wires = [Wire(world, producer) for producer in producers]
    for _ in range(20_000):
        if all(producer.done for producer in producers):
            break
        chance = rng.random()
        if chance < 0.03:
            world.files.inject(rng.randint(1, 3), short_bytes=rng.choice([0, 1, 100]))
        elif chance < 0.06:
            world.files.heal()
        elif chance < 0.065:
            world.files.heal()
            world = world.crash(lose_unsynced=flush == "fsync")
            for producer in producers:
                producer.disconnected()
            wires = [Wire(world, producer) for producer in producers]
        at = rng.randrange(len(wires))
        wire = wires[at]
        if chance > 0.95 or wire.client.closed:  # cut: some frames arrive, and none of their answers
            frames = wire.producer.take(rng.randint(1, 100))
            wire.client.send_bytes(frames[: rng.randint(0, len(frames))])
            wire.client.leave()
            world.run()
            wire.producer.disconnected()
            wires[at] = Wire(world, wire.producer)
            continue
        wire.client.send_bytes(wire.producer.take(rng.choice([1, 5, 100])))
        if rng.random() < 0.7:
            world.run()
        for each in wires:
            each.receive()
    world.files.heal()
    assert all(producer.done for producer in producers), [producer.codes for producer in producers]
    assert max(producer.most_in_flight for producer in producers) == 100
    for producer in producers:
        assert all(code in EXPECTED or code.retriable for code in producer.codes)
    check_records(read_all(world, "t"), producers)
    check_records(read_all(world.crash(), "t"), producers)
