"""DescribeAcls, CreateAcls and DeleteAcls: refused, because there is no authorizer.

DescribeAcls  v1: resource patterns. v3: resources of type USER.
CreateAcls    As DescribeAcls.
DeleteAcls    As DescribeAcls.

Behaviour: as Kafka without `authorizer.class.name`: SECURITY_DISABLED for each ACL or filter. A request with an element
           of kind UNKNOWN (0) ends its connection.
Absent:    an authorizer: any client that reaches the port may do everything.
Source:    Kafka's AclApis; the validation of DescribeAclsRequest, CreateAclsRequest and DeleteAclsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode, KafkaError
from protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest, error_response

if TYPE_CHECKING:
    from broker.coordinator.result import Context
    from protocol.declare import Message

UNKNOWN = 0  # of each kind: resource, pattern, operation, permission


def describe_acls(broker: object, ctx: Context, request: DescribeAclsRequest) -> Message | None:
    """Refuse to describe. Errors: SECURITY_DISABLED."""
    if _closes(
        ctx,
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ):
        return None
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")


def create_acls(broker: object, ctx: Context, request: CreateAclsRequest) -> Message | None:
    """Refuse to create. Errors, of each ACL: SECURITY_DISABLED."""
    for each in request.creations:
        if _closes(ctx, each.resource_type, each.resource_pattern_type, each.operation, each.permission_type):
            return None
    return _refused(ctx, request)


def delete_acls(broker: object, ctx: Context, request: DeleteAclsRequest) -> Message | None:
    """Refuse to delete. Errors, of each filter: SECURITY_DISABLED."""
    for each in request.filters:
        if _closes(ctx, each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type):
            return None
    return _refused(ctx, request)


def _closes(ctx: Context, *kinds: int) -> bool:
    """Whether one of the kinds is UNKNOWN: the connection is then closed without a reply."""
    ctx.close_connection = UNKNOWN in kinds
    return ctx.close_connection


def _refused(ctx: Context, request: Message) -> Message:
    return error_response(request, ctx.api_version, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
