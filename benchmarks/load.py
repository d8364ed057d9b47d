"""The load generator: `python -m benchmarks.load SCENARIO HOST:PORT` prints one JSON line.

Scenarios: commit, fetchoff, fetchmoved, produce, consume, conns. A closed loop: `--inflight` requests on each of
`--conns` connections, for `--seconds` after one second of warm-up. What was acknowledged is read back and compared.
One request at a time: benchmarks.lone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import sys
import time
from typing import Any

from benchmarks.load_requests import COMMIT_V, FETCH_V, MARK, METADATA_V, PRODUCE_V, Requests
from benchmarks.wire import Wire, connect, frame, parse, quantile
from protocol.messages.cluster import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch, iter_batches

INT64 = struct.Struct(">q")
INT32 = struct.Struct(">i")
ERROR = struct.Struct(">h")
WARM_UP_S = 1.0


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
        self.requests = Requests(options.topic, options.group, options.partitions)
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
        versions = await wire.ask(ApiVersionsRequest(), 0)
        self.requests.learn(versions)
        if create.API_KEY in {each.api_key for each in versions.api_keys}:
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
            # what is between the offsets never changes: a frame is one join
            pieces = frame(self.requests.commit(f"{self.o.group}-{i}"), COMMIT_V).split(INT64.pack(MARK))
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
            question = self.requests.fetch_offsets(f"{self.o.group}-{i}")
            found = self.requests.fetched_offsets(await wire.ask(question, self.requests.offset_fetch_version))
            self.errors += sum(offset != acked[i] for offset in found) + (len(found) != n)
        return figures

    async def fetchoff(self) -> dict[str, float]:
        """OffsetFetch of every partition, over and over."""
        await self._coordinators()
        for i, wire in enumerate(self.wires):
            await wire.ask(self.requests.commit(f"{self.o.group}-{i}", 7), COMMIT_V)
        clock = Clock(self.o.seconds)

        def make(i: int) -> Any:
            one = frame(self.requests.fetch_offsets(f"{self.o.group}-{i}"), self.requests.offset_fetch_version)
            return lambda count: b"" if clock.over() else one * count

        def done(i: int) -> Any:
            good: bytes | None = None

            def look(reply: memoryview) -> None:
                nonlocal good
                if good is None or reply[4:] != good:
                    self.errors += self.requests.fetched_offsets(reply[4:]) != [7] * self.o.partitions
                    good = bytes(reply[4:])

            return look

        return await self.drive(clock, make, done)

    async def fetchmoved(self) -> dict[str, float]:
        """A commit of every partition, then OffsetFetch of them: each must show what the commit before it wrote.

        ops_per_s counts pairs, both requests in flight as those of all others are.
        """
        await self._coordinators()
        clock, partitions = Clock(self.o.seconds), self.o.partitions

        def make(i: int) -> Any:
            group = f"{self.o.group}-{i}"
            pieces = frame(self.requests.commit(group), COMMIT_V).split(INT64.pack(MARK))
            question, sent = frame(self.requests.fetch_offsets(group), self.requests.offset_fetch_version), 0

            def more(count: int) -> bytes:
                nonlocal sent
                if clock.over():
                    return b""
                frames: list[bytes] = []
                for _ in range(count):
                    frames.append(question if sent % 2 else INT64.pack(sent // 2 + 1).join(pieces))
                    sent += 1
                return b"".join(frames)

            return more

        def done(i: int) -> Any:
            seen, good, at = 0, b"", 0

            def look(reply: memoryview) -> None:
                nonlocal seen, good, at
                seen += 1
                if seen % 2:
                    if reply[4:] != good:
                        topics = parse(8, COMMIT_V, reply[4:]).topics
                        self.errors += any(p.error_code for t in topics for p in t.partitions)
                        good = bytes(reply[4:])
                    return
                if not at:
                    self.errors += self.requests.fetched_offsets(reply[4:]) != [1] * partitions
                    at = bytes(reply).index(INT64.pack(1))  # of the first partition
                self.errors += INT64.unpack_from(reply, at)[0] != seen // 2

            return look

        figures = await self.drive(clock, make, done)
        return {**figures, "ops_per_s": figures["ops_per_s"] / 2}

    async def produce(self) -> dict[str, float]:
        """Produce with acks=all, one batch a request; none may be refused."""
        records = max(1, self.o.batch_bytes // 220)
        value = b"x" * max(1, min(200, self.o.batch_bytes - 80))
        batch = build_batch([(None, value)] * records, timestamp_ms=int(time.time() * 1000))
        await self._leaders(batch)
        clock = Clock(self.o.seconds)

        def make(i: int) -> Any:
            one = frame(self.requests.produce(i % self.o.partitions, batch), PRODUCE_V)

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
                return frame(self.requests.fetch(i % self.o.partitions, positions[i]), FETCH_V) * count

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

    async def _leaders(self, batch: bytes) -> None:
        """Write to each partition until it takes it: Apache Kafka names a leader before it leads."""
        for partition in range(self.o.partitions):
            for _ in range(1500):
                answer = await self.wires[0].ask(self.requests.produce(partition, batch), PRODUCE_V)
                if not answer.responses[0].partition_responses[0].error_code:
                    break
                await asyncio.sleep(0.02)

    async def _coordinators(self) -> None:
        for i, wire in enumerate(self.wires):
            for _ in range(200):
                asked = FindCoordinatorRequest(key=f"{self.o.group}-{i}", key_type=0)
                if not (await wire.ask(asked, 2)).error_code:
                    response = await wire.ask(self.requests.commit(f"{self.o.group}-{i}", 0), COMMIT_V)
                    if not response.topics[0].partitions[0].error_code:
                        break
                await asyncio.sleep(0.02)


SCENARIOS = ("commit", "fetchoff", "fetchmoved", "produce", "consume", "conns")


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
