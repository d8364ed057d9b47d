"""Messages that describe, list and delete groups."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Bytes, Int16, Int32, String


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Message):
    """Ask for the state and members of classic groups.

    3 authorized operations; 6 says GROUP_ID_NOT_FOUND (KIP-1043).
    """

    groups: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Bool, "3+")


@nested
class DescribedGroupMember(Message):
    member_id: str = field(String)
    group_instance_id: str | None = field(String, "4+", nullable="4+", default=None)
    client_id: str = field(String)
    client_host: str = field(String)
    member_metadata: bytes = field(Bytes)
    member_assignment: bytes = field(Bytes)


@nested
class DescribeGroupsResponseDescribedGroup(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, "6+", nullable="6+", default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    protocol_type: str = field(String)
    protocol_data: str = field(String)
    members: list[DescribedGroupMember] = field(Array(DescribedGroupMember))
    authorized_operations: int = field(Int32, "3+", default=-2147483648)


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message):
    """State and members of each group.

    4 instance ids; 6 error message.
    """

    throttle_time_ms: int = field(Int32, "1+")
    groups: list[DescribeGroupsResponseDescribedGroup] = field(Array(DescribeGroupsResponseDescribedGroup))


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsRequest(Message):
    """Ask for all groups.

    4 filter by state (KIP-518); 5 by type (KIP-848).
    """

    states_filter: list[str] = field(Array(String), "4+")
    types_filter: list[str] = field(Array(String), "5+")


@nested
class ListedGroup(Message):
    group_id: str = field(String)
    protocol_type: str = field(String)
    group_state: str = field(String, "4+")
    group_type: str = field(String, "5+")


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse(Message):
    """Groups with protocol type, state and type."""

    throttle_time_ms: int = field(Int32, "1+")
    error_code: int = field(Int16)
    groups: list[ListedGroup] = field(Array(ListedGroup))


@message(api_key=42, versions="0-3", flexible="2+")
class DeleteGroupsRequest(Message):
    """Delete groups that are empty."""

    groups_names: list[str] = field(Array(String))


@nested
class DeletableGroupResult(Message):
    group_id: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, "3+", nullable="3+", default=None)


@message(api_key=42, versions="0-3", flexible="2+")
class DeleteGroupsResponse(Message):
    """An error code for each group; 3 a message, which Kafka leaves null unless a plugin of its own has failed."""

    throttle_time_ms: int = field(Int32)
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case DescribeGroupsRequest():
            return DescribeGroupsResponse(
                groups=[
                    DescribeGroupsResponseDescribedGroup(group_id=group_id, error_code=code, error_message=message)
                    for group_id in request.groups
                ]
            )
        case ListGroupsRequest():
            return ListGroupsResponse(error_code=code)
        case DeleteGroupsRequest():
            return DeleteGroupsResponse(
                results=[DeletableGroupResult(group_id=group_id, error_code=code) for group_id in request.groups_names]
            )
    raise TypeError(f"not a request of this family: {request!r}")
