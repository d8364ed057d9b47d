"""A broker reduced to its data path: real metadata, logs and flush states on files in memory, and no sockets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from unit.partitions.data_path_parts import OTHER_NODE, FakeConnection, Gate, Parked, StandingTurn

from broker.base.context import Context
from broker.cluster.metadata import TOPIC, ClusterMetadata
from broker.cluster.topics import Topic, TopicPartition, config_record, partition_record
from broker.config.settings import BrokerConfig
from broker.handlers.delete_records import delete_records
from broker.handlers.list_offsets import list_offsets, offset_for_leader_epoch
from broker.partitions.fetch_session import FetchSessions
from broker.partitions.incoming_batch import ClientBatch
from broker.partitions.partition import Partition
from broker.requests.fetch import Fetch
from broker.requests.produce import Produce
from broker.turn.decision import LATER, NO_REPLY
from broker.turn.durability import Durability
from broker.turn.executor import Executor, append
from broker.turn.flush_state import FlushState
from broker.turn.metrics import Metrics
from broker.wire.error_counts import settle_errors
from protocol.api import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.metadata_records import PartitionChangeRecord, RemoveTopicRecord, TopicRecord, encode_record
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import HEADER_BYTES, build_batch, iter_batches, iter_records
from storage.clock.manual_clock import ManualClock
from storage.files.env import Env
from storage.files.sim_env import MemoryFiles, sim_env
from storage.log.log import Log, LogConfig

NOW_MS = 1_700_000_000_000


def batch(*values: Any, pid: int = -1, epoch: int = -1, seq: int = -1, ts: int = NOW_MS, attributes: int = 0) -> bytes:
    """A client's batch: each value is a record's value, or (key, value[, headers[, timestamp]])."""
    records = [v if isinstance(v, tuple) else (None, v) for v in values or (b"v",)]
    return build_batch(
        records,
        leader_epoch=-1,
        timestamp_ms=ts,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=seq,
        attributes=attributes,
    )


def append_batch(partition: Partition, records: Any, now_ms: int, **asked: bool) -> tuple[int, int]:
    """A client's batch, straight into the log. Its base offset and log append time. Errors: KafkaError."""
    written = ClientBatch(records, **asked)
    if partition.decide(written, now_ms):
        append(partition, written, now_ms, None)
    return written.base_offset, written.append_ms


class OpenPartitions:
    """The partitions by topic id and index, opened when first asked for."""

    def __init__(self, path: DataPath) -> None:
        self._path = path
        self.open: dict[tuple[bytes, int], Partition] = {}

    @property
    def metadata(self) -> ClusterMetadata:
        return self._path.metadata

    def get(self, topic: Topic, index: int) -> Partition:
        key = (topic.topic_id, index)
        if key not in self.open:
            path = self._path
            log = Log.open(path.env, f"data/{topic.name}-{index}", path.log_config(topic), topic_id=topic.topic_id)
            partition = self.open[key] = Partition(topic, index, log, path.metadata, path.env.files)
            partition.flush_state = FlushState(partition)
        return self.open[key]

    def led(self, topic: Topic, index: int, node_id: int) -> Partition:
        """As the broker's, without partitions whose files are still being removed."""
        if topic.partitions[index].leader != node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition = self.get(topic, index)
        if partition.metadata_version != self.metadata.version or partition.topic is not topic:
            partition.configure(topic, self.metadata)
        return partition


