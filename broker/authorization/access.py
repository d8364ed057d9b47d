"""What one request may do: asks the authorizer, logs denials in its words, and remembers the first for the journal."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from broker.authorization.authorizer import OPERATIONS
from broker.cluster.acls import CLUSTER, CLUSTER_NAME, GROUP, TOPIC, TRANSACTIONAL_ID, Acl
from protocol.api import api_label
from protocol.errors import ErrorCode, KafkaError
from protocol.shown import shown

if TYPE_CHECKING:
    from broker.authorization.authorizer import Authorizer
    from broker.base.context import Context

logger = logging.getLogger("momus.authorizer")

OPERATION_NAMES: Final = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
RESOURCE_NAMES: Final = {
    TOPIC: "Topic",
    GROUP: "Group",
    CLUSTER: "Cluster",
    TRANSACTIONAL_ID: "TransactionalId",
    6: "DelegationToken",
    7: "User",
}
_TYPE_WORDS: Final = {TOPIC: "TOPIC", GROUP: "GROUP", CLUSTER: "CLUSTER", TRANSACTIONAL_ID: "TRANSACTIONAL_ID"}
_PATTERNS: Final = {3: "LITERAL", 4: "PREFIXED"}
_PERMISSIONS: Final = {2: "DENY", 3: "ALLOW"}
FAILED: Final = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Access:
    """The questions of one request."""

    __slots__ = ("_authorizer", "_ctx", "_host", "closes", "principal", "why")

    def __init__(self, authorizer: Authorizer, ctx: Context) -> None:
        self._authorizer = authorizer
        self._ctx = ctx
        self._host = ctx.client_host.removeprefix("/")
        self.principal: str = ctx.connection.principal
        self.why: str | None = None  # the first refusal, in words
        self.closes = False  # a part of a request that has no reply is refused

    def may(self, operation: int, resource_type: int, name: str, *, count: int = 1, log: bool = True) -> bool:
        """Whether an operation is allowed. `count`: how often the request names the resource."""
        allowed, rule = self._authorizer.decide(self.principal, self._host, operation, resource_type, name)
        if not allowed and log:
            self._tell(operation, resource_type, name, count, rule)
        return allowed

    def may_cluster(self, operation: int, *, log: bool = True) -> bool:
        """Whether an operation on the cluster is allowed."""
        return self.may(operation, CLUSTER, CLUSTER_NAME, log=log)

    def may_any(self, operation: int, resource_type: int) -> bool:
        """Whether there may be a resource with which an operation is allowed."""
        return self._authorizer.may_any(self.principal, self._host, operation, resource_type)

    def need(self, operation: int, resource_type: int, name: str) -> None:
        """Refuse the whole request unless an operation is allowed. Errors: TOPIC_AUTHORIZATION_FAILED and its like."""
        if not self.may(operation, resource_type, name):
            raise KafkaError(FAILED[resource_type], self.why)

    def need_cluster(self, operation: int) -> None:
        """The same for the cluster."""
        self.need(operation, CLUSTER, CLUSTER_NAME)

    def allowed(self, operation: int, resource_type: int, names: Iterable[str], *, log: bool = True) -> set[str]:
        """The names with which an operation is allowed."""
        counts: dict[str, int] = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        return {
            name for name, count in counts.items() if self.may(operation, resource_type, name, count=count, log=log)
        }

    def operations(self, resource_type: int, name: str) -> int:
        """What is allowed with a resource, as Kafka's bit field."""
        return sum(1 << each for each in OPERATIONS[resource_type] if self.may(each, resource_type, name, log=False))

    def _tell(self, operation: int, resource_type: int, name: str, count: int, rule: Acl | str) -> None:
        text = (
            f"Principal = {self.principal} is Denied operation = {OPERATION_NAMES[operation]} from host = {self._host}"
            f" on resource = {RESOURCE_NAMES[resource_type]}:LITERAL:{shown(name[:249])} for request ="
            f" {api_label(self._ctx.api_key)} with resourceRefCount = {count} based on rule {_rule(rule)}"
        )
        logger.info("%s", text)
        self.why = self.why or text


def _rule(rule: Acl | str) -> str:
    if isinstance(rule, str):
        return rule
    kind, operation = _TYPE_WORDS.get(rule.resource_type, rule.resource_type), OPERATION_NAMES[rule.operation]
    return (
        f"MatchingAcl(acl=StandardAcl[resourceType={kind}, resourceName={rule.resource_name},"
        f" patternType={_PATTERNS[rule.pattern_type]}, principal={rule.principal}, host={rule.host},"
        f" operation={operation}, permissionType={_PERMISSIONS[rule.permission_type]}])"
    )
