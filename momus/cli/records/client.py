"""A client that writes and reads records of one topic, for the command line. Only where use_packages() has run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from broker.asks.records import ABORTED, MARKER, Outcomes, fetch_led, named
from broker.asks.records import produce as append
from broker.asks.topics import metadata
from momus.cli.records.text import In, Out
from momus.client.kafka_client import EARLIEST, LATEST, Client, RequestFailedError
from momus.client.kafka_client import _check as check
from momus.client.wire import Connection
from protocol.errors import ErrorCode
from protocol.messages.fetch import PartitionData
from protocol.record_batch import build_batch, iter_batches, iter_records

FETCH_BYTES = 1 << 22
RETRY_PAUSE_S = 0.1
WAIT_MS = 500
LEADER_MOVES = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    )
)


class RecordClient(Client):
    """Produces to and consumes from one topic."""

    _auto_creates: bool | None = None  # None: not asked yet

    def _call(self, node_id: int | None, request: Any, version_limit: int | None = None) -> Any:
        """As every client's; a connection that is lost is made again, the first one to any node that is known."""
        if node_id is None and None not in self._connections:
            self._reconnect()
        try:
            return super()._call(node_id, request, version_limit)
        except OSError:
            lost = self._connections.pop(node_id, None)
            self._known.clear()
            if lost is not None:
                lost.close()
            raise

    def _reconnect(self) -> None:
        for host, port in self._nodes.values():
            try:
                self._connections[None] = Connection(host, port, self._timeout_s)
            except OSError:
                continue
            return
        raise OSError("no broker of the cluster answers")

    def _pause(self, give_up: float, error: OSError) -> None:
        """Before another try; raises the error when there is no time left, or when a broker has refused."""
        if isinstance(error, RequestFailedError) or time.monotonic() > give_up:
            raise error
        time.sleep(RETRY_PAUSE_S)

    def leaders_made(self, topic: str, *, create: bool) -> dict[int, int]:
        """Partition -> leader; waits until every partition has one. `create`: as a producer's question does.

        Errors: RequestFailedError: UNKNOWN_TOPIC_OR_PARTITION and others.
        """
        give_up = time.monotonic() + self._timeout_s
        while True:
            try:
                answer = self.ask(metadata([topic], create=create))
            except OSError as error:
                self._pause(give_up, error)
                continue
            row = answer.topics[0]
            leaders = {p.partition_index: p.leader_id for p in row.partitions}
            if not row.error_code and leaders and -1 not in leaders.values():
                return dict(sorted(leaders.items()))
            is_new = create and row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._makes_topics()
            if row.error_code and row.error_code not in LEADER_MOVES and not is_new:
                check(f"topic {topic}", row.error_code)
            self._pause(give_up, OSError(f"topic {topic}: no leader of all its partitions in {self._timeout_s:g} s"))

    def _makes_topics(self) -> bool:
        """Whether a topic that a client asks for is made: where not, it is not waited for."""
        if self._auto_creates is None:
            try:
                self._auto_creates = self.broker_setting("auto.create.topics.enable") != "false"
            except OSError:
                self._auto_creates = True  # the setting is not for this user, or no node is known: it is waited for
        return self._auto_creates

    def produce(self, topic: str, partition: int, records: Sequence[Out], *, codec: int, acks: int) -> int:
        """Append records as one batch; the offset of the first. Tries again when leaders move. `acks`: 1 or -1.

        Errors: RequestFailedError, OSError.
        """
        rows = [(each.key, each.value, each.headers, each.timestamp_ms) for each in records]
        batch = build_batch(rows, timestamp_ms=time.time_ns() // 1_000_000, attributes=codec)
        give_up = time.monotonic() + self._timeout_s
        while True:
            self.leaders_made(topic, create=True)
            try:
                return self.ask(append(topic, partition, batch, acks=acks, timeout_ms=int(self._timeout_s * 1000)))
            except RequestFailedError as error:
                if error.code not in LEADER_MOVES or time.monotonic() > give_up:
                    raise
            time.sleep(RETRY_PAUSE_S)

    def offsets_at(self, topic: str, leaders: dict[int, int], timestamp: int) -> dict[int, int]:
        """Partition -> the first offset that is not older; -1 where all are. EARLIEST and LATEST are Kafka's."""
        return self._offsets(topic, leaders, timestamp)

    def read(
        self,
        topic: str,
        positions: dict[int, int],
        ends: dict[int, int],
        *,
        committed: bool,
        until_end: bool,
        idle_s: float | None,
    ) -> Iterator[In]:
        """Records from these positions on, which move as they are read.

        ends        partition -> the offset before which to stop.
        until_end   stop where each partition ends when it is asked; committed: at its last stable offset.
        idle_s      stop when nothing has come for so long; None: wait for ever.
        Errors:     RequestFailedError, OSError.
        """
        open_partitions = {each for each in positions if each not in ends or positions[each] < ends[each]}
        leaders: dict[int, int] = {}
        last_news = time.monotonic()
        give_up = last_news + self._timeout_s
        while open_partitions:
            leaders = leaders or self.leaders_made(topic, create=False)
            by_leader: dict[int, list[int]] = {}
            for partition in sorted(open_partitions):
                by_leader.setdefault(leaders[partition], []).append(partition)
            for leader, partitions in by_leader.items():
                wait_ms = 0 if until_end else WAIT_MS // len(by_leader)
                wanted = {partition: positions[partition] for partition in partitions}
                try:
                    answers = self.fetched(topic, wanted, leader, committed=committed, wait_ms=wait_ms)
                    give_up = time.monotonic() + self._timeout_s
                except OSError as error:
                    self._pause(give_up, error)
                    leaders = {}
                    break
                for answered in answers:
                    partition = answered.partition_index
                    if answered.error_code in LEADER_MOVES:
                        leaders = {}
                        time.sleep(RETRY_PAUSE_S)
                        continue
                    if answered.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        raise self._out_of_range(topic, partition, leader, positions[partition])
                    check(f"{topic}-{partition}", answered.error_code)
                    stop = ends.get(partition)
                    for record in records_in(topic, answered, positions, committed=committed):
                        last_news = time.monotonic()
                        if stop is None or record.offset < stop:
                            yield record
                    end = answered.last_stable_offset if committed else answered.high_watermark
                    is_behind = stop is not None and positions[partition] >= stop
                    if is_behind or (until_end and positions[partition] >= end):
                        open_partitions.discard(partition)
            if idle_s is not None and time.monotonic() - last_news > idle_s:
                return

    def fetched(
        self, topic: str, positions: dict[int, int], leader: int, *, committed: bool, wait_ms: int
    ) -> list[PartitionData]:
        """One Fetch of partitions of one leader. Errors: RequestFailedError, OSError."""
        asked = fetch_led(topic, positions, leader, committed=committed, wait_ms=wait_ms, most_bytes=FETCH_BYTES)
        return self.ask(asked)

    def _out_of_range(self, topic: str, partition: int, leader: int, offset: int) -> OSError:
        leaders = {partition: leader}
        first = self._offsets(topic, leaders, EARLIEST)[partition]
        end = self._offsets(topic, leaders, LATEST)[partition]
        where = f"{topic}-{partition} holds {first} up to {end}"
        return RequestFailedError(f"offset {offset}", ErrorCode.OFFSET_OUT_OF_RANGE, where)


def records_in(topic: str, answered: Any, positions: dict[int, int], *, committed: bool) -> Iterator[In]:
    """The records of one partition of a Fetch reply, from its position on, which moves.

    committed   leave out those of aborted transactions: of a producer from the first offset that the reply names up to
                the marker that ends it, as clients do.
    """
    partition = answered.partition_index
    data = memoryview(bytes(answered.records or b""))
    outcomes = Outcomes(named(answered.aborted_transactions) if committed else ())
    for position, header in iter_batches(data):
        batch = data[position : position + header.size]
        if outcomes.of(header, batch) not in (MARKER, ABORTED):
            for record in iter_records(batch):
                if record.offset >= positions[partition]:
                    positions[partition] = record.offset + 1
                    yield In(
                        topic,
                        partition,
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                        list(record.headers),
                    )
        positions[partition] = max(positions[partition], header.next_offset)