class DataPath:
    """Looks to handlers as the broker does; a turn ends only when `end_turn` is called."""

    def __init__(self, env: Env | None = None, **settings: str) -> None:
        self.env = env or sim_env()
        self.env.files.makedirs("data")
        self.env.files.sync_dir("")
        self.settings = settings
        self.config = BrokerConfig.load({key.replace("_", "."): value for key, value in settings.items()})
        self.alarms: list[tuple[int, Any]] = []
        self.refused: list[Any] = []
        durability = Durability(
            fsync=False, start_sync=lambda logs: None, refuse=lambda held, failed: self.refused.extend(held)
        )
        self.turn = StandingTurn(self.env, durability, Metrics(), lambda call: None)
        self.turn.timers = self.turn.waits = SimpleNamespace(at=self._alarm, cancel=lambda number: None)
        self.metadata = ClusterMetadata(self.config, [0, OTHER_NODE], changed=self.turn.learned.drop)
        self.nodes = SimpleNamespace(endpoint=lambda node_id, ctx: (f"node{node_id}", 9092 + node_id))
        self.partitions = OpenPartitions(self)
        self.fetch_sessions = FetchSessions(1000)
        self.slots = 0
        self.metadata_flush = SimpleNamespace(queued=False, held=[])
        self.metadata_shard = SimpleNamespace(flush_state=self.metadata_flush)
        self.transactions = Gate()
        self.parked = Parked()
        self.answers = self.parked.answers
        self.executor = Executor(self.turn, self.parked)
        self.executor.metadata = self.metadata_shard
        routes = {ApiKey.FETCH: None, ApiKey.PRODUCE: None}
        self.router = SimpleNamespace(executor=self.executor, parked=self.parked, routes=routes)
        self.fetches, self.producing = Fetch(self), Produce(self)
        self.connection = FakeConnection()
        self.log_starts: dict[tuple[str, int], int] = {}
        self.directory = SimpleNamespace(
            log_start_moved=lambda name, index, offset: self.log_starts.update({(name, index): offset}),
            write_checkpoints=lambda: None,
        )

    @property
    def now_ms(self) -> int:
        return self.env.clock.now_ms()

    def partition(self, topic: Topic, index: int) -> Partition:
        return self.partitions.get(topic, index)

    def replay(self, value: bytes) -> None:
        """A record of the metadata log."""
        self.metadata.replay(None, value)
        self.metadata.after_batch()

    def _alarm(self, due_ms: int, call: Any) -> int:
        self.alarms.append((due_ms, call))
        return len(self.alarms)

    # -- what tests use

    def log_config(self, topic: Topic) -> LogConfig:
        return LogConfig(
            segment_bytes=self.metadata.value(topic, "segment.bytes"),
            cleanup_policy=frozenset(self.metadata.value(topic, "cleanup.policy")),
            delete_retention_ms=self.metadata.value(topic, "delete.retention.ms"),
        )

    def topic(
        self, name: str = "t", partitions: int = 1, leader: int = 0, topic_id: bytes = b"", **configs: str
    ) -> Topic:
        topic_id = topic_id or name.encode().ljust(16, b"\1")
        self.replay(encode_record(TopicRecord(name=name, topic_id=topic_id), 0))
        for key, value in configs.items():
            self.replay(config_record(TOPIC, name, key.replace("_", "."), value))
        for index in range(partitions):
            self.replay(partition_record(topic_id, TopicPartition(index, leader, [0])))
        return self.metadata.topics[name]

    def set_config(self, name: str, key: str, value: str) -> None:
        self.replay(config_record(TOPIC, name, key, value))

    def move_leader(self, topic: Topic, index: int, leader: int) -> None:
        change = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=index, leader=leader)
        self.replay(encode_record(change, 0))

    def delete_topic(self, topic: Topic) -> None:
        self.replay(encode_record(RemoveTopicRecord(topic_id=topic.topic_id), 0))
        for index in range(len(topic.partitions)):
            partition = self.partitions.open.pop((topic.topic_id, index), None)
            if partition is not None:
                partition.delete()

    def context(self, api_version: int, node_id: int = 0, client_id: str = "client") -> Context:
        ctx = Context(self.turn.now_ms, self.env.rng, api_version=api_version, client_id=client_id, node_id=node_id)
        ctx.connection = self.connection
        ctx.token = (self.connection, self.slots)
        self.slots += 1
        return ctx

    def end_turn(self) -> None:
        self.turn.end()

    def produce_request(self, request: ProduceRequest, ctx: Context) -> Any:
        """What is answered; what was decided is kept in `decided`."""
        self.decided = self.producing.message(ctx, request)
        response = self.executor.carry_out(self.decided, self.now_ms, (self.connection, 0, b"", 0, 0))
        if response is LATER:
            self.parked[ctx.token] = SimpleNamespace(frame=(b"", 0, 0))
        return None if response is NO_REPLY else response

    def produce(
        self,
        records: Any,
        name: str = "t",
        index: int = 0,
        *,
        version: int = 9,
        acks: int = -1,
        end_turn: bool = True,
        transactional_id: str | None = None,
        **ctx: Any,
    ) -> Any:
        """One batch to one partition; the partition's answer (None for acks=0)."""
        topic = self.metadata.topics.get(name)
        data = TopicProduceData(
            name=name if version < 13 else "",
            topic_id=topic.topic_id if topic else bytes(15) + b"?",
            partition_data=[PartitionProduceData(index=index, records=records)],
        )
        request = ProduceRequest(acks=acks, topic_data=[data], transactional_id=transactional_id)
        response = self.produce_request(request, self.context(version, **ctx))
        if end_turn:
            self.end_turn()
        if response is LATER and end_turn and self.turn.jobs:
            while self.turn.jobs.step():
                self.end_turn()
            response = self.answers.pop()[1]
        if response is None or response is LATER:
            return response
        return response.responses[0].partition_responses[0]

    def mark(self, pid: int, epoch: int, *, commit: bool, version: int = 2, coordinator: int = 0, **at: Any) -> None:
        """Write the marker of a transaction into a partition."""
        partition = self.partition(self.metadata.topics[at.pop("name", "t")], at.pop("index", 0))
        partition.append_marker(pid, epoch, coordinator, commit, self.now_ms, version)
        self.turn.touch(partition.flush_state)
        if at.pop("end_turn", True):
            self.end_turn()

    def fetch_request(self, request: FetchRequest, version: int = 12, **ctx: Any) -> Any:
        for topic in (*request.topics, *request.forgotten_topics_data):  # as the wire would have it
            if version >= 13:
                topic.topic = ""
            else:
                topic.topic_id = bytes(16)
        response = self.executor.carry_out(self.fetches.message(self.context(version, **ctx), request), self.now_ms)
        if response is not LATER:
            settle_errors(Metrics(), ApiKey.FETCH, version, response)
        return response

    def fetch(self, offset: int = 0, name: str = "t", index: int = 0, *, version: int = 12, **more: Any) -> Any:
        """One partition without a session; its answer, or LATER."""
        part = {k: more.pop(k) for k in ("current_leader_epoch", "last_fetched_epoch") if k in more}
        part["partition_max_bytes"] = more.pop("partition_max_bytes", 1 << 20)
        request = FetchRequest(
            session_epoch=-1,
            topics=[self.wanted(name, (index, offset), **part)],
            **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 26, **more.pop("request", {})},
        )
        response = self.fetch_request(request, version, **more)
        return response if response is LATER else response.responses[0].partitions[0]

    def wanted(self, name: str, *places: tuple[int, int], **part: Any) -> FetchTopic:
        topic = self.metadata.topics.get(name)
        return FetchTopic(
            topic=name,
            topic_id=topic.topic_id if topic else bytes(15) + b"?",
            partitions=[
                FetchPartition(partition=index, fetch_offset=offset, **{"partition_max_bytes": 1 << 20, **part})
                for index, offset in places
            ],
        )

    def forgotten(self, name: str, *indices: int) -> ForgottenTopic:
        return ForgottenTopic(topic=name, topic_id=self.metadata.topics[name].topic_id, partitions=list(indices))

    def list_offset(self, timestamp: int, name: str = "t", index: int = 0, *, version: int = 9, **more: Any) -> Any:
        epoch = more.pop("current_leader_epoch", -1)
        replica_id = more.pop("replica_id", -1)
        partition = ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        request = ListOffsetsRequest(
            replica_id=replica_id,
            isolation_level=more.pop("isolation_level", 0),
            topics=[ListOffsetsTopic(name=name, partitions=[partition])],
        )
        response = list_offsets(self, self.context(version, **more), request).reply
        return response.topics[0].partitions[0]

    def offset_for_leader_epoch(self, request: Any, **ctx: Any) -> Any:
        return offset_for_leader_epoch(self, self.context(4, **ctx), request).reply

    def delete_records(self, request: Any, **ctx: Any) -> Any:
        return delete_records(self, self.context(2, **ctx), request).reply

    def ring(self) -> None:
        """Call every alarm that is due."""
        due = [alarm for alarm in self.alarms if alarm[0] <= self.now_ms]
        self.alarms = [alarm for alarm in self.alarms if alarm[0] > self.now_ms]
        for due_ms, call in due:
            call(due_ms, self.now_ms)

    def advance(self, ms: int) -> None:
        clock = self.env.clock
        assert isinstance(clock, ManualClock)
        clock.advance(ms)

    def reopened(self, *, clean: bool = True, files: MemoryFiles | None = None) -> DataPath:
        """The same data in a new process, and the metadata it had."""
        if clean:
            for partition in self.partitions.open.values():
                partition.close()
        again = DataPath(sim_env(now_ms=self.now_ms, files=files or self.env.files), **self.settings)
        for record in self.metadata.image_records():
            again.metadata.replay(None, record)
        return again


def values_of(records: Any) -> list[bytes | None]:
    """The values of all records in a slice or in bytes."""
    data = records if isinstance(records, bytes) else records.read()
    return [
        record.value
        for position, header in iter_batches(data)
        for record in iter_records(data[position : position + header.size])
    ]


def payload(data: bytes) -> bytes:
    """What no broker may change in a batch that passes through: all but its place and its header's times."""
    return data[HEADER_BYTES:]
