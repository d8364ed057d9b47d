"""One member of a classic group: what it sent with JoinGroup, its assignment, and its parked requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from broker.turn.decision import Token

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]  # name and metadata, in the member's order of preference


def protocols_of(protocols: Iterable[Any]) -> Protocols:
    """The protocols of a JoinGroup request; the metadata is copied out of the frame."""
    return tuple((p.name, bytes(p.metadata)) for p in protocols)


class Member:
    """One member of a classic group."""

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

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "is_new": "of a running rebalance",
        "join_token": "a parked request",
        "protocols": "the log holds the metadata of the chosen one, which the group's facts() compare",
        "sync_token": "a parked request",
    }

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
        self.is_new = False  # its first JoinGroup has not been answered yet
        self.session_timer = ("session", group_id, member_id)

    def metadata(self, protocol_name: str | None) -> bytes:
        """The metadata that the member sent with one of its protocols; empty for a protocol it does not support."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def excused(self) -> bool:
        """Whether the member may miss heartbeats: it cannot send any while its request is parked.

        A new member may not: if its connection broke, it never learns its id, and nothing else would remove it.
        """
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    def logged(self, protocol_name: str | None) -> tuple[object, ...]:
        """What a record holds of the member, except for the assignment."""
        return (
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
        )
