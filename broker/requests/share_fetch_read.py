"""What one ShareFetch reads: finds its partitions and share partitions, and acquires records of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.cluster.acls import READ, TOPIC
from broker.coordinator.share.acquire import BATCH_OPTIMIZED, AcquireRequest
from broker.coordinator.share.reader import AcquiredRecords, NewBatches, peek, read_new, take, take_new
from broker.coordinator.share.sessions import PartitionKey  # mypyc evaluates the annotations of a NamedTuple
from broker.coordinator.share.table import LivePartition  # as above
from broker.wire.route import SMALL_FETCH_BYTES
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.share.table import SharePartitions
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.partitions.waiters import Waiter
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests
    from protocol.messages.share_fetch import ShareFetchRequest
    from storage.log.log import FileSlice

    Found = Mapping[PartitionKey, FileSlice | NewBatches]  # what could be acquired of each partition


class View(Protocol):
    """What a ShareFetch uses of the broker."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def parked(self) -> ParkedRequests: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def turn(self) -> Turn: ...
    @property
    def share(self) -> SharePartitions: ...


class Readable(NamedTuple):
    """A partition that may be read, and its share partition."""

    place: PartitionKey
    partition: Partition
    live: LivePartition


class ShareReader:
    """The partitions of one ShareFetch. The names of what the request has are the request's.

    places    what is to be read, the first one first.
    repeats   whether it is kept for repeats (requests/repeated.py).
    ready     partitions from which something could be acquired at the last look.
    unloaded  partitions for which the group has no state. Kafka finds that out beside the request: it is told only
              where the response has no records.
    """

    __slots__ = (
        "_committed",
        "_last_bytes",
        "batch_size",
        "ctx",
        "errors",
        "group_id",
        "limits",
        "max_bytes",
        "max_records",
        "member_id",
        "places",
        "readable",
        "ready",
        "repeats",
        "share",
        "share_acquire_mode",
        "unloaded",
        "view",
    )

    def __init__(self, view: View, ctx: Context, of: ShareFetchRequest | ShareReader) -> None:
        self.view = view
        self.share = share = view.share
        self.ctx = ctx
        self.group_id: str = of.group_id or ""
        self.member_id: str = of.member_id or ""
        self.max_bytes: int = of.max_bytes
        self.max_records: int = of.max_records
        self.batch_size: int = of.batch_size
        self.share_acquire_mode: int = of.share_acquire_mode
        self.repeats = False
        self.limits = share.limits(self.group_id)
        self.places: Sequence[PartitionKey] = ()
        self.readable: list[Readable] = []
        self.ready: Collection[PartitionKey] = ()
        self.errors: dict[PartitionKey, KafkaError] = {}
        self.unloaded: set[PartitionKey] = set()
        self._committed = share.value(self.group_id, "share.isolation.level") == "read_committed"
        self._last_bytes = SMALL_FETCH_BYTES  # of the records of the last response

    @property
    def wants_records(self) -> bool:
        """Whether there is something to read, and the request asks for it."""
        return bool(self.readable) and self.max_records > 0 and self.max_bytes > 0

    def watch(self, wait: Waiter) -> None:
        """Have the partitions and share partitions poll a wait."""
        for _, partition, live in self.readable:
            partition.watch(wait, committed=self._committed)
            live.waiters[wait] = None

    def unwatch(self, wait: Waiter) -> None:
        """No longer."""
        for _, partition, live in self.readable:
            partition.unwatch(wait)
            live.waiters.pop(wait, None)

    def open(self) -> None:
        """Find the partitions and their share partitions; what cannot be read has an error."""
        places, readable = self.places, self.readable
        if self.repeats and len(places) == len(readable) == 1 and not self.errors:
            place, partition, live = readable[0]
            if place == places[0] and not live.gone and not partition.closed:
                return  # a change of the metadata would have dropped what is kept
        self.readable, self.errors = [], {}
        self.unloaded.clear()
        denied = self._denied() if self.ctx.access is not None else ()
        for place in places:
            try:
                self.readable.append(self._find_partition(place, denied))
            except KafkaError as error:
                # Kafka's brokers try five times before they answer that the state cannot be read; by their own code for
                # it Java's consumer fails, with "Unexpected error code 15", and after this one it asks again
                is_unread = error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
                self.errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) if is_unread else error
            except (StorageError, OSError):
                self.errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    def _find_partition(self, place: PartitionKey, denied: Collection[bytes]) -> Readable:
        """Errors: KafkaError, StorageError, OSError: it cannot be read."""
        view = self.view
        if place[0] in denied:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic = view.share.metadata.topics_by_id.get(place[0])
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= place[1] < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic.partitions[place[1]].leader != self.ctx.node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            live = view.share.get(self.group_id, topic, place[1])
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
                self.unloaded.add(place)
            raise
        partition = view.partitions.get(topic, place[1])
        if partition.info is not topic.partitions[place[1]]:
            partition.configure(topic, view.partitions.metadata)
        return Readable(place, partition, live)

    def _denied(self) -> set[bytes]:
        """The topics that the client may not read, or not any more. A session has them from earlier requests."""
        topics = self.share.metadata.topics_by_id
        names = {place[0]: topics[place[0]].name for place in self.places if place[0] in topics}
        allowed = self.ctx.access.allowed(READ, TOPIC, names.values())
        return {each for each, name in names.items() if name not in allowed}

    def find(self, enough: int) -> Found | None:
        """What could be acquired, by partition; None: that is less than `enough` bytes."""
        readable, limits = self.readable, self.limits
        left = min(self.max_bytes, self.view.config.fetch_max_bytes)
        if len(readable) == 1:
            behind = self._find_new(readable[0], left, enough)
            if behind is not None:
                place = readable[0].place
                self.ready = (place,)
                return {place: behind}
        ready = [each for each in readable if each.live.state.can_acquire(limits)]
        self.ready = {each.place for each in ready}
        if not ready:
            return None
        enough = min(enough, left)
        share = left // len(ready)
        found: dict[PartitionKey, FileSlice | NewBatches] = {}
        size = 0
        for place, partition, live in ready:
            try:
                part = peek(partition, live.state, min(share, left), committed=self._committed, min_one=not found)
            except (StorageError, OSError, KafkaError):
                self.errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                enough = 0
                continue
            if part is not None:
                found[place] = part
                size += len(part)
                left = max(0, left - len(part))
        return None if size < enough else found

    def _find_new(self, readable: Readable, most_bytes: int, enough: int) -> NewBatches | None:
        """The same for one partition of which all in flight is acquired or done: the records after that."""
        _, partition, live = readable
        state = live.state
        if (
            not state.is_plain
            or self._committed
            or self.share_acquire_mode != BATCH_OPTIMIZED
            or state.in_flight + self.max_records > self.limits.most_in_flight
        ):
            return None
        try:
            return read_new(partition, state, most_bytes, self._last_bytes, self.max_records, enough)
        except (StorageError, OSError, KafkaError):
            return None

    def take(self, found: Found) -> dict[PartitionKey, AcquiredRecords]:
        """Acquire of what was found, up to the limit of records of the whole request."""
        limits, left, taken = self.limits, self.max_records, {}
        deadline_ms = self.view.turn.steady_ms + limits.lock_ms
        changed = []
        for place, partition, live in self.readable:
            part = found.get(place)
            if part is None or left <= 0:
                continue
            asked = AcquireRequest(self.member_id, deadline_ms, left, self.batch_size, self.share_acquire_mode)
            if isinstance(part, NewBatches):
                got = take_new(live.state, limits, asked, part)
                self._last_bytes = len(got.records)
            else:
                try:
                    got = take(partition, live.state, limits, asked, part, committed=self._committed)
                except (StorageError, OSError):
                    self.errors[place] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                    continue
            changed.append(live)
            if got.acquired:
                taken[place] = got
                left -= got.total
        for live in changed:
            self.share.settle(live)
        return taken
