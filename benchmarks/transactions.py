"""Transactions: `python -m benchmarks.transactions v1|v2 HOST:PORT [--conns 8] [--alone] [--seconds 3]`.

A cycle is one transaction of one record and one offset, each request after the reply to the one before:

v1  AddPartitionsToTxn v3, Produce v9, AddOffsetsToTxn v3, TxnOffsetCommit v3, EndTxn v3
v2  Produce v12, TxnOffsetCommit v5, EndTxn v5 (KIP-890); the epoch rises with each transaction

Every connection has a transactional id, a partition and a group of its own. A request that is refused with an error
that clients retry is sent again at once: Apache Kafka answers CONCURRENT_TRANSACTIONS while it writes the markers of
the transaction before. Any other error ends the run, and so do offsets that are not those of the last transactions.
--alone: one producer over a blocking socket, as in benchmarks.lone. One line of JSON: ops_per_s, p50_us and p99_us of a
cycle, and how many requests were sent again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from fastcrc.crc32 import iscsi as crc32c

from benchmarks.load_requests import METADATA_V, Requests
from benchmarks.lone import Clock, Line
from benchmarks.wire import Wire, connect, frame, parse
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.record_batch import TRANSACTIONAL, build_batch

PRODUCER = struct.Struct(">qh")
INT64 = struct.Struct(">q")
MARK = 0x0102030405060708, 0x1234  # stands for the producer's id and epoch
OFFSET = 0x1112131415161718  # stands for the offset to commit
CRC_AT, CRC_FROM, SEQUENCE_AT = 17, 21, 53  # in a batch
VERSIONS = {"v1": (3, 9, 3, 3, 3), "v2": (12, 5, 5)}


class Step:
    """One request of a cycle, of which only producer, offset and batch change."""

    def __init__(self, request: Any, version: int, codes: Callable[[Any], list[int]]) -> None:
        self.api_key, self.version, self.codes = request.API_KEY, version, codes
        self.data = bytearray(frame(request, version))
        self.producer_at = self.data.find(PRODUCER.pack(*MARK))
        self.offset_at = self.data.find(INT64.pack(OFFSET))
        self.batch_at = self.producer_at - 43 if request.API_KEY == ProduceRequest.API_KEY else -1
        self.batch_bytes = int.from_bytes(self.data[self.batch_at + 8 : self.batch_at + 12], "big") + 12
        self.good = b""  # a reply without errors, where all of them are equal

    def make(self, producer: tuple[int, int], cycle: int, sequence: int) -> bytes:
        """The request's bytes."""
        data = self.data
        PRODUCER.pack_into(data, self.producer_at, *producer)
        if self.offset_at >= 0:
            INT64.pack_into(data, self.offset_at, cycle)
        if self.batch_at >= 0:
            at = self.batch_at
            struct.pack_into(">i", data, at + SEQUENCE_AT, sequence)
            crc = crc32c(bytes(data[at + CRC_FROM : at + self.batch_bytes]))
            struct.pack_into(">I", data, at + CRC_AT, crc)
        return bytes(data)

    def look(self, reply: bytes) -> tuple[Any, int]:
        """The response, None where nothing in it counts, and its first error."""
        if reply == self.good:
            return None, 0
        response = parse(self.api_key, self.version, reply)
        code = next((each for each in self.codes(response) if each), 0)
        if not code and self.api_key not in (ProduceRequest.API_KEY, EndTxnRequest.API_KEY):
            self.good = reply
        return response, code


def steps(flow: str, requests: Requests, name: str, index: int, now_ms: int) -> list[Step]:
    """The requests of one producer's cycle; records have the time `now_ms`."""
    group, topic = name, requests.topic
    who = {"producer_id": MARK[0], "producer_epoch": MARK[1]}
    batch = build_batch(
        [(b"key", b"x" * 100)],
        timestamp_ms=now_ms,
        attributes=TRANSACTIONAL,
        base_sequence=0,
        **who,
    )
    rows = [PartitionProduceData(index=index, records=batch)]
    produce = ProduceRequest(
        transactional_id=name, acks=-1, timeout_ms=15000, topic_data=[TopicProduceData(name=topic, partition_data=rows)]
    )
    offset = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=OFFSET, committed_metadata="")
    offsets = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[offset])],
        **who,
    )
    adding = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=MARK[0],
        v3_and_below_producer_epoch=MARK[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
    )

    def own(answer: Any) -> list[int]:
        return [answer.error_code]

    def added(answer: Any) -> list[int]:
        topics = answer.results_by_topic_v3_and_below
        return [each.partition_error_code for topic in topics for each in topic.results_by_partition]

    def produced(answer: Any) -> list[int]:
        return [each.error_code for topic in answer.responses for each in topic.partition_responses]

    def committed(answer: Any) -> list[int]:
        return [each.error_code for topic in answer.topics for each in topic.partitions]

    found: list[tuple[Any, Callable[[Any], list[int]]]] = [
        (adding, added),
        (produce, produced),
        (AddOffsetsToTxnRequest(transactional_id=name, group_id=group, **who), own),
        (offsets, committed),
        (EndTxnRequest(transactional_id=name, committed=True, **who), own),
    ]
    if flow == "v2":
        found = [found[1], found[3], found[4]]
    return [Step(request, version, codes) for (request, codes), version in zip(found, VERSIONS[flow], strict=True)]


