"""DescribeAcls, CreateAcls and DeleteAcls.

DescribeAcls  v1: resource patterns. v3: resources of type USER.
CreateAcls    As DescribeAcls.
DeleteAcls    As DescribeAcls.

Behaviour: without `authorizer.class.name`, as in Kafka, SECURITY_DISABLED for each ACL or filter. A request with an
           element of kind UNKNOWN (0) ends its connection; of another kind that is not known, it is refused. An ACL
           that is there is not made again.
Source:    Kafka's AclApis and AclControlManager; the validation of DescribeAclsRequest, CreateAclsRequest and
           DeleteAclsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.base.context import Context
from broker.cluster.acls import ANY, CLUSTER, CLUSTER_NAME, MATCH, Acl, AclFilter, acl_record
from broker.cluster.host_ranges import are_known, fault_of
from broker.config.authorizer_setting import is_authorizer_set
from broker.handlers.admin_view import after_metadata
from broker.turn.decision import Decision
from protocol.declare import Message
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
    error_response,
)
from protocol.messages.metadata_records import RemoveAccessControlEntryRecord, encode_record

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard

UNKNOWN = 0
# The numbers that Kafka knows, beside UNKNOWN; every other one is read as that.
RESOURCE_TYPES, PATTERNS, OPERATIONS, PERMISSIONS = range(1, 8), range(1, 5), range(1, 16), range(1, 4)
MOST_DELETED = 10_000  # ACLs by one request, as in Kafka


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...


def describe_acls(broker: View, ctx: Context, request: DescribeAclsRequest) -> Decision:
    """Answer the ACLs that a filter matches, by resource. Errors: SECURITY_DISABLED."""
    if _closes(
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ):
        return Decision(close=True)
    if not is_authorizer_set(broker.config):
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    wanted = _filter(request)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in filter(wanted.matches, broker.metadata.acls.by_id.values()):
        place = acl.resource_type, acl.resource_name, acl.pattern_type
        if place not in resources:
            resources[place] = DescribeAclsResource(
                resource_type=acl.resource_type, resource_name=acl.resource_name, pattern_type=acl.pattern_type
            )
        resources[place].acls.append(
            AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type
            )
        )
    return Decision(DescribeAclsResponse(error_message="", resources=list(resources.values())))


def _filter(each: Any) -> AclFilter:
    """A filter as DescribeAcls and DeleteAcls have it."""
    return AclFilter(
        each.resource_type_filter,
        each.resource_name_filter,
        each.pattern_type_filter,
        each.principal_filter,
        each.host_filter,
        each.operation,
        each.permission_type,
    )


def create_acls(broker: View, ctx: Context, request: CreateAclsRequest) -> Decision:
    """Make the valid ones.

    Errors, of each ACL: SECURITY_DISABLED, INVALID_REQUEST. Of all: UNKNOWN_SERVER_ERROR, as in Kafka, for an ANY or
    MATCH, which only filters have.
    """
    for each in request.creations:
        if _closes(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type):
            return Decision(close=True)
    if not is_authorizer_set(broker.config):
        return Decision(_refused(ctx, request))
    if any(
        ANY in (each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
        or each.resource_pattern_type == MATCH
        for each in request.creations
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    known = set(broker.metadata.acls.by_id.values())
    records: list[bytes] = []
    results = []
    for each in request.creations:
        result = AclCreationResult(error_message="")
        results.append(result)
        if fault := _fault(each) or (fault_of(each.host) if are_known(broker.config) else ""):
            result.error_code, result.error_message = ErrorCode.INVALID_REQUEST, fault
            continue
        acl = Acl(
            each.resource_type,
            each.resource_name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        if acl not in known:
            known.add(acl)
            records.append(acl_record(ctx.rng.uuid_bytes(), acl))
    return after_metadata(broker, CreateAclsResponse(results=results), records)


def _fault(each: AclCreation) -> str:
    """What is wrong with an ACL; "" if nothing is."""
    if each.resource_type == CLUSTER and each.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not each.resource_name:
        return "Invalid empty resource name"
    if each.resource_type not in RESOURCE_TYPES:
        return "Invalid resourceType UNKNOWN"
    if each.resource_pattern_type not in PATTERNS:
        return "Invalid patternType UNKNOWN"
    if each.operation not in OPERATIONS:
        return "Invalid operation UNKNOWN"
    if each.permission_type not in PERMISSIONS:
        return "Invalid permissionType UNKNOWN"
    if ":" not in each.principal:
        return (
            f"Could not parse principal from `{each.principal:.249}` (no colon is present separating the principal type"
            " from the principal name)"
        )
    return ""


def delete_acls(broker: View, ctx: Context, request: DeleteAclsRequest) -> Decision:
    """Delete what the filters match.

    Errors, of each filter: SECURITY_DISABLED, INVALID_REQUEST; of all: INVALID_REQUEST, for too many ACLs.
    """
    for each in request.filters:
        if _closes(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type):
            return Decision(close=True)
    if not is_authorizer_set(broker.config):
        return Decision(_refused(ctx, request))
    doomed: set[bytes] = set()
    results = []
    for each in request.filters:
        if fault := _filter_fault(each):
            results.append(
                DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=fault, matching_acls=[])
            )
            continue
        wanted = _filter(each)
        found = [(acl_id, acl) for acl_id, acl in broker.metadata.acls.by_id.items() if wanted.matches(acl)]
        doomed.update(acl_id for acl_id, _ in found)
        matching = [DeleteAclsMatchingAcl(error_message=None, **acl._asdict()) for _, acl in found]
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=matching))
    if len(doomed) > MOST_DELETED:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Cannot remove more than {MOST_DELETED} acls in a single delete operation."
        )
    records = [encode_record(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in doomed]
    return after_metadata(broker, DeleteAclsResponse(filter_results=results), records)


def _filter_fault(each: Any) -> str:
    """What is wrong with a filter of DeleteAcls; "" if nothing is."""
    if each.resource_type_filter not in RESOURCE_TYPES or each.pattern_type_filter not in PATTERNS:
        return "Unknown patternFilter."
    if each.operation not in OPERATIONS or each.permission_type not in PERMISSIONS:
        return "Unknown entryFilter."
    return ""


def _closes(*kinds: int) -> bool:
    """Whether one of the kinds is UNKNOWN: the connection is then closed without a reply."""
    return UNKNOWN in kinds


def _refused(ctx: Context, request: Message) -> Message:
    return error_response(request, ctx.api_version, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
