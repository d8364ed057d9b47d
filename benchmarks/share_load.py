"""Members of a share group and the records that they read, as one loader."""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from typing import Any

from benchmarks.load import Load, arguments
from benchmarks.peers import cpu_s
from benchmarks.wire import Wire, connect
from protocol.errors import ErrorCode, MalformedError
from protocol.messages.cluster import FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.record_batch import build_batch

MEMBERS = 4
RECORDS, RECORD_BYTES = 16, 1000
BATCH = build_batch([(None, bytes(RECORD_BYTES), ())] * RECORDS, timestamp_ms=1)
ACCEPT = 1
TIMEOUT_S = 60.0
PRODUCE_V, METADATA_V, FETCH_V, SHARE_V, FIND_V = 8, 12, 11, 1, 4
STARTING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


class Member:
    """A member of the share group on a connection of its own; it reads one partition."""

    def __init__(self, wire: Wire, group: str, topic: str, topic_id: bytes, partition: int) -> None:
        self.wire, self.group, self.topic, self.topic_id, self.partition = wire, group, topic, topic_id, partition
        self.id = str(uuid.uuid4())
        self.epoch = 0
        self.session = 0
        self.acquired: list[tuple[int, int]] = []
        self.records = 0

    async def join(self) -> None:
        """Heartbeats until a partition is assigned; the group takes any member's fetch of any partition."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            topics = None if self.epoch else [self.topic]
            answer = await self.wire.ask(
                ShareGroupHeartbeatRequest(
                    group_id=self.group, member_id=self.id, member_epoch=self.epoch, subscribed_topic_names=topics
                ),
                1,
            )
            if answer.error_code in STARTING:  # Apache Kafka makes the topic of the coordinators when it is looked for
                await self.wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group]), FIND_V)
                await asyncio.sleep(0.2)
                continue
            if answer.error_code:
                raise SystemExit(f"heartbeat: error {answer.error_code} {answer.error_message}")
            self.epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return
            await asyncio.sleep(0.1)
        raise SystemExit("no partition was assigned")

    def request(self, records: int, wait_ms: int, batch: int) -> ShareFetchRequest:
        """The next request of the session: acknowledges what was acquired. `batch`: records of a range, about."""
        batches = [
            ShareFetchRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[ACCEPT])
            for first, last in self.acquired
        ]
        partition = ShareFetchRequestFetchPartition(partition_index=self.partition, acknowledgement_batches=batches)
        topics = [ShareFetchRequestFetchTopic(topic_id=self.topic_id, partitions=[partition])]
        return ShareFetchRequest(
            group_id=self.group,
            member_id=self.id,
            share_session_epoch=self.session,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 21,
            max_records=records,
            batch_size=batch,
            topics=topics,
        )

    def take(self, answer: Any) -> int:
        """Note what an answer acquired; its number of records."""
        self.session += 1
        self.acquired = []
        if answer.error_code:
            raise SystemExit(f"share fetch: error {answer.error_code} {answer.error_message}")
        for topic in answer.responses:
            for each in topic.partitions:
                if each.error_code or each.acknowledge_error_code:
                    raise SystemExit(f"share fetch: error {each.error_code}, {each.acknowledge_error_code}")
                self.acquired += [(one.first_offset, one.last_offset) for one in each.acquired_records]
        count = sum(last - first + 1 for first, last in self.acquired)
        self.records += count
        return count

    async def fetch(self, records: int, wait_ms: int = 500, batch: int | None = None) -> int:
        """One request; the number of records acquired."""
        try:
            answer = await self.wire.ask(self.request(records, wait_ms, batch or records), SHARE_V)
        except MalformedError:  # kfake answers null for no records, which Kafka's format does not have
            self.session += 1
            self.acquired = []
            return 0
        return self.take(answer)


class ShareLoad:
    """One run against one broker."""

    def __init__(self, address: str, pid: int = 0) -> None:
        self.address = address
        self.pid = pid  # of the broker, to measure its processor time
        self.topic = f"share-{uuid.uuid4().hex[:8]}"
        self.group = f"group-of-{self.topic}"
        self.members: list[Member] = []

    async def open(self, members: int, partitions: int) -> None:
        """Make the topic, and members that have read its empty partitions: they get what is produced from now on."""
        load = Load(arguments(["produce", self.address, "--topic", self.topic, "--partitions", str(partitions)]))
        await load.open()
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=False)
        topic_id = (await load.wires[0].ask(asked, METADATA_V)).topics[0].topic_id
        self.producer = load.wires[0]
        for place in range(members):
            member = Member(await connect(self.address), self.group, self.topic, topic_id, place)
            self.members.append(member)
        for member in self.members:
            await member.join()
        await asyncio.sleep(1.5)  # Apache Kafka assigns and initialises a moment after a heartbeat
        for member in self.members:
            await member.fetch(1, 100)
        await self._settle()

    async def _settle(self) -> None:
        """Fetch one record of each partition, so that no broker loses the first ones to `latest`."""
        for member in self.members:
            for _ in range(50):
                await self.produce(member.partition, build_batch([(None, b"first", ())], timestamp_ms=1))
                if await member.fetch(1, 200):
                    break
            else:
                raise SystemExit("nothing is delivered")
            while await member.fetch(500, 100):
                pass

    async def produce(self, partition: int, records: bytes, wire: Wire | None = None) -> None:
        """One batch."""
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10000,
            topic_data=[
                TopicProduceData(
                    name=self.topic, partition_data=[PartitionProduceData(index=partition, records=records)]
                )
            ],
        )
        answer = await (wire or self.producer).ask(request, PRODUCE_V)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer

    async def rate(self, records: int, seconds: float, megabytes: int) -> dict[str, float]:
        """Read what was produced before, in a closed loop with one request a member."""
        await self.open(MEMBERS, MEMBERS)
        each = megabytes * 1_000_000 // MEMBERS // len(BATCH)

        async def fill(member: Member) -> None:
            for _ in range(each):
                await self.produce(member.partition, BATCH, member.wire)
            member.records = 0

        await asyncio.gather(*map(fill, self.members))
        limit = each * RECORDS
        requests = 0
        used = cpu_s(self.pid)
        start = time.perf_counter()

        async def drain(member: Member) -> None:
            nonlocal requests
            while member.records < limit and time.perf_counter() - start < seconds:
                await member.fetch(records)
                requests += 1

        await asyncio.gather(*map(drain, self.members))
        took = time.perf_counter() - start
        read = sum(member.records for member in self.members)
        return {
            "ops_per_s": requests / took,
            "mb_per_s": read * RECORD_BYTES / 1e6 / took,
            "cpu_us": (cpu_s(self.pid) - used) / requests * 1e6,
        }

    async def latency(self, seconds: float) -> dict[str, float]:
        """From a Produce to the answer of a ShareFetch that waits for it, and of a Fetch that waits for it."""
        await self.open(1, 1)
        member = self.members[0]
        one = build_batch([(None, bytes(100), ())], timestamp_ms=1)
        times: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            waiting = asyncio.ensure_future(member.fetch(1, 5000))
            await asyncio.sleep(0.002)
            begin = time.perf_counter()
            await self.produce(0, one)
            assert await waiting == 1
            times.append(time.perf_counter() - begin)
        plain = await self._plain_latency(one, seconds)
        return {"p50_us": statistics.median(times) * 1e6, "plain_us": plain}

    async def _plain_latency(self, one: bytes, seconds: float) -> float:
        reader = await connect(self.address)
        offset, times = 0, []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            waiting = asyncio.ensure_future(reader.ask(self._fetch(offset), FETCH_V))
            if offset:
                await asyncio.sleep(0.002)
                begin = time.perf_counter()
                await self.produce(0, one)
                answer = await waiting
                times.append(time.perf_counter() - begin)
            else:
                answer = await waiting
            partition = answer.responses[0].partitions[0]
            offset = partition.high_watermark
        return statistics.median(times) * 1e6

    def _fetch(self, offset: int) -> FetchRequest:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        return FetchRequest(
            max_wait_ms=5000,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=self.topic, partitions=[partition])],
        )
