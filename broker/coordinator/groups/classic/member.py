"""One member of a classic group: what it said when it joined, its assignment, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from broker.coordinator.result import Token

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]  # name and metadata, in the member's order of preference


def protocols_of(protocols: Iterable[Any]) -> Protocols:
    """A JoinGroup request's protocols as they are kept; the metadata is copied out of the frame."""
    return tuple((p.name, bytes(p.metadata)) for p in protocols)


class Member:
    """One member. `assignment` is logged; the two tokens and `is_new` are volatile."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_token",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "session_timer",
        "sync_token",
    )

    def __init__(
        self,
        group_id: str,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.join_token: Token | None = None  # a parked JoinGroup
        self.sync_token: Token | None = None  # a parked SyncGroup
        self.is_new = False  # has never been told its first generation
        self.session_timer = ("session", group_id, member_id)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What the member said with one of its protocols; nothing for a protocol it does not know."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def excused(self) -> bool:
        """Whether silence is no sign of death: who is parked cannot heartbeat.

        A new member is not excused: it may never learn its id (the connection broke), and nobody else would remove it.
        """
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    def facts(self, protocol_name: str | None) -> tuple[object, ...]:
        """What a record holds of the member, but for the assignment."""
        return (
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
        )
