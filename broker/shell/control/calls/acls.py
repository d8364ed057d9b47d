"""Handlers of ACLs, in the words of kafka-acls: they ask the broker as any client would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.asks import acls
from broker.authorization.access import OPERATION_NAMES
from broker.config.authorizer_setting import is_authorizer_set
from broker.shell.asking import ask
from broker.shell.control.calls.records import check_answer
from broker.shell.control.routes import Call, RefusedError
from protocol.messages.acls import AclCreation, DeleteAclsFilter

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

OPERATIONS: Final = {name.lower(): number for number, name in enumerate(OPERATION_NAMES) if number > 1}
RESOURCES: Final = {"topic": 2, "group": 3, "cluster": 4, "transactional_id": 5, "delegation_token": 6, "user": 7}
PATTERNS: Final = {"literal": 3, "prefixed": 4}
PERMISSIONS: Final = {"deny": 2, "allow": 3}


def _number(words: dict[str, int], what: str, text: str) -> int:
    if text.lower().replace("-", "_") not in words:
        raise RefusedError(400, f'"{what}" takes one of {", ".join(words)}, not {text:.40}')
    return words[text.lower().replace("-", "_")]


def _filter(words: dict[str, int], what: str, given: dict[str, str]) -> int:
    return _number(words, what, given[what]) if what in given else acls.ANY_KIND


def _word(words: dict[str, int], number: int) -> str:
    return next((word for word, each in words.items() if each == number), str(number))


class AclRow(TypedDict):
    """An ACL in the words of kafka-acls."""

    principal: str
    operation: str
    resource: str
    name: str
    pattern: str
    permission: str
    host: str


class RemovedAcls(TypedDict):
    """How many ACLs were removed."""

    removed: int


async def list_acls(cluster: ClusterServer, call: Call) -> list[AclRow]:
    """All ACLs; none where there is no authorizer."""
    if not is_authorizer_set(cluster.config):
        return []
    return [
        {
            "principal": acl.principal,
            "operation": _word(OPERATIONS, acl.operation),
            "resource": _word(RESOURCES, resource.resource_type),
            "name": resource.resource_name,
            "pattern": _word(PATTERNS, resource.pattern_type),
            "permission": _word(PERMISSIONS, acl.permission_type),
            "host": acl.host,
        }
        for resource in await ask(cluster, acls.describe())
        for acl in resource.acls
    ]


async def add_acls(cluster: ClusterServer, call: Call) -> list[AclRow]:
    """Make ACLs; all there are is answered. Errors: RefusedError."""
    creations = [
        AclCreation(
            resource_type=_number(RESOURCES, "resource", each["resource"]),
            resource_name=each["name"],
            resource_pattern_type=_number(PATTERNS, "pattern", each.get("pattern", "literal")),
            principal=each["principal"],
            host=each.get("host", "*"),
            operation=_number(OPERATIONS, "operation", each["operation"]),
            permission_type=_number(PERMISSIONS, "permission", each.get("permission", "allow")),
        )
        for each in call.body["acls"]
    ]
    for result in await ask(cluster, acls.create(creations)):
        check_answer(result.error_code, "ACL", result.error_message)
    return await list_acls(cluster, call)


async def remove_acls(cluster: ClusterServer, call: Call) -> RemovedAcls:
    """Remove ACLs. Errors: RefusedError."""
    body = call.query
    wanted = DeleteAclsFilter(
        resource_type_filter=_filter(RESOURCES, "resource", body),
        resource_name_filter=body.get("name"),
        pattern_type_filter=_filter(PATTERNS, "pattern", body),
        principal_filter=body.get("principal"),
        host_filter=body.get("host"),
        operation=_filter(OPERATIONS, "operation", body),
        permission_type=_filter(PERMISSIONS, "permission", body),
    )
    (result,) = await ask(cluster, acls.delete([wanted]))
    check_answer(result.error_code, "ACLs", result.error_message)
    return {"removed": len(result.matching_acls)}
