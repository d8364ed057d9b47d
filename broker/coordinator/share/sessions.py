"""Share sessions: which partitions a member reads, so that it need not name them in every ShareFetch.

A member has one session with each node. It begins with epoch 0, counts 1 .. 2^31-1 and again from 1, and ends with
epoch -1, or with the connection it began on. Then what the member has acquired is given back. When the last session of
a group ends, its share partitions are forgotten: the next one reads their stored state.

Source: KIP-932; Kafka's SharePartitionManager.newContext, acknowledgeSessionUpdate, ShareSessionCache.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from protocol.errors import ErrorCode, KafkaError

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_INT32: Final = 2**31 - 1

PartitionKey = tuple[bytes, int]  # topic id, partition
Name = tuple[int, str, str]  # node, group, member


class ShareSession:
    """The partitions that one member reads, in the order that they are served."""

    __slots__ = ("connection", "epoch", "group_id", "member_id", "partitions")

    def __init__(self, group_id: str, member_id: str, places: Iterable[PartitionKey], connection: object) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection  # with which it ends
        self.epoch = 1
        # whether the client has to be answered
        self.partitions: dict[PartitionKey, bool] = dict.fromkeys(places, False)

    def update(self, places: Iterable[PartitionKey], forgotten: Iterable[PartitionKey]) -> None:
        """Add partitions, and remove others."""
        for place in places:
            self.partitions.setdefault(place, True)
        for place in forgotten:
            self.partitions.pop(place, None)

    def must_answer(self, place: PartitionKey, *, has_records: bool, has_error: bool) -> bool:
        """Whether a response includes the partition. One with records moves to the end, so that none starves."""
        if place not in self.partitions:
            return True
        must = has_records or has_error or self.partitions[place]
        if has_records:
            del self.partitions[place]
        self.partitions[place] = has_error
        return must

    def advance(self) -> None:
        """The next request of the session has come."""
        self.epoch = 1 if self.epoch == _MAX_INT32 else self.epoch + 1


class ShareSessions:
    """All share sessions of the process, at most as many as group.share.max.share.sessions says."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[Name, ShareSession] = {}
        self._members: dict[str, int] = {}  # group -> sessions
        self._begun: dict[object, set[Name]] = {}  # connection -> sessions that it began

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, node_id: int, group_id: str, member_id: str) -> ShareSession | None:
        """The session of a member with a node."""
        return self._sessions.get((node_id, group_id, member_id))

    def require(self, node_id: int, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The member's session, if the epoch is the next one, or the final one.

        Errors:  SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.get(node_id, group_id, member_id)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch not in (session.epoch, FINAL_EPOCH):
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return session

    def begin(
        self, node_id: int, group_id: str, member_id: str, places: Iterable[PartitionKey], connection: object
    ) -> ShareSession:
        """A new session in place of the member's old one. Errors: SHARE_SESSION_LIMIT_REACHED."""
        self.remove(node_id, group_id, member_id)
        if len(self._sessions) >= self._slots:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(group_id, member_id, places, connection)
        self._sessions[node_id, group_id, member_id] = session
        self._begun.setdefault(connection, set()).add((node_id, group_id, member_id))
        self._members[group_id] = self._members.get(group_id, 0) + 1
        return session

    def remove(self, node_id: int, group_id: str, member_id: str) -> ShareSession | None:
        """End a session; None: there was none."""
        session = self._sessions.pop((node_id, group_id, member_id), None)
        if session is not None:
            begun = self._begun[session.connection]
            begun.discard((node_id, group_id, member_id))
            if not begun:
                del self._begun[session.connection]
            self._members[group_id] -= 1
            if not self._members[group_id]:
                del self._members[group_id]
        return session

    def has_members(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return group_id in self._members

    def of_connection(self, connection: object) -> list[Name]:
        """The sessions that end with a connection."""
        return list(self._begun.get(connection, ()))

    def clear(self) -> None:
        """End all sessions."""
        self._sessions.clear()
        self._members.clear()
        self._begun.clear()