class Producer:
    """One producer's cycles, without the socket: `next` is what to send, `took` what came back."""

    clock: Clock  # set when all producers have begun

    def __init__(self, flow: str, requests: Requests, index: int, now_ms: int) -> None:
        self.flow, self.index = flow, index
        self.name = f"{requests.group}-{index}"
        self.steps = steps(flow, requests, self.name, index, now_ms)
        self.producer = -1, -1
        self.at = self.cycle = self.sequence = 0
        self.again = 0
        self.begin_s = 0.0
        self.is_open = False  # a cycle has begun, though its first request may have to be sent again

    def setting_up(self) -> Iterator[tuple[Any, int, Callable[[Any], bool]]]:
        """Requests to ask until they are answered well."""
        for key_type in (0, 1):
            asked = FindCoordinatorRequest(key=self.name, key_type=key_type)
            yield asked, 2, lambda answer: not answer.error_code
        asked = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)

        def begun(answer: Any) -> bool:
            self.producer = answer.producer_id, answer.producer_epoch
            return not answer.error_code

        yield asked, 4 if self.flow == "v1" else 5, begun

    def next(self) -> bytes:
        """The next request; none once the time is over and the last transaction has ended."""
        if not self.is_open:
            self.begin_s = time.perf_counter()
            if self.begin_s >= self.clock.end:
                return b""
            self.cycle += 1
            self.is_open = True
        return self.steps[self.at].make(self.producer, self.cycle, self.sequence)

    def took(self, reply: bytes) -> None:
        """The reply to it, after the correlation id."""
        response, code = self.steps[self.at].look(reply)
        if code and ErrorCode(code).retriable:
            self.again += 1
            return
        if code:
            raise SystemExit(f"{self.name}: {ErrorCode(code).name} to API {self.steps[self.at].api_key}")
        self.at += 1
        if self.at == len(self.steps):
            self.at, self.is_open = 0, False
            self.sequence += 1
            if self.flow == "v2":
                self.sequence, self.producer = 0, (response.producer_id, response.producer_epoch)
            self.clock.add(self.begin_s, time.perf_counter())


async def prepare(wire: Wire, producers: list[Producer], requests: Requests) -> None:
    """Make the topic, and begin with every producer."""
    versions = await wire.ask(ApiVersionsRequest(), 0)
    requests.learn(versions)
    known = {each.api_key: each.max_version for each in versions.api_keys}
    for step in producers[0].steps:
        if known.get(step.api_key, -1) < step.version:
            raise SystemExit(f"the broker does not know version {step.version} of API {step.api_key}")
    topic = CreatableTopic(name=requests.topic, num_partitions=len(producers), replication_factor=1)
    if CreateTopicsRequest.API_KEY in known:
        await wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10000), 4)
    metadata = MetadataRequest(topics=[MetadataRequestTopic(name=requests.topic)], allow_auto_topic_creation=True)

    def made(answer: Any) -> bool:
        return not answer.topics[0].error_code and len(answer.topics[0].partitions) >= len(producers)

    await until(wire, metadata, METADATA_V, made)
    for producer in producers:
        for asked, version, is_good in producer.setting_up():
            await until(wire, asked, version, is_good)


async def until(wire: Wire, request: Any, version: int, is_good: Callable[[Any], bool]) -> None:
    """Ask again until the answer is good."""
    for _ in range(400):
        if is_good(await wire.ask(request, version)):
            return
        await asyncio.sleep(0.02)
    raise SystemExit(f"{type(request).__name__} is refused")


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """One run; answers its figures."""
    count = 1 if options.alone else options.conns
    requests = Requests(options.topic, options.group, count)
    now_ms = int(time.time() * 1000)
    producers = [Producer(options.flow, requests, index, now_ms) for index in range(count)]
    wires = [await connect(options.address) for _ in producers]
    await prepare(wires[0], producers, requests)
    clock = Clock(options.seconds)
    for producer in producers:
        producer.clock = clock
    if options.alone:
        alone(options.address, producers[0])
    else:
        await asyncio.gather(*(drive(*each) for each in zip(wires, producers, strict=True)))
    for producer in producers:

        def is_last(answer: Any, producer: Producer = producer) -> bool:  # soon: Apache Kafka answers EndTxn before
            return requests.fetched_offsets(answer)[producer.index] == producer.cycle

        await until(wires[0], requests.fetch_offsets(producer.name), requests.offset_fetch_version, is_last)
    for wire in wires:
        wire.transport.close()
    return {**clock.figures(0), "again": sum(producer.again for producer in producers)}


async def drive(wire: Wire, producer: Producer) -> None:
    """One producer over its connection, in the loop that all share."""
    await wire.run(1, lambda count: producer.next(), lambda reply: producer.took(bytes(reply[4:])))


def alone(address: str, producer: Producer) -> None:
    """One producer over a blocking socket."""
    line = Line(address)
    while data := producer.next():
        line.socket.sendall(data)
        producer.took(line.reply()[4:])


def main() -> None:
    """Run one flow and print what was measured."""
    import uvloop

    parser = argparse.ArgumentParser(prog="python -m benchmarks.transactions", description=__doc__)
    parser.add_argument("flow", choices=tuple(VERSIONS))
    parser.add_argument("address", help="HOST:PORT of a broker on this machine")
    parser.add_argument("--conns", type=int, default=8)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--topic", default="load")
    parser.add_argument("--group", default="load")
    figures = uvloop.run(run(parser.parse_args()))
    print(json.dumps({key: round(value, 1) for key, value in figures.items()}))


if __name__ == "__main__":
    main()
