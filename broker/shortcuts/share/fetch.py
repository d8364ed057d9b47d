"""The shortcut of ShareFetch: repeats of an earlier request of a session with one partition, without messages.

It accepts whole batches of offsets, or acknowledges nothing, and acquires what lies behind all records in flight. The
general handler is handlers/share_fetch.py. It serves everything else: other acknowledgements, records that were given
back, gaps, full partitions, read_committed, and whatever has to wait. Session, owner, offsets and the log are checked
for every request; settings and leaders are learnt, and dropped when the metadata changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config.features import level_of
from broker.coordinator.runtime import READY
from broker.coordinator.share.acknowledge import accepted
from broker.coordinator.share.acquire import Wish
from broker.coordinator.share.reader import read_new, take_new
from broker.shortcuts.share.fetch_reply import encode_share_fetch, label_of
from broker.shortcuts.share.fetch_shape import MOST_BYTES, NEWEST, OLDEST, ShareShape
from broker.wire.route import SMALL_FETCH_BYTES
from broker.wire.service import TAKEN
from protocol.api import ApiKey
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.coordinator.share.reader import Behind, Taken
    from broker.coordinator.share.sessions import Place
    from broker.coordinator.share.share_partition import Limits
    from broker.coordinator.share.table import Live, SharePartitions
    from broker.partitions.partition import Partition
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection

SHARE_FETCH: Final = int(ApiKey.SHARE_FETCH)
SHAPES_A_SIZE: Final = 4  # kept for frames of one size
SIZES_A_CONNECTION: Final = 16


class ShareFetchShortcut:
    """Serves requests that it has learnt."""

    def __init__(self, turn: Turn, config: BrokerConfig, partitions: Partitions, share: SharePartitions) -> None:
        self.turn = turn
        self.config = config
        self.partitions = partitions
        self.share = share

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """Answer a ShareFetch; see service.Shortcut."""
        api_version = data[position + 7]
        if data[position + 6]:
            return None
        known = connection.learned.setdefault(SHARE_FETCH, {})
        repeated: list[RepeatedShareFetch] = known.get(stop - position, [])
        for each in repeated:
            shape = each.shape
            if shape.api_version == api_version:
                fields = shape.unpack.unpack_from(data, position + 12)
                if fields[::2] == shape.statics:
                    return each.serve(fields, (data, position, stop), correlation_id)
        if stop - position <= MOST_BYTES and OLDEST <= api_version <= NEWEST:
            try:
                found = RepeatedShareFetch(self, connection, ShareShape(data, position, stop, api_version))
            except (ValueError, KafkaError, StorageError, OSError):
                return None
            if len(known) >= SIZES_A_CONNECTION:
                known.clear()
            repeated = known.setdefault(stop - position, [])
            if len(repeated) >= SHAPES_A_SIZE:
                del repeated[0]
            repeated.append(found)
        return None


class RepeatedShareFetch:
    """A ShareFetch that a connection repeats."""

    __slots__ = (
        "_config",
        "_connection",
        "_label",
        "_last_bytes",
        "_limits",
        "_partition",
        "_place",
        "_share",
        "_turn",
        "shape",
    )

    def __init__(self, shortcut: ShareFetchShortcut, connection: Connection, shape: ShareShape) -> None:
        """Look up what stays the same. Errors: ValueError, KafkaError: the general handler must serve it."""
        share = self._share = shortcut.share
        self._turn = shortcut.turn
        self._config = shortcut.config
        self._connection = connection
        self.shape = shape
        session = share.sessions.get(connection.node_id, shape.group_id, shape.member_id)
        if session is None or len(session.partitions) != 1:
            raise ValueError("not one partition")
        (place,) = session.partitions
        metadata = share.metadata
        topic = metadata.topics_by_id.get(place[0])
        if (
            shape.place not in (None, place)
            or topic is None
            or not 0 <= place[1] < len(topic.partitions)
            or topic.partitions[place[1]].leader != connection.node_id
            or share.value(shape.group_id, "share.isolation.level") == "read_committed"
            or level_of("share.version", metadata.feature_levels) < 1
        ):
            raise ValueError("another partition, or another leader, or committed records only")
        self._place: Place = place
        self._partition: Partition = shortcut.partitions.get(topic, place[1])
        if self._partition.info is not topic.partitions[place[1]]:
            self._partition.configure(topic, metadata)
        self._limits: Limits = share.limits(shape.group_id)
        self._label = label_of(place)
        self._last_bytes = SMALL_FETCH_BYTES  # of the records of the last reply

    def serve(self, fields: tuple[int, ...], frame: tuple[bytes, int, int], correlation_id: int) -> bytes | None:
        """The reply, or TAKEN. None: nothing has changed, and the general handler serves it."""
        shape, share, connection = self.shape, self._share, self._connection
        place = self._place
        session = share.sessions.get(connection.node_id, shape.group_id, shape.member_id)
        if session is None or session.epoch != fields[1] or len(session.partitions) != 1:
            return None
        live = share.known(shape.group_id, *place)
        if live is None or place not in session.partitions:
            return None
        state, limits = live.state, self._limits
        if not state.is_plain or state.in_flight + shape.max_records > limits.most_in_flight:
            return None
        changes = accepted(state, shape.member_id, list(zip(fields[3::4], fields[5::4], strict=True)))
        shard = share.coordinator.shards[live.index]
        if changes is None or shard.state is not READY or shard.log.broken:
            return None
        found = self._read(live)
        if found is None:
            return None
        if changes:
            try:
                share.carry_out(live, shard, changes)
            except KafkaError:  # the log failed, and the state is forgotten: the general handler makes it anew
                return None
        session.advance()
        wish = Wish(shape.member_id, self._turn.steady_ms + limits.lock_ms, shape.max_records, shape.batch_size)
        taken = take_new(state, limits, wish, found)
        self._last_bytes = len(taken.records)
        session.partitions[place] = False
        share.settle(live)
        return self._answer(taken, frame, correlation_id)

    def _read(self, live: Live) -> Behind | None:
        """The batches behind the end; None: not enough, or there is something out of the ordinary."""
        shape, partition = self.shape, self._partition
        most_bytes = min(shape.max_bytes, self._config.fetch_max_bytes)
        try:
            return read_new(partition, live.state, most_bytes, self._last_bytes, shape.max_records, shape.min_bytes)
        except (StorageError, OSError, KafkaError):
            return None

    def _answer(self, taken: Taken, frame: tuple[bytes, int, int], correlation_id: int) -> bytes:
        connection, durability = self._connection, self._turn.durability
        slot = connection.base + len(connection.out)
        for flush_state in durability.unsettled_shards():
            durability.hold(flush_state, (connection, slot, *frame))
        reply = encode_share_fetch(self._label, taken, correlation_id, self._limits.lock_ms)
        if isinstance(reply, bytes):
            return reply
        connection.out.append(None)
        connection.fill(slot, reply)
        durability.speaks(connection)
        return TAKEN
