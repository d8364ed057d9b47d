"""ACLs and delegation tokens: refused as Kafka refuses them without an authorizer and without authentication."""

from __future__ import annotations

import pytest
from core_broker import Client, World

from broker.config.authorizer_setting import CLASS
from protocol.errors import ErrorCode
from protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

DISABLED = ErrorCode.SECURITY_DISABLED
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
FILTER = {"resource_type_filter": 2, "resource_name_filter": "t", "operation": 1, "permission_type": 1}
ACL = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


@pytest.fixture
def client() -> Client:
    return Client(World("memory"))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_refused(client, version):
    described = client.call(DescribeAclsRequest(**FILTER), version)
    assert (described.error_code, described.resources) == (DISABLED, [])
    assert described.error_message == "No Authorizer is configured on the broker"
    created = client.call(CreateAclsRequest(creations=[AclCreation(**ACL)] * 2), version)
    assert [(each.error_code, each.error_message) for each in created.results] == [
        (DISABLED, "No Authorizer is configured.")
    ] * 2
    deleted = client.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**FILTER)] * 2), version)
    assert [(each.error_code, each.error_message, each.matching_acls) for each in deleted.filter_results] == [
        (DISABLED, "No Authorizer is configured.", [])
    ] * 2


@pytest.mark.parametrize(
    "request_",
    [
        DescribeAclsRequest(**{**FILTER, "resource_type_filter": 0}),
        DescribeAclsRequest(**FILTER, pattern_type_filter=0),
        CreateAclsRequest(creations=[AclCreation(**ACL), AclCreation(**{**ACL, "operation": 0})]),
        DeleteAclsRequest(filters=[DeleteAclsFilter(**{**FILTER, "permission_type": 0})]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_acls_of_an_unknown_kind_end_the_connection(client, request_):
    client.send(request_, 3)
    client.world.run()
    assert client.closed
    assert Client(client.world).call(ApiVersionsRequest(), 0).error_code == 0


@pytest.fixture
def admin() -> Client:
    return Client(World("memory", authorizer_class_name=CLASS, super_users="User:ANONYMOUS"))


@pytest.mark.parametrize("number", [-1, 16, 99])
@pytest.mark.parametrize(
    ("field", "named", "what"),
    [
        ("resource_type", "resourceType", "patternFilter"),
        ("resource_pattern_type", "patternType", "patternFilter"),
        ("operation", "operation", "entryFilter"),
        ("permission_type", "permissionType", "entryFilter"),
    ],
)
def test_acls_of_a_number_that_is_not_known_are_refused_and_not_made(admin, field, named, what, number):
    answer = admin.call(CreateAclsRequest(creations=[AclCreation(**{**ACL, field: number}), AclCreation(**ACL)]))
    assert [(each.error_code, each.error_message) for each in answer.results] == [
        (ErrorCode.INVALID_REQUEST, f"Invalid {named} UNKNOWN"),
        (0, ""),
    ]
    assert len(admin.world.broker.metadata.acls) == 1
    field = {"resource_type": "resource_type_filter", "resource_pattern_type": "pattern_type_filter"}.get(field, field)
    deleted = admin.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**{**FILTER, field: number})]))
    assert [(each.error_code, each.error_message) for each in deleted.filter_results] == [
        (ErrorCode.INVALID_REQUEST, f"Unknown {what}.")
    ]
    assert admin.call(DescribeAclsRequest(**{**FILTER, field: number})).resources == []


@pytest.mark.parametrize(
    ("field", "number"),
    [
        ("resource_type", 1),
        ("resource_pattern_type", 1),
        ("resource_pattern_type", 2),
        ("operation", 1),
        ("permission_type", 1),
    ],
)
def test_acl_with_what_only_filters_have_fails_the_whole_request(admin, field, number):
    answer = admin.call(CreateAclsRequest(creations=[AclCreation(**ACL), AclCreation(**{**ACL, field: number})]))
    assert [each.error_code for each in answer.results] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert len(admin.world.broker.metadata.acls) == 0


@pytest.mark.parametrize("version", [1, 2, 3])
def test_delegation_tokens_are_refused(client, version):
    owner = {"owner_principal_type": "User", "owner_principal_name": "a"} if version >= 3 else {}
    created = client.call(CreateDelegationTokenRequest(**owner), version)
    assert (created.error_code, created.token_id, created.hmac) == (NOT_ALLOWED, "", b"")
    assert (created.principal_type, created.principal_name) == ("User", "a" if version >= 3 else "ANONYMOUS")
    assert (created.issue_timestamp_ms, created.expiry_timestamp_ms, created.max_timestamp_ms) == (-1, -1, -1)
    if version >= 3:
        requester = created.token_requester_principal_type, created.token_requester_principal_name
        assert requester == ("User", "ANONYMOUS")
    described = client.call(DescribeDelegationTokenRequest(owners=None), version)
    assert (described.error_code, described.tokens) == (NOT_ALLOWED, [])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("request_", [RenewDelegationTokenRequest(hmac=b"x"), ExpireDelegationTokenRequest(hmac=b"x")])
def test_delegation_tokens_are_neither_renewed_nor_expired(client, version, request_):
    answer = client.call(request_, version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
