"""The state of a broker before a random request under ACLs, and what of the answer is about authorization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from protocol.declare import Message
from protocol.messages import acls, cluster, topics

TOPICS = ("orders", "order-items", "logs", "o")
# topic, group and the others; all denials there are
DENIALS = {29, 30, 31, 53, 65}
SHOWN = ("name", "topic", "group_id", "key", "transactional_id", "topic_name", "resource_name")
OPERATIONS = ("authorized_operations", "topic_authorized_operations", "cluster_authorized_operations")
FIELDS = (
    "resource_type",
    "resource_name",
    "resource_pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


class Ids(NamedTuple):
    """The ids of the topics on one broker."""

    by_name: dict[str, bytes]


def summary(response: Message) -> str:
    """Every denial and every allowed operation in a response, with the names that it shows."""
    found: list[str] = []
    _collect(response, "", found)
    return " ".join(sorted(found))


def _collect(message: Any, name: str, found: list[str]) -> None:
    for field in SHOWN:
        if isinstance(value := getattr(message, field, None), str):
            name = value
            break
    if name.startswith("__"):  # whether an internal topic is made already is another matter
        return
    code = getattr(message, "error_code", getattr(message, "partition_error_code", None))
    if name:
        found.append(name)
    if code in DENIALS:
        found.append(f"{name}:{code}")
    if getattr(message, "topic_config_error_code", 0):
        found.append(f"{name}:hidden")
    if type(message) is cluster.DescribeTopicPartitionsResponseCursor:
        found.append(f"{name}:next")
    if not code:
        found.extend(
            f"{name}={getattr(message, each)}" for each in OPERATIONS if getattr(message, each, None) is not None
        )
    for field in message.FIELDS:
        value = getattr(message, field.name)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Message) and not type(inner).__name__.startswith(
                ("DescribeConfigsResourceResult", "MetadataResponseBroker", "CreatableTopicConfigs")
            ):
                _collect(inner, name, found)


# -- the state of a broker before a case


def prepare(call: Callable[[Message, int], Any]) -> Ids:
    """Make the topics and groups, as the super user. Answers the topics' ids."""
    wanted = [topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
    made = call(topics.CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 7)
    assert not any(each.error_code for each in made.topics), made
    return Ids({each.name: each.topic_id for each in made.topics})


def replace_acls(call: Callable[[Message, int], Any], wanted: list[acls.AclCreation]) -> None:
    """Set the ACLs to these, and wait until the authorizer has them."""
    everything = acls.DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    call(acls.DeleteAclsRequest(filters=[everything]), 2)
    answer = call(acls.CreateAclsRequest(creations=wanted), 2)
    assert not any(each.error_code for each in answer.results), answer
    there = {tuple(getattr(acl, field) for field in FIELDS) for acl in wanted}
    shown = acls.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    for _ in range(10_000):
        resources = call(shown, 2).resources
        if {
            (r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
            for r in resources
            for a in r.acls
        } == there:
            return
    raise TimeoutError("the ACLs do not arrive")
