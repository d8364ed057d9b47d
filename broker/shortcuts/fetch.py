"""The shortcut of Fetch v7 to v18: repeats of an earlier request on the connection, without messages.

The general handler is handlers/fetch.py. It serves everything unusual: a partition that does not exist, has moved or
failed, an offset out of range, a session that another request has advanced. Topic, leader, epochs, offsets and session
are checked for every Fetch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from broker.partitions.fetch_session import FINAL_EPOCH, NO_SESSION, FetchSession, FetchSessions, Wanted, next_epoch
from broker.shortcuts.fetch_reply import Found, encode_fetch
from broker.shortcuts.fetch_shape import MOST_BYTES, NEWEST, OLDEST, Shape
from broker.shortcuts.head import BODY
from broker.wire.service import TAKEN
from protocol.api import ApiKey
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.router import Router
    from protocol.messages.fetch import FetchRequest
    from storage.log.log import FileSlice

FETCH: Final = int(ApiKey.FETCH)
SHAPES_A_SIZE: Final = 4  # kept for frames of one size
SIZES_A_CONNECTION: Final = 16


class FetchShortcut:
    """Serves requests that it has learnt."""

    def __init__(
        self, turn: Turn, config: BrokerConfig, partitions: Partitions, sessions: FetchSessions, router: Router
    ) -> None:
        self.turn = turn
        self.config = config
        self.partitions = partitions
        self.sessions = sessions
        self.router = router

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """Answer or park a Fetch; see service.Shortcut."""
        api_version = data[position + 7]
        if data[position + 6]:
            return None
        known = connection.learned.setdefault(FETCH, {})
        repeated: list[RepeatedFetch] = known.get(stop - position, [])
        for each in repeated:
            if each.api_version == api_version:
                fields = each.unpack(data, position + BODY)
                if fields[::2] == each.statics:
                    return TAKEN if each.serve(fields, (data, position, stop), correlation_id) else None
        if stop - position <= MOST_BYTES and OLDEST <= api_version <= NEWEST:
            self._learn(connection, known, data, position, stop, api_version)
        return None

    def _learn(
        self,
        connection: Connection,
        known: dict[int, list[RepeatedFetch]],
        data: bytes,
        position: int,
        stop: int,
        api_version: int,
    ) -> None:
        try:
            shape = Shape(data, position, stop, api_version)
        except ValueError:
            return
        if len(known) >= SIZES_A_CONNECTION:
            known.clear()
        repeated = known.setdefault(stop - position, [])
        if len(repeated) >= SHAPES_A_SIZE:
            del repeated[0]
        repeated.append(RepeatedFetch(self, connection, shape))


class RepeatedFetch:
    """A Fetch that a connection repeats. At most one copy is parked; the general handler serves a second one."""

    __slots__ = (
        "_alarm",
        "_config",
        "_connection",
        "_correlation_id",
        "_deadline_ms",
        "_epoch",
        "_frame",
        "_given_epoch",
        "_min_bytes",
        "_missing_bytes",
        "_partitions",
        "_router",
        "_session",
        "_sessions",
        "_shape",
        "_size_when_parked",
        "_slot",
        "_turn",
        "_version",
        "_wanted",
        "_watched",
        "api_version",
        "parked",
        "statics",
        "unpack",
    )

    def __init__(self, shortcut: FetchShortcut, connection: Connection, shape: Shape) -> None:
        self._turn = shortcut.turn
        self._config = shortcut.config
        self._partitions = shortcut.partitions
        self._sessions = shortcut.sessions
        self._router = shortcut.router
        self._connection = connection
        self._shape = shape
        self.api_version = shape.api_version
        self.statics = shape.statics
        self.unpack = shape.unpack.unpack_from
        self.parked = False
        self._alarm = 0  # the number of its timer; 0: none is set
        self._deadline_ms = 0
        self._slot = self._correlation_id = 0
        self._frame = (b"", 0, 0)
        self._session: FetchSession | None = None
        self._given_epoch = self._epoch = 0
        self._wanted: Iterable[Wanted] = shape.wanted
        self._version = -1  # of the metadata, at which it checked its partitions or had others check them anew
        self._watched: list[Partition] = []
        self._min_bytes = self._missing_bytes = self._size_when_parked = 0

    # ---------------------------------------------------------------- serving

    def serve(self, fields: tuple[int, ...], frame: tuple[bytes, int, int], correlation_id: int) -> bool:
        """Answer or park. False: nothing has changed, and the general handler serves it."""
        if self.parked:
            return False
        shape, turn = self._shape, self._turn
        epoch = fields[1]
        if shape.session_id == NO_SESSION:
            if epoch != FINAL_EPOCH:
                return False  # it begins a session
            for wanted, offset in zip(shape.wanted, fields[3::2], strict=True):
                wanted.fetch_offset = offset
            self._session = None
        elif not self._follow_session(epoch, fields[3::2]):
            return False
        found = self._read()
        if found is None:
            return False
        session = self._session
        if session is not None:
            self._sessions.touch(session, turn.steady_ms)
            self._given_epoch = epoch
            session.epoch = self._epoch = next_epoch(epoch)
        connection = self._connection
        self._slot = connection.base + len(connection.out)
        self._correlation_id = correlation_id
        connection.out.append(None)
        size = _size_of(found)
        self._min_bytes = min(shape.min_bytes, shape.max_bytes, self._config.fetch_max_bytes)
        if size >= self._min_bytes or shape.max_wait_ms <= 0 or not found:
            for flush_state in turn.durability.unsettled_shards():  # the topic may not be durable yet
                turn.durability.hold(flush_state, (connection, self._slot, *frame))
            self._answer(found)
        else:
            data, position, stop = frame
            self._frame = frame if stop - position == len(data) else (data[position:stop], 0, stop - position)
            self._park(found, size)
        return True

    def _follow_session(self, epoch: int, offsets: tuple[int, ...]) -> bool:
        """Update the session with the offsets. False: it is not the session that was learnt."""
        shape = self._shape
        session = self._sessions.find(shape.session_id, self._connection.node_id)
        if session is None or session.epoch != epoch or session.uses_topic_ids != shape.by_id:
            return False
        known = session.wanted
        if not known:
            return False
        for new, offset in zip(shape.wanted, offsets, strict=True):
            old = known.get((new.topic_id if shape.by_id else new.topic, new.partition))
            if old is None:
                return False
            new.fetch_offset = offset
            old.update(new)
        self._session = session
        self._wanted = known.values()
        return True

    def _read(self) -> Found | None:
        """The records of each partition, within the limits; None: for the general handler."""
        shape = self._shape
        # When metadata has changed, all are checked anew. A version never comes twice: see Broker._new_metadata.
        version = self._partitions.metadata.version
        if self._version != version:
            self._version = version
            for wanted in self._wanted:
                wanted.source = None
        committed = shape.committed
        left = min(shape.max_bytes, self._config.fetch_max_bytes)
        min_one = True
        found: Found = []
        for wanted in self._wanted:
            partition = wanted.source
            if partition is None:
                partition = self._find(wanted)
                if partition is None:
                    return None
            log = partition.log
            offset = wanted.fetch_offset
            limit = partition.last_stable_offset if committed else partition.high_watermark
            records = None
            if offset < limit:
                if offset < log.log_start_offset:
                    return None
                if left > 0 or min_one:
                    try:
                        records = log.read(
                            offset, min(wanted.partition_max_bytes, left), limit_offset=limit, min_one=min_one
                        )
                    except (KafkaError, StorageError, OSError):
                        return None
                    if records is not None:
                        left = max(0, left - records.asked)
                        min_one = False
                    elif committed:
                        return None  # a batch that does not fit: null, not an empty list, of aborted transactions
            elif offset > log.end_offset:
                return None
            found.append((wanted, partition, records))
        return found

    def _find(self, wanted: Wanted) -> Partition | None:
        """The partition, if this node leads it in the epoch that the client gives."""
        metadata = self._partitions.metadata
        topic = metadata.topics_by_id.get(wanted.topic_id) if self._shape.by_id else metadata.topics.get(wanted.topic)
        if topic is None or not 0 <= wanted.partition < len(topic.partitions) or wanted.last_fetched_epoch >= 0:
            return None
        info = topic.partitions[wanted.partition]
        if info.leader != self._connection.node_id or wanted.current_leader_epoch not in (-1, info.leader_epoch):
            return None
        try:
            partition = self._partitions.get(topic, wanted.partition)
        except KafkaError:
            return None
        if partition.metadata_version != metadata.version:
            partition.configure(topic, metadata)
        wanted.topic = topic.name
        wanted.source = partition
        return partition

    # ---------------------------------------------------------------- waiting

    def _park(self, found: Found, size: int) -> None:
        shape, connection = self._shape, self._connection
        self.parked = True
        self._watched = [partition for _, partition, _ in found]
        self._missing_bytes = self._min_bytes - size
        if any(partition.high_watermark < partition.log.end_offset for partition in self._watched):
            self._missing_bytes = 0  # what the logs hold already is still to become readable
        if self._missing_bytes > 1:
            self._size_when_parked = sum(partition.log.size_bytes for partition in self._watched)
        for partition in self._watched:
            partition.watch(self, committed=shape.committed)
        self._deadline_ms = self._turn.steady_ms + shape.max_wait_ms
        if not self._alarm:
            if connection.fetch_waits is None:
                connection.fetch_waits = {}
            connection.fetch_waits[id(self)] = self
            self._alarm = self._turn.timers.at(self._deadline_ms, self._ring)

    def _ring(self, due_ms: int, now_ms: int) -> None:
        """The wait is over, unless the alarm was set for a request that has been answered since."""
        if self.parked and self._deadline_ms > now_ms:
            self._alarm = self._turn.timers.at(self._deadline_ms, self._ring)
            return
        self._alarm = 0
        waits = self._connection.fetch_waits
        assert waits is not None
        waits.pop(id(self), None)
        if not self.parked:
            return
        found = self._read_parked()
        if found is not None:
            self._unpark()
            self._answer(found)

    def poll(self) -> None:
        """A partition has new records or was closed: answer if there are enough bytes."""
        if not self.parked:
            return
        if self._missing_bytes > 1 and not self._shape.committed:  # no read before enough bytes can have arrived
            logs_size = sum(partition.log.size_bytes for partition in self._watched)
            node_id = self._connection.node_id
            changed = any(partition.closed or partition.info.leader != node_id for partition in self._watched)
            if logs_size - self._size_when_parked < self._missing_bytes and not changed:
                return
        found = self._read_parked()
        if found is not None and _size_of(found) >= self._min_bytes:
            self._unpark()
            self._answer(found)

    def _read_parked(self) -> Found | None:
        """What can be read now; None: the general handler has taken over."""
        session = self._session
        found = self._read() if session is None or session.epoch == self._epoch else None
        if found is None:
            watched = self._watched
            self._unpark()
            if session is not None and session.epoch == self._epoch:
                session.epoch = self._given_epoch
            self._router.again(self._connection, self._slot, *self._frame, lambda request: self._edit(request, watched))
        return found

    def _edit(self, request: FetchRequest, watched: list[Partition]) -> None:
        """Adapt the request for the general handler: the time left to wait, and topic names."""
        node_id = self._connection.node_id
        moved = any(partition.closed or partition.info.leader != node_id for partition in watched)
        request.max_wait_ms = 0 if moved else max(0, self._deadline_ms - self._turn.steady_ms)
        names = {wanted.topic_id: wanted.topic for wanted in self._wanted}
        for topic in request.topics:
            topic.topic = topic.topic or names.get(topic.topic_id, "")

    def cancel(self) -> None:
        """The connection is closed: leave nothing that refers to it."""
        if self.parked:
            self._unpark()
        self._turn.timers.cancel(self._alarm)

    def _unpark(self) -> None:
        self.parked = False
        for partition in self._watched:
            partition.unwatch(self)

    # ---------------------------------------------------------------- answering

    def _answer(self, found: Found) -> None:
        session = self._session
        if session is not None:
            found = [each for each in found if _is_news(*each)]
            for wanted, partition, records in found:
                wanted.high_watermark = partition.high_watermark
                wanted.log_start_offset = partition.log.log_start_offset
                if records is not None:
                    session.serve_last((wanted.topic_id if self._shape.by_id else wanted.topic, wanted.partition))
        self._turn.begin()
        session_id = NO_SESSION if session is None else session.session_id
        reply = encode_fetch(
            found,
            self.api_version,
            self._correlation_id,
            session_id,
            by_id=self._shape.by_id,
            committed=self._shape.committed,
        )
        self._connection.fill(self._slot, reply)
        self._turn.durability.speaks(self._connection)


def _size_of(found: Found) -> int:
    return sum([records.asked for _, _, records in found if records is not None])


def _is_news(wanted: Wanted, partition: Partition, records: FileSlice | None) -> bool:
    """Whether an incremental response includes this partition."""
    return (
        records is not None
        or wanted.high_watermark != partition.high_watermark
        or wanted.log_start_offset != partition.log.log_start_offset
    )
