"""Messages of the classic group protocol: join, sync, heartbeat, leave."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Bytes, Int16, Int32, String


@nested
class JoinGroupRequestProtocol(Message):
    name: str = field(String)
    metadata: bytes = field(Bytes)


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupRequest(Message):
    """Join a classic group, or rejoin it.

    1 rebalance timeout, before it the session timeout serves; 4 members get their id first; 5 instance id
    (KIP-345); 8 reason (KIP-800).
    """

    group_id: str = field(String)
    session_timeout_ms: int = field(Int32)
    rebalance_timeout_ms: int = field(Int32, "1+", default=-1)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, "5+", nullable="5+", default=None)
    protocol_type: str = field(String)
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol))
    reason: str | None = field(String, "8+", nullable="8+", default=None)


@nested
class JoinGroupResponseMember(Message):
    member_id: str = field(String)
    group_instance_id: str | None = field(String, "5+", nullable="5+", default=None)
    metadata: bytes = field(Bytes)


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse(Message):
    """Generation, leader and, for the leader, the members.

    2 throttle time; 5 instance ids; 7 protocol type (KIP-559); 9 skip assignment (KIP-814).
    """

    throttle_time_ms: int = field(Int32, "2+")
    error_code: int = field(Int16)
    generation_id: int = field(Int32, default=-1)
    protocol_type: str | None = field(String, "7+", nullable="7+", default=None)
    protocol_name: str | None = field(String, nullable="7+")
    leader: str = field(String)
    skip_assignment: bool = field(Bool, "9+")
    member_id: str = field(String)
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember))


@nested
class SyncGroupRequestAssignment(Message):
    member_id: str = field(String)
    assignment: bytes = field(Bytes)


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupRequest(Message):
    """The leader gives, every member asks for, the assignment.

    3 instance id; 5 protocol type and name (KIP-559).
    """

    group_id: str = field(String)
    generation_id: int = field(Int32)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)
    protocol_type: str | None = field(String, "5+", nullable="5+", default=None)
    protocol_name: str | None = field(String, "5+", nullable="5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment))


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse(Message):
    """The member's assignment."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)
    protocol_type: str | None = field(String, "5+", nullable="5+", default=None)
    protocol_name: str | None = field(String, "5+", nullable="5+", default=None)
    assignment: bytes = field(Bytes)


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatRequest(Message):
    """A member of a classic group is alive.

    3 instance id.
    """

    group_id: str = field(String)
    generation_id: int = field(Int32)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse(Message):
    """Whether to go on, rejoin or start again."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)


@nested
class MemberIdentity(Message):
    member_id: str = field(String, "3+")
    group_instance_id: str | None = field(String, "3+", nullable="3+", default=None)
    reason: str | None = field(String, "5+", nullable="5+", default=None)


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest(Message):
    """Members leave a classic group.

    3 several members; 5 reason (KIP-800).
    """

    group_id: str = field(String)
    member_id: str = field(String, "0-2")
    members: list[MemberIdentity] = field(Array(MemberIdentity), "3+")


@nested
class MemberResponse(Message):
    member_id: str = field(String, "3+")
    group_instance_id: str | None = field(String, "3+", nullable="3+")
    error_code: int = field(Int16, "3+")


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse(Message):
    """Up to 2 one error at the top, from 3 one for each member too."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)
    members: list[MemberResponse] = field(Array(MemberResponse), "3+")


_NAMING_THE_MEMBER = (ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT)  # JoinGroup, as in Kafka


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(
                error_code=code,
                protocol_name=None if api_version >= 7 else "",
                member_id=request.member_id if code in _NAMING_THE_MEMBER else "",
            )
        case SyncGroupRequest():
            return SyncGroupResponse(error_code=code)
        case HeartbeatRequest():
            return HeartbeatResponse(error_code=code)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error_code=code)
    raise TypeError(f"not a request of this family: {request!r}")
