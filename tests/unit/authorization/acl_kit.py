"""A cluster with an authorizer, clients of its users, and the ACLs that are made for them."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World
from core_requests import produce_request

from broker.cluster.acls import TOPIC
from broker.config.authorizer_setting import CLASS
from protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)

ALLOW, DENY = 3, 2
ANY = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "operation": 1,
    "principal_filter": None,
    "host_filter": None,
}


def acl(
    operation: int, name: str = "t", kind: int = TOPIC, pattern: int = 3, permission: int = ALLOW, **more: str
) -> AclCreation:
    given = {"principal": "User:alice", "host": "*", **more}
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        operation=operation,
        permission_type=permission,
        **given,
    )


class Clients:
    """A world with an authorizer; a client of each user."""

    def __init__(self, **settings: str) -> None:
        self.world = World("os", authorizer_class_name=CLASS, super_users="User:root;User:admin", **settings)
        self.admin, self.alice = self.of("User:admin"), self.of("User:alice")

    def of(self, principal: str) -> Client:
        client = Client(self.world)
        client.connection.principal = principal
        return client

    def make(self, *wanted: AclCreation) -> list[int]:
        return [each.error_code for each in self.admin.call(CreateAclsRequest(creations=list(wanted))).results]

    def drop(self, **changes: Any) -> int:
        wanted = DeleteAclsFilter(**{**ANY, "permission_type": 1, **changes})
        return len(self.admin.call(DeleteAclsRequest(filters=[wanted])).filter_results[0].matching_acls)


def code_of_produce(client: Client, version: int = 9) -> int:
    return client.call(produce_request("t", 0, b"x"), version).responses[0].partition_responses[0].error_code
