"""Members of the classic protocol in a group that changes its protocol."""

from __future__ import annotations

from typing import Any

from consumer_kit import Groups

from broker.coordinator.groups.consumer.embedded_protocol import read_assignment, write_assignment
from protocol.errors import ErrorCode as E
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)


def subscription(*topics: str, owned: dict[str, tuple[int, ...]] | None = None, rack: str | None = None) -> bytes:
    """A ConsumerProtocolSubscription, version 3."""
    body = b"\0\3" + len(topics).to_bytes(4, "big")
    body += b"".join(len(t).to_bytes(2, "big") + t.encode() for t in topics) + b"\xff\xff\xff\xff"
    body += write_assignment(owned or {}, 3)[2:-4] + b"\xff\xff\xff\xff"
    return body + (b"\xff\xff" if rack is None else len(rack).to_bytes(2, "big") + rack.encode())


def join_request(
    protocols: dict[str, bytes],
    member_id: str = "",
    instance: str | None = None,
    *,
    protocol_type: str = "consumer",
    session_ms: int = 10_000,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()],
    )


class Classic:
    """A member of the classic protocol; the leader of a classic group gives itself all partitions of t."""

    def __init__(self, groups: Groups, topics: tuple[str, ...] = ("t",), instance: str | None = None) -> None:
        self.groups = groups
        self.topics = topics
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.assigned: dict[str, tuple[int, ...]] = {}
        self.protocol = "range"

    def call(self, request: Any, version: int) -> Any:
        return self.groups.client.call(request, version)

    def join(self, session_ms: int = 10_000) -> Any:
        wants = {self.protocol: subscription(*self.topics, owned=self.assigned)}
        answer = self.call(join_request(wants, self.member_id, self.instance, session_ms=session_ms), 9)
        if answer.error_code == E.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return self.join(session_ms)
        if answer.error_code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, **all_assignments: dict[str, tuple[int, ...]]) -> Any:
        rows = [
            SyncGroupRequestAssignment(member_id=m.replace("_", "-"), assignment=write_assignment(a, 3))
            for m, a in all_assignments.items()
        ]
        answer = self.call(
            SyncGroupRequest(
                group_id="g",
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name=self.protocol,
                assignments=rows,
            ),
            5,
        )
        if answer.error_code == 0:
            self.assigned = read_assignment(answer.assignment)[0]
        return answer

    def beat(self, generation: int | None = None) -> int:
        request = HeartbeatRequest(
            group_id="g",
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        code: int = self.call(request, 4).error_code
        return code

    def leave(self) -> int:
        row = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        code: int = self.call(LeaveGroupRequest(group_id="g", members=[row]), 5).members[0].error_code
        return code

    def go_on(self) -> None:
        """What a client does when it is told to rejoin: revoke, join, sync."""
        if self.beat() in (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION):
            assert self.join().error_code == 0
            while self.sync().error_code == E.REBALANCE_IN_PROGRESS:
                assert self.join().error_code == 0


def alone(groups: Groups, **how: Any) -> Classic:
    """A classic group of one member that has everything."""
    member = Classic(groups, **how)
    member.join()
    name = member.member_id.replace("-", "_")
    assert member.sync(**{name: {"t": (0, 1, 2, 3)}}).error_code == 0
    return member


def settle(groups: Groups, classics: list[Classic], members: list[Any]) -> None:
    for _ in range(6):
        for member in members:
            member.beat()
        for classic in classics:
            classic.go_on()
    assert groups.group().state.value == "Stable"
