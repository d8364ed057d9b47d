"""Messages that describe, create and delete ACLs. Version 3 only admits resources of type USER."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Int8, Int16, Int32, String


@message(api_key=29, versions="1-3", flexible="2+")
class DescribeAclsRequest(Message):
    """Ask for the ACLs that a filter matches; null matches everything."""

    resource_type_filter: int = field(Int8)
    resource_name_filter: str | None = field(String, nullable="0+")
    pattern_type_filter: int = field(Int8, default=3)
    principal_filter: str | None = field(String, nullable="0+")
    host_filter: str | None = field(String, nullable="0+")
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@nested
class AclDescription(Message):
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@nested
class DescribeAclsResource(Message):
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    pattern_type: int = field(Int8, default=3)
    acls: list[AclDescription] = field(Array(AclDescription))


@message(api_key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse(Message):
    """The ACLs by resource."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    resources: list[DescribeAclsResource] = field(Array(DescribeAclsResource))


@nested
class AclCreation(Message):
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    resource_pattern_type: int = field(Int8, default=3)
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message(api_key=30, versions="1-3", flexible="2+")
class CreateAclsRequest(Message):
    """Create ACLs."""

    creations: list[AclCreation] = field(Array(AclCreation))


@nested
class AclCreationResult(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")


@message(api_key=30, versions="1-3", flexible="2+")
class CreateAclsResponse(Message):
    """One result for each ACL, in their order."""

    throttle_time_ms: int = field(Int32)
    results: list[AclCreationResult] = field(Array(AclCreationResult))


@nested
class DeleteAclsFilter(Message):
    resource_type_filter: int = field(Int8)
    resource_name_filter: str | None = field(String, nullable="0+")
    pattern_type_filter: int = field(Int8, default=3)
    principal_filter: str | None = field(String, nullable="0+")
    host_filter: str | None = field(String, nullable="0+")
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message(api_key=31, versions="1-3", flexible="2+")
class DeleteAclsRequest(Message):
    """Delete the ACLs that any of the filters matches."""

    filters: list[DeleteAclsFilter] = field(Array(DeleteAclsFilter))


@nested
class DeleteAclsMatchingAcl(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    pattern_type: int = field(Int8, default=3)
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@nested
class DeleteAclsFilterResult(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = field(Array(DeleteAclsMatchingAcl))


@message(api_key=31, versions="1-3", flexible="2+")
class DeleteAclsResponse(Message):
    """One result for each filter, in their order."""

    throttle_time_ms: int = field(Int32)
    filter_results: list[DeleteAclsFilterResult] = field(Array(DeleteAclsFilterResult))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case DescribeAclsRequest():
            return DescribeAclsResponse(error_code=code, error_message=message)
        case CreateAclsRequest():
            return CreateAclsResponse(
                results=[AclCreationResult(error_code=code, error_message=message) for _ in request.creations]
            )
        case DeleteAclsRequest():
            return DeleteAclsResponse(
                filter_results=[DeleteAclsFilterResult(error_code=code, error_message=message) for _ in request.filters]
            )
    raise TypeError(f"not a request of this family: {request!r}")
