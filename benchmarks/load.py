"""The load generator: `python -m benchmarks.load SCENARIO HOST:PORT` prints one JSON line.

Scenarios: commit, fetchoff, produce, consume, e2e, conns. A closed loop: `--inflight` requests on each of `--conns`
connections, for `--seconds` after one second of warm-up. What was acknowledged is read back and compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import sys
import time
from typing import Any

from benchmarks.wire import Wire, connect, frame, parse, quantile
from protocol.messages.cluster import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch, iter_batches

COMMIT_V, FETCHOFF_V, PRODUCE_V, FETCH_V, METADATA_V = 8, 8, 8, 11, 8
INT64 = struct.Struct(">q")
INT32 = struct.Struct(">i")
ERROR = struct.Struct(">h")
WARM_UP_S = 1.0
MARK = 0x0102030405060708  # an offset that stands for the one to come


class Clock:
    """When the load begins to count and when it ends."""

    def __init__(self, seconds: float) -> None:
        self.start = time.perf_counter() + WARM_UP_S
        self.end = self.start + seconds
        self.counting = False

    def over(self) -> bool:
        """Whether to stop sending."""
        return time.perf_counter() >= self.end


class Load:
    """One run against one broker."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.o = options
        self.wires: list[Wire] = []
        self.errors = 0
        self.bytes = 0

    async def open(self) -> None:
        """Connect, and make the topic."""
        first = await connect(self.o.address)
        await self._make_topic(first)
        self.wires = [first] + [await connect(self.o.address) for _ in range(self.o.conns - 1)]

    async def _make_topic(self, wire: Wire) -> None:
        create = CreateTopicsRequest(
            topics=[CreatableTopic(name=self.o.topic, num_partitions=self.o.partitions, replication_factor=1)],
            timeout_ms=10000,
        )
        versions = {k.api_key: k for k in (await wire.ask(ApiVersionsRequest(), 0)).api_keys}
        if create.API_KEY in versions:
            await wire.ask(create, 4)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=self.o.topic)], allow_auto_topic_creation=True)
        for _ in range(200):
            found = (await wire.ask(asked, METADATA_V)).topics[0]
            if not found.error_code and len(found.partitions) >= self.o.partitions:
                return
            await asyncio.sleep(0.02)
        raise SystemExit(f"topic {self.o.topic} has not {self.o.partitions} partitions")

    async def drive(self, clock: Clock, make: Any, done: Any) -> dict[str, float]:
        """Run the loop on all connections; answers what was counted between start and end of the clock."""
        marks: list[tuple[float, int, int]] = []

        async def mark() -> None:
            await asyncio.sleep(max(0.0, clock.start - time.perf_counter()))
            for wire in self.wires:
                wire.latencies.clear()
            marks.append((time.perf_counter(), sum(w.replies for w in self.wires), self.bytes))

        marking = asyncio.ensure_future(mark())
        runs = [w.run(self.o.inflight, make(i), done(i)) for i, w in enumerate(self.wires)]
        await asyncio.gather(*runs)
        await marking
        seconds = time.perf_counter() - marks[0][0]
        latencies = [each for wire in self.wires for each in wire.latencies]
        return {
            "ops_per_s": (sum(w.replies for w in self.wires) - marks[0][1]) / seconds,
            "mb_per_s": (self.bytes - marks[0][2]) / 1e6 / seconds,
            "p50_us": quantile(latencies, 0.5),
            "p99_us": quantile(latencies, 0.99),
        }

    # -- scenarios

    async def commit(self) -> dict[str, float]:
        """OffsetCommit as a simple consumer does, every partition in each; what was acknowledged must be there."""
        await self._coordinators()
        clock, n = Clock(self.o.seconds), self.o.partitions
        acked = [0] * self.o.conns

        def make(i: int) -> Any:
            # what lies between the offsets never changes: a frame is one join
            pieces = frame(self._commit(f"{self.o.group}-{i}"), COMMIT_V).split(INT64.pack(MARK))
            head, pieces[0] = pieces[0][:8], pieces[0][12:]
            sent = 0

            def more(count: int) -> bytes:
                nonlocal sent
                if clock.over():
                    return b""
                frames: list[bytes] = []
                for _ in range(count):
                    sent += 1
                    frames += (head, INT32.pack(sent), INT64.pack(sent).join(pieces))
                return b"".join(frames)

            return more

        def done(i: int) -> Any:
            good: bytes | None = None

            def look(reply: memoryview) -> None:
                nonlocal good
                if good is None or reply[4:] != good:
                    response = parse(8, COMMIT_V, reply[4:])
                    if any(p.error_code for t in response.topics for p in t.partitions):
                        self.errors += 1
                        return
                    good = bytes(reply[4:])
                acked[i] = INT32.unpack_from(reply, 0)[0]

            return look

        figures = await self.drive(clock, make, done)
        for i, wire in enumerate(self.wires):
            response = await wire.ask(self._fetch_offsets(f"{self.o.group}-{i}"), FETCHOFF_V)
            found = [p.committed_offset for t in response.groups[0].topics for p in t.partitions]
            self.errors += sum(offset != acked[i] for offset in found) + (len(found) != n)
        return figures

    async def fetchoff(self) -> dict[str, float]:
        """OffsetFetch of every partition, over and over."""
        await self._coordinators()
        for i, wire in enumerate(self.wires):
            await wire.ask(self._commit(f"{self.o.group}-{i}", 7), COMMIT_V)
        clock = Clock(self.o.seconds)

        def make(i: int) -> Any:
            one = frame(self._fetch_offsets(f"{self.o.group}-{i}"), FETCHOFF_V)
            return lambda count: b"" if clock.over() else one * count

        def done(i: int) -> Any:
            good: bytes | None = None

            def look(reply: memoryview) -> None:
                nonlocal good
                if good is None or reply[4:] != good:
                    response = parse(9, FETCHOFF_V, reply[4:])
                    offsets = [p.committed_offset for t in response.groups[0].topics for p in t.partitions]
                    self.errors += offsets != [7] * self.o.partitions
                    good = bytes(reply[4:])

            return look

        return await self.drive(clock, make, done)

    async def produce(self) -> dict[str, float]:
        """Produce with acks=all, one batch a request; base offsets must follow on each other."""
        clock = Clock(self.o.seconds)
        records = max(1, self.o.batch_bytes // 220)
        value = b"x" * max(1, min(200, self.o.batch_bytes - 80))
        batch = build_batch([(None, value)] * records, timestamp_ms=int(time.time() * 1000))

        def make(i: int) -> Any:
            one = frame(self._produce(i % self.o.partitions, batch), PRODUCE_V)

            def more(count: int) -> bytes:
                return b"" if clock.over() else one * count

            return more

        # correlation id, one topic, its name, one partition, its index
        error_at = 4 + 4 + 2 + len(self.o.topic.encode()) + 4 + 4

        def done(i: int) -> Any:
            def look(reply: memoryview) -> None:
                self.errors += ERROR.unpack_from(reply, error_at)[0] != 0
                self.bytes += len(batch)

            return look

        return await self.drive(clock, make, done)

    async def consume(self) -> dict[str, float]:
        """Fetch each partition from its first offset to its end, over and over; every batch is looked at."""
        clock = Clock(self.o.seconds)
        positions = [0] * self.o.conns

        def make(i: int) -> Any:
            def more(count: int) -> bytes:
                if clock.over():
                    return b""
                return frame(self._fetch(i % self.o.partitions, positions[i]), FETCH_V) * count

            return more

        def done(i: int) -> Any:
            def look(reply: memoryview) -> None:
                answer = parse(1, FETCH_V, reply[4:]).responses[0].partitions[0]
                self.errors += bool(answer.error_code)
                records = answer.records or b""
                self.bytes += len(records)
                end = positions[i]
                for _, header in iter_batches(records):
                    self.errors += header.base_offset != end
                    end = header.last_offset + 1
                positions[i] = 0 if end >= answer.high_watermark else end  # from the start again

            return look

        self.o.inflight = 1
        return await self.drive(clock, make, done)

    async def e2e(self) -> dict[str, float]:
        """One record at a time from a producing to a fetching connection."""
        producer, consumer = self.wires[0], await connect(self.o.address)
        batch = build_batch([(None, b"x" * 200)], timestamp_ms=int(time.time() * 1000))
        request = self._produce(0, batch)
        latencies: list[tuple[float, int]] = []
        clock, offset = Clock(self.o.seconds), 0
        while not clock.over():
            coming = asyncio.ensure_future(consumer.ask(self._fetch(0, offset), FETCH_V))
            await asyncio.sleep(0)
            begin = time.perf_counter()
            acked = asyncio.ensure_future(producer.ask(request, PRODUCE_V))
            answer = (await coming).responses[0].partitions[0]
            if begin > clock.start:
                latencies.append((time.perf_counter() - begin, 1))
            self.errors += not answer.records
            self.errors += (await acked).responses[0].partition_responses[0].base_offset != offset
            offset += 1
        rate = len(latencies) / self.o.seconds
        return {"ops_per_s": rate, "p50_us": quantile(latencies, 0.5), "p99_us": quantile(latencies, 0.99)}

    async def conns(self) -> dict[str, float]:
        """ApiVersions on every connection, twice: all must be alive at the same time."""
        begin = time.perf_counter()
        for _ in range(2):
            for wire in self.wires:
                response = await wire.ask(ApiVersionsRequest(), 0)
                self.errors += bool(response.error_code)
        seconds = time.perf_counter() - begin
        return {"ops_per_s": 2 * len(self.wires) / seconds}

    # -- requests

    async def _coordinators(self) -> None:
        for i, wire in enumerate(self.wires):
            for _ in range(200):
                asked = FindCoordinatorRequest(key=f"{self.o.group}-{i}", key_type=0)
                if not (await wire.ask(asked, 2)).error_code:
                    response = await wire.ask(self._commit(f"{self.o.group}-{i}", 0), COMMIT_V)
                    if not response.topics[0].partitions[0].error_code:
                        break
                await asyncio.sleep(0.02)

    def _commit(self, group: str, offset: int = MARK) -> OffsetCommitRequest:
        partitions = [
            OffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata="")
            for p in range(self.o.partitions)
        ]
        topic = OffsetCommitRequestTopic(name=self.o.topic, partitions=partitions)
        return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])

    def _fetch_offsets(self, group: str) -> OffsetFetchRequest:
        topic = OffsetFetchRequestTopics(name=self.o.topic, partition_indexes=list(range(self.o.partitions)))
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])])

    def _produce(self, partition: int, batch: bytes) -> ProduceRequest:
        data = TopicProduceData(
            name=self.o.topic, partition_data=[PartitionProduceData(index=partition, records=batch)]
        )
        return ProduceRequest(acks=-1, timeout_ms=15000, topic_data=[data])

    def _fetch(self, partition: int, offset: int) -> FetchRequest:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic=self.o.topic, partitions=[wanted])
        return FetchRequest(max_wait_ms=5000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])


SCENARIOS = ("commit", "fetchoff", "produce", "consume", "e2e", "conns")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("address", help="HOST:PORT of a broker on this machine")
    parser.add_argument("--conns", type=int, default=1)
    parser.add_argument("--inflight", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--batch-bytes", type=int, default=16384)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--topic", default="load")
    parser.add_argument("--group", default="load")
    return parser.parse_args(argv)


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """One run; answers its figures."""
    load = Load(options)
    await load.open()
    figures = await getattr(load, options.scenario)()
    for wire in load.wires:
        wire.transport.close()
    return {"scenario": options.scenario, **figures, "errors": load.errors}


def main() -> None:
    """Run one scenario and print what was measured."""
    import uvloop

    figures = uvloop.run(run(arguments()))
    print(json.dumps({key: round(v, 1) if isinstance(v, float) else v for key, v in figures.items()}))
    sys.exit(1 if figures["errors"] else 0)


if __name__ == "__main__":
    main()
