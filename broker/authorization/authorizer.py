"""Decides as Kafka's StandardAuthorizer does.

    the principal is a super user                       allowed
    an ACL denies the operation, or all operations      denied
    an ACL allows it, all operations, or one that
      implies it                                        allowed
    there is an ACL about the resource, of anybody      denied
    else                                                allow.everyone.if.no.acl.found

ACLs are those about the resource: of its name, of a prefix of it, or of "*"; for the principal or User:*, from its host
or "*". READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS implies DESCRIBE_CONFIGS, if they are allowed.

Source: KIP-11, KIP-290, KIP-801; Kafka's StandardAuthorizerData.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.cluster.acls import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WILDCARD,
    WRITE,
    Acl,
)
from broker.cluster.host_ranges import are_known
from broker.config.config_values import ConfigError
from broker.security.principals import INTERNAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cluster.acls import Acls
    from broker.config.settings import BrokerConfig


OPERATIONS: Final = {  # by resource type: those there are
    TOPIC: (READ, WRITE, CREATE, DESCRIBE, DELETE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    GROUP: (READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    CLUSTER: (CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALTER, DESCRIBE),
}
_IMPLIED_BY: Final = {
    DESCRIBE: (DESCRIBE, READ, WRITE, DELETE, ALTER),
    DESCRIBE_CONFIGS: (DESCRIBE_CONFIGS, ALTER_CONFIGS),
}


class Authorizer:
    """The authorizer of one cluster. Errors: ConfigError."""

    def __init__(self, config: BrokerConfig, acls: Callable[[], Acls]) -> None:
        self._acls = acls
        self._with_ranges = are_known(config)
        texts = config.unknown
        self._super_users = frozenset(filter(None, (user.strip() for user in texts.get("super.users", "").split(";"))))
        for user in self._super_users:
            if ":" not in user:
                raise ConfigError("super.users", user, "is not TYPE:NAME, as User:admin; users are separated by ;")
        default = texts.get("allow.everyone.if.no.acl.found", "").strip().lower()
        if default not in ("", "true", "false"):
            raise ConfigError("allow.everyone.if.no.acl.found", default, "Expected value to be either true or false")
        self._default = default == "true"

    def decide(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> tuple[bool, Acl | str]:
        """Whether the operation is allowed, and the rule that decided."""
        if principal in self._super_users or principal is INTERNAL:
            return True, "SuperUser"
        allowed: Acl | None = None
        is_known = False
        implied_by = _IMPLIED_BY.get(operation, (operation,))
        for acl in self._acls().about(resource_type, name):
            is_known = True
            if not acl.concerns(principal, host, with_ranges=self._with_ranges):
                continue
            if acl.permission_type == DENY:
                if acl.operation in (operation, ALL):
                    return False, acl
            elif acl.operation == ALL or acl.operation in implied_by:
                allowed = acl
        if allowed is not None:
            return True, allowed
        if is_known or not self._default:
            return False, "DefaultDeny"
        return True, "DefaultAllow"

    def may_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether there may be a resource of this type with which the operation is allowed (KIP-679).

        Source: Kafka's Authorizer.authorizeByResourceType. Operations that imply this one do not count.
        """
        if self.decide(principal, host, operation, resource_type, "hardcode")[0]:
            return True
        found = [
            acl
            for acl in self._acls().by_id.values()
            if acl.resource_type == resource_type
            and acl.concerns(principal, host, with_ranges=self._with_ranges)
            and acl.operation in (operation, ALL)
        ]
        denied = {(acl.pattern_type, acl.resource_name) for acl in found if acl.permission_type == DENY}
        if (LITERAL, WILDCARD) in denied:
            return False
        return any(acl.permission_type == ALLOW and not _is_dominated(acl, denied) for acl in found)


def _is_dominated(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Whether what an ACL allows is denied by another one, for all names."""
    name = acl.resource_name
    if (acl.pattern_type, acl.resource_name) in denied and acl.pattern_type == LITERAL:
        return True
    if acl.pattern_type == LITERAL and name == WILDCARD:
        return False
    return any((PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
