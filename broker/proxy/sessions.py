"""The partitions of fetch sessions, as their requests have named them: a Fetch of a session names only what changes.

A session is known from its first request on. What a session reads that was not seen to begin cannot be known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.api import ApiKey

if TYPE_CHECKING:
    from broker.proxy.linked import Linked

FIRST, NONE = 0, -1  # epochs of a request: the first of a session, and one without a session
MOST_SESSIONS: Final = 10_000
_ID_AT: Final = 15  # of a reply of Fetch 12 and later; before, one less, for want of tagged fields
_FLEXIBLE: Final = 12

Partition = tuple[str, bytes, int]  # topic name, topic id, index: one of the first two is given
Wanted = dict[Partition, None]


class UnknownSessionError(Exception):
    """The session began before anybody looked."""


class Sessions:
    """The sessions of all connections, by node: of Fetch by their id, of ShareFetch by group and member."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, object, object], Wanted] = {}
        self._begun: dict[Linked, dict[int, Wanted]] = {}  # by slot: first requests that are not answered yet

    def partitions_of(self, connection: Linked, request: Any, api_key: int) -> Wanted:
        """What a Fetch or ShareFetch reads, and take in what it changes. Errors: UnknownSessionError."""
        if api_key == ApiKey.SHARE_FETCH:
            key = (connection.node_id, request.group_id, request.member_id)
            epoch, forgotten = request.share_session_epoch, request.forgotten_topics_data
        else:
            key = (connection.node_id, ApiKey.FETCH, request.session_id)
            epoch, forgotten = request.session_epoch, request.forgotten_topics_data
        named = _named(request.topics)
        if epoch == NONE:
            self._known.pop(key, None)
            return named
        if epoch == FIRST:
            self._known.pop(key, None)
            if api_key == ApiKey.SHARE_FETCH:
                self._keep(key, named)
            else:
                self._begun.setdefault(connection, {})[connection.next_slot] = named
            return named
        found = self._known.get(key)
        if found is None:
            raise UnknownSessionError
        for each in _named(forgotten):
            found.pop(each, None)
        found.update(named)
        return found

    def replied(self, connection: Linked, slot: int, frame: bytes, version: int) -> None:
        """A Fetch is answered: the session that it has begun has an id now."""
        begun = self._begun.get(connection)
        wanted = begun.pop(slot, None) if begun else None
        at = _ID_AT if version >= _FLEXIBLE else _ID_AT - 1
        if wanted is not None and len(frame) >= at + 4:
            session_id = int.from_bytes(frame[at : at + 4], "big", signed=True)
            if session_id:
                self._keep((connection.node_id, ApiKey.FETCH, session_id), wanted)

    def _keep(self, key: tuple[int, object, object], wanted: Wanted) -> None:
        if len(self._known) >= MOST_SESSIONS:
            del self._known[next(iter(self._known))]
        self._known[key] = wanted

    def disconnected(self, connection: Linked) -> None:
        """A connection is closed; its session may go on over another one."""
        self._begun.pop(connection, None)


def _named(topics: Any) -> Wanted:
    found: Wanted = {}
    for topic in topics or ():
        name, topic_id = getattr(topic, "topic", ""), getattr(topic, "topic_id", b"")
        for each in topic.partitions:
            index = each if isinstance(each, int) else getattr(each, "partition", getattr(each, "partition_index", -1))
            found[name, topic_id, index] = None
    return found
