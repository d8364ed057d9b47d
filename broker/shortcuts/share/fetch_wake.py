"""Answers parked ShareFetches of one partition without messages, when records have come behind all that are in flight.

handlers/share_fetch_wait.py parks them, and answers those that this declines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinator.share.acquire import Wish
from broker.coordinator.share.reader import read_new, take_new
from broker.shortcuts.share.fetch_reply import encode_share_fetch, label_of
from broker.wire.route import SMALL_FETCH_BYTES
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.coordinator.share.sessions import ShareSession
    from broker.coordinator.share.table import SharePartitions
    from broker.handlers.share_fetch_wait import Asked, Readable
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequest
    from broker.wire.reply_stream import Reply


class ShareFetchWake:
    """Makes the replies."""

    def __init__(self, turn: Turn, config: BrokerConfig, share: SharePartitions) -> None:
        self._turn = turn
        self._config = config
        self._share = share

    def reply(self, parked: ParkedRequest, asked: Asked, session: ShareSession, readable: Readable) -> Reply:
        """The reply of a request whose session has this partition alone; None: nothing has changed."""
        place, partition, live = readable
        state, limits = live.state, self._share.limits(asked.group_id)
        if parked.merge is not None or len(session.partitions) != 1 or place not in session.partitions:
            return None
        if not state.is_plain or state.in_flight + asked.max_records > limits.most_in_flight:
            return None
        most_bytes = min(asked.max_bytes, self._config.fetch_max_bytes)
        try:
            found = read_new(partition, state, most_bytes, SMALL_FETCH_BYTES, asked.max_records, asked.min_bytes)
        except (StorageError, OSError, KafkaError):
            return None
        if found is None:
            return None
        wish = Wish(asked.member_id, self._turn.steady_ms + limits.lock_ms, asked.max_records, asked.batch_size)
        taken = take_new(state, limits, wish, found)
        session.partitions[place] = False
        return encode_share_fetch(label_of(place), taken, parked.correlation_id, limits.lock_ms)
