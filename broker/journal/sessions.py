"""Which topics a Fetch or ShareFetch of a session reads: those that earlier requests of the session have named.

Without these requests, which may have made room or be too large to be kept whole, it cannot be known.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from protocol.api import ApiKey
from protocol.errors import MalformedError
from protocol.header import decode_request_header, decode_response_header

if TYPE_CHECKING:
    from broker.journal.reading import Entry

SESSION_APIS: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
SESSIONS_SINCE: Final = 7  # of Fetch
REPLICA_STATE_SINCE: Final = 15  # of Fetch: no replica id at its beginning
_SESSION: Final = struct.Struct(">iiibii")  # of a Fetch: longest wait, least and most bytes, isolation, session, epoch
_BEGIN: Final = struct.Struct(">ihi")  # of a reply to Fetch: throttle time, error, session id
_Partitions = set[tuple[str, int]]


class Sessions:
    """Follows the sessions, request by request in the order in which they came."""

    def __init__(self, topic_name: Callable[[bytes], str]) -> None:
        self._topic_name = topic_name
        self._read: dict[Hashable, _Partitions] = {}  # by session
        self._topics: dict[int, frozenset[str] | None] = {}  # by number of the request

    def add(self, entry: Entry) -> None:
        """Take the next request."""
        if entry.api_key not in SESSION_APIS or (entry.api_key == ApiKey.FETCH and entry.api_version < SESSIONS_SINCE):
            return
        if entry.is_cut:
            if entry.api_key == ApiKey.FETCH:
                self._read.pop((entry.peer.broker, _session_of_large(entry)), None)
            else:
                self._read.clear()  # names that may be long come before what tells the session
            return
        request: Any = entry.request()
        if request is None:
            return  # malformed
        session: Hashable
        if entry.api_key == ApiKey.FETCH:
            epoch = request.session_epoch
            session = entry.peer.broker, request.session_id if epoch else _session_begun(entry)
        else:
            epoch = request.share_session_epoch
            session = entry.peer.broker, request.group_id, request.member_id
        if epoch == 0:
            self._read[session] = set(self._named(request.topics))
        elif epoch > 0:
            read = self._read.get(session)
            if read is not None:
                read.update(self._named(request.topics))
                read.difference_update(self._named(request.forgotten_topics_data))
            self._topics[entry.number] = None if read is None else frozenset(topic for topic, _ in read)

    def topics_of(self, entry: Entry) -> frozenset[str] | None:
        """What a request reads beside what it names itself; "": a topic whose name is not known. None: unknown."""
        return self._topics.get(entry.number, frozenset())

    def _named(self, topics: list[Any]) -> _Partitions:
        found: _Partitions = set()
        for each in topics:
            name = getattr(each, "topic", "") or self._topic_name(each.topic_id)
            for partition in each.partitions:
                found.add((name, partition if isinstance(partition, int) else _index(partition)))
        return found


def _index(partition: Any) -> int:
    index: int = partition.partition if hasattr(partition, "partition") else partition.partition_index
    return index


def _session_of_large(entry: Entry) -> int:
    """The session of a Fetch of which only the first bytes are kept; what it has changed is not known."""
    _, start = decode_request_header(entry.frame[4:], 0)
    replica_bytes = 4 if entry.api_version < REPLICA_STATE_SINCE else 0
    return int(_SESSION.unpack_from(entry.frame, 4 + start + replica_bytes)[4])


def _session_begun(entry: Entry) -> int:
    """The id of the session that a reply begins; of a large reply the first bytes are kept. 0: none."""
    try:
        _, start = decode_response_header(entry.reply[4:], entry.api_key, entry.api_version)
        return int(_BEGIN.unpack_from(entry.reply, 4 + start)[2])
    except (MalformedError, IndexError, ValueError, struct.error):
        return 0
