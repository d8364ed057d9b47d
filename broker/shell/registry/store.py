"""The topic `_schemas`: reads what anybody has appended to it, and appends.

Shape: the state is made of the topic's committed records alone. What a request writes is appended first and read
       back, as a direct write of another program is; there is no other way to change it. The topic is made with the
       first write. A cluster that begins another life, or a topic that was deleted, begins with an empty state.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from broker.asks import topics
from broker.asks.ask import AnswerError, label
from broker.asks.records import PIECE_BYTES, committed_records, produce
from broker.registry.records import SCHEMAS_TOPIC, decode, encode, plain
from broker.registry.state import RegistryState
from broker.shell.asking import Asking
from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import build_batch
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.asks.ask import Ask
    from broker.broker import Broker
    from broker.cluster.topics import Topic
    from broker.partitions.partition import Partition
    from broker.registry import records
    from broker.shell.cluster_server import ClusterServer
    from protocol.record import Record

logger = logging.getLogger("momus.registry")

T = TypeVar("T")
SLICE: Final = 200  # records that are replayed before clients are served again


class StoreError(Exception):
    """The topic could not be read or written; the message says why.

    code   of the broker, where it has refused; 0: it has not.
    """

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Store:
    """The registry's topic in one cluster, through all lives of it."""

    def __init__(self, cluster: ClusterServer) -> None:
        self._cluster = cluster
        self._reading = asyncio.Lock()
        self._broker: Broker | None = None
        self._asking: Asking | None = None
        self._topic_id = b""
        self._next_offset = 0
        self.state = RegistryState()

    @property
    def position(self) -> tuple[int, bytes, int]:
        """How far the topic of this life was read; two that are the same have the same state between them."""
        return self._cluster.life, self._topic_id, self._next_offset

    @property
    def is_read(self) -> bool:
        """Whether the state is that of all that is committed."""
        try:
            partition = self._partition()
        except StoreError:
            return False
        return partition is None or partition.high_watermark == self._next_offset

    def close(self) -> None:
        """Let the broker's connections go."""
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    async def read(self) -> RegistryState:
        """The state of all that is committed. Errors: StoreError."""
        partition = self._partition()
        if partition is not None and partition.high_watermark != self._next_offset:
            async with self._reading:
                while partition is not None and partition.high_watermark > self._next_offset:
                    await self._read_on(partition)
                    partition = self._partition()
        return self.state

    async def name(self) -> None:
        """Find out the digests of all that was read, a slice after the other."""
        while self.state.name(SLICE):
            await asyncio.sleep(0)

    async def append(self, written: Sequence[records.Record]) -> None:
        """Append records together, and read on until they count. Errors: StoreError."""
        if self._partition() is None:
            await self._make_topic()
        rows = [(*encode(record), (), None) for record in written]
        batch = build_batch(rows, timestamp_ms=self._cluster.broker.turn.env.clock.now_ms())
        await self._ask(produce(SCHEMAS_TOPIC, 0, batch))
        await self.read()

    def _topic(self) -> Topic | None:
        """The topic; the state is dropped where it is not the one that was read."""
        broker = self._cluster.broker
        if broker is not self._broker:
            self.close()
            self._broker, self._asking = broker, Asking(self._cluster)
            self._begin(b"")
        found = broker.metadata.topics.get(SCHEMAS_TOPIC)
        topic_id = b"" if found is None else found.topic_id
        if topic_id != self._topic_id:
            if self._topic_id and self.state.subjects:
                logger.warning("the topic %s was deleted: the registry is empty", SCHEMAS_TOPIC)
            self._begin(topic_id)
        return found

    def _begin(self, topic_id: bytes) -> None:
        self._topic_id, self._next_offset, self.state = topic_id, 0, RegistryState()

    def _partition(self) -> Partition | None:
        """The topic's first partition; None: there is none. Errors: StoreError."""
        topic = self._topic()
        if topic is None:
            return None
        try:
            partition = self._cluster.broker.partitions.get(topic, 0)
        except KafkaError as error:
            raise StoreError(str(error)) from None
        if partition.high_watermark < self._next_offset:  # what was lost with a leader counts no more
            self._begin(self._topic_id)
        return partition

    async def _read_on(self, partition: Partition) -> None:
        """Replay the next records, read from the partition's log as a Fetch reads them. Errors: StoreError."""
        position = max(self._next_offset, partition.log_start_offset)
        state, broker = self.state, self._broker
        try:
            found = partition.log.read(position, PIECE_BYTES, limit_offset=partition.last_stable_offset)
            data = b"" if found is None else found.read()
        except (KafkaError, StorageError, OSError) as error:
            raise StoreError(f"{SCHEMAS_TOPIC} cannot be read at offset {position}: {error}") from None
        if found is None or not data:
            raise StoreError(f"{SCHEMAS_TOPIC} has an open transaction at offset {position}")
        aborted = partition.aborted_transactions(position, found.end_offset)
        ahead = [(first, producer) for producer, first in aborted]
        for taken, (offset, record) in enumerate(committed_records(data, ahead), 1):
            if state is not self.state or broker is not self._cluster.broker:
                return  # another life of the cluster has begun, or another topic
            if record is not None and offset >= position:
                self._replay(offset, record)
            self._next_offset = max(self._next_offset, offset + 1)
            if taken % SLICE == 0:
                await asyncio.sleep(0)

    def _replay(self, offset: int, record: Record) -> None:
        try:
            if record.key is not None and record.value is not None:
                usual = plain(record.key, record.value)
                if usual is not None:
                    self.state.replay_plain(*usual, record.timestamp)
                    return
            found = decode(record.key, record.value)
            if found is not None:
                self.state.replay(found, record.timestamp)
        except ValueError as error:
            self.state.replay_refused(f"offset {offset}: {error}")
            logger.warning("%s, offset %d is passed over: %s", SCHEMAS_TOPIC, offset, error)

    async def _make_topic(self) -> None:
        """Make the topic as Confluent's registry does: one partition, compacted. Errors: StoreError."""
        wanted = topics.new_topic(SCHEMAS_TOPIC, 1, config={"cleanup.policy": "compact"})
        (row,) = await self._ask(topics.create([wanted]))
        if row.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
            _check(row.error_code, row.error_message)

    async def _ask(self, ask: Ask[T]) -> T:
        """Errors: StoreError."""
        self._topic()
        assert self._asking is not None
        try:
            return await self._asking.answer(ask)
        except AnswerError as error:
            raise StoreError(str(error), error.code) from None
        except TimeoutError:
            raise StoreError("the broker has not answered in time") from None
        except (ConnectionResetError, IndexError) as error:
            raise StoreError(f"no broker leads {SCHEMAS_TOPIC} ({error})") from None


def _check(code: int, message: str | None) -> None:
    if code:
        raise StoreError(f"{SCHEMAS_TOPIC}: {label(code)}{': ' + message if message else ''}", code)
