"""`kafka-acls --list | --add | --remove`."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.cluster.acls import (
    ALL,
    ALLOW,
    ANY,
    ANY_PATTERN,
    CLUSTER,
    CLUSTER_NAME,
    DELEGATION_TOKEN,
    DENY,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Acl,
)
from momus.cli.kafka_tools.options import Options, bootstrap_options, one_action, say, use_settings
from momus.client.kafka_client import Client, RequestFailedError, acls
from protocol.messages.acls import AclCreation, DeleteAclsFilter

ACTIONS = ("--list", "--add", "--remove")
_WORDS = "All Read Write Create Delete Alter Describe ClusterAction DescribeConfigs AlterConfigs IdempotentWrite"
OPERATIONS = dict(enumerate((*_WORDS.split(), "CreateTokens", "DescribeTokens", "TwoPhaseCommit"), ALL))
NUMBERS = {name.lower(): number for number, name in OPERATIONS.items()}
RESOURCES = {
    TOPIC: "TOPIC",
    GROUP: "GROUP",
    CLUSTER: "CLUSTER",
    TRANSACTIONAL_ID: "TRANSACTIONAL_ID",
    DELEGATION_TOKEN: "DELEGATION_TOKEN",
    USER: "USER",
}
PATTERNS = {"any": ANY_PATTERN, "match": MATCH, "literal": LITERAL, "prefixed": PREFIXED}
PATTERN_NAMES = {number: name.upper() for name, number in PATTERNS.items()}
OF_A_RESOURCE = {  # what may be given on each
    TOPIC: "Read Write Create Delete Alter Describe DescribeConfigs AlterConfigs All",
    GROUP: "Read Delete Describe DescribeConfigs AlterConfigs All",
    CLUSTER: "Create ClusterAction DescribeConfigs AlterConfigs IdempotentWrite Alter Describe All",
    TRANSACTIONAL_ID: "Describe Write TwoPhaseCommit All",
    DELEGATION_TOKEN: "Describe All",
    USER: "CreateTokens DescribeTokens All",
}


class _Resource(NamedTuple):
    """A pattern of resources, by Kafka's numbers."""

    kind: int
    name: str
    pattern: int

    def __str__(self) -> str:
        words = f"resourceType={RESOURCES.get(self.kind, self.kind)}, name={self.name}"
        return f"ResourcePattern({words}, patternType={PATTERN_NAMES.get(self.pattern, self.pattern)})"


def run(tool: str, words: Sequence[str]) -> None:
    """Do what the words say. Errors: OSError; ends the tool."""
    options = Options(tool)
    bootstrap_options(options)
    options.flags(*ACTIONS, "--cluster", "--consumer", "--producer", "--idempotent", "--force")
    options.repeated("--topic", "--group", "--transactional-id", "--delegation-token", "--user-principal")
    options.repeated(
        "--allow-principal", "--deny-principal", "--allow-host", "--deny-host", "--operation", "--principal"
    )
    options.text("--resource-pattern-type", default="literal")
    given = options.read(words)
    action = one_action(options, given, *ACTIONS)
    if given.bootstrap_server is None:
        options.error("One of --bootstrap-server or --bootstrap-controller must be specified")
    if given.resource_pattern_type.lower() not in PATTERNS:
        options.error(f"--resource-pattern-type is one of {', '.join(PATTERNS)}")
    resources = _resources(given)
    if action == "add":
        _check_addition(options, given)
    use_settings(options, [given.command_config])
    with Client(given.bootstrap_server) as client:
        try:
            if action == "list":
                _list(client, resources, given)
            elif action == "add":
                _add(client, _rules(options, given, resources))
            else:
                _remove(options, client, resources, given)
        except RequestFailedError as error:
            say(f"Error while executing ACL command: {error}")
            sys.exit(1)


def _resources(given: Namespace) -> list[_Resource]:
    pattern = PATTERNS[given.resource_pattern_type.lower()]
    named = {
        TOPIC: given.topic,
        GROUP: given.group,
        TRANSACTIONAL_ID: given.transactional_id,
        DELEGATION_TOKEN: given.delegation_token,
        USER: given.user_principal,
    }
    found = [_Resource(kind, name.strip(), pattern) for kind, names in named.items() for name in names]
    if given.cluster or given.idempotent:
        found.append(_Resource(CLUSTER, CLUSTER_NAME, LITERAL))
    return found


def _check_addition(options: Options, given: Namespace) -> None:
    """Errors: ends the tool."""
    if not given.allow_principal and not given.deny_principal:
        options.error("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    if not _resources(given):
        options.error("You must provide at least one resource: --topic <topic> or --cluster or --group <group>")
    for principal in (*given.allow_principal, *given.deny_principal):
        if ":" not in principal:
            options.error(f"expected a string in format principalType:principalName but got {principal}")
    if (given.producer or given.consumer) and (given.operation or given.deny_principal or given.deny_host):
        options.error("--producer and --consumer go without --operation, --deny-principal and --deny-host")
    if given.producer and not given.topic:
        options.error("With --producer you must specify a --topic")
    if given.consumer and not (given.topic and given.group):
        options.error(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option"
        )
    if given.resource_pattern_type.lower() in ("any", "match"):
        options.error("A '--resource-pattern-type' value of 'Any' or 'Match' is not valid when adding acls.")


def _operations(options: Options, given: Namespace, resource: _Resource) -> list[int]:
    """Which operations are meant on this resource. Errors: ends the tool."""
    if given.producer or given.consumer:
        found = set()
        if given.producer and resource.kind in (TOPIC, TRANSACTIONAL_ID):
            found |= {"Write", "Describe"} | ({"Create"} if resource.kind == TOPIC else set())
        if given.producer and given.idempotent and resource.kind == CLUSTER:
            found |= {"IdempotentWrite"}
        if given.consumer and resource.kind in (TOPIC, GROUP):
            found |= {"Read"} | ({"Describe"} if resource.kind == TOPIC else set())
        return sorted(NUMBERS[name.lower()] for name in found)
    wanted = [NUMBERS.get(name.lower().replace("_", ""), 0) for name in given.operation or ["All"]]
    possible = OF_A_RESOURCE[resource.kind].split()
    if any(number not in [NUMBERS[name.lower()] for name in possible] for number in wanted):
        names = ", ".join(map(_loud, possible))
        options.error(f"ResourceType {RESOURCES[resource.kind]} only supports operations [{names}]")
    return list(dict.fromkeys(wanted))


def _rules(options: Options, given: Namespace, resources: Iterable[_Resource]) -> list[Acl]:
    """The ACLs that the words mean. Errors: ends the tool."""
    sides = ((ALLOW, given.allow_principal, given.allow_host), (DENY, given.deny_principal, given.deny_host))
    return [
        Acl(*resource, principal.strip(), host, operation, permission)
        for resource in resources
        for operation in _operations(options, given, resource)
        for permission, principals, hosts in sides
        for principal in principals
        for host in hosts or ["*"]
    ]


def _by_resource(rules: Iterable[Acl]) -> dict[_Resource, list[Acl]]:
    found: dict[_Resource, list[Acl]] = {}
    for rule in rules:
        found.setdefault(_Resource(rule.resource_type, rule.resource_name, rule.pattern_type), []).append(rule)
    return found


def _loud(name: str) -> str:
    """IDEMPOTENT_WRITE of IdempotentWrite."""
    return re.sub("(?<!^)(?=[A-Z])", "_", name).upper()


def _line(rule: Acl) -> str:
    operation = _loud(OPERATIONS[rule.operation])
    permission = {ALLOW: "ALLOW", DENY: "DENY"}.get(rule.permission_type, rule.permission_type)
    return f"(principal={rule.principal}, host={rule.host}, operation={operation}, permissionType={permission})"


def _found(client: Client, resource: _Resource | None, principal: str | None = None) -> list[Acl]:
    """What is there, on a resource or all of them. Errors: RequestFailedError."""
    kind, name, pattern = resource or (ANY, None, ANY_PATTERN)
    found = client.ask(acls.describe(kind, name, pattern, principal))
    return [
        Acl(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        for each in found
        for rule in each.acls
    ]


def _list(client: Client, resources: Sequence[_Resource], given: Namespace) -> None:
    asked: list[_Resource | None] = [*resources] or [None]
    for principal in given.principal or [None]:
        if principal is not None:
            say(f"ACLs for principal `{principal}`")
        rules = [rule for resource in asked for rule in _found(client, resource, principal)]
        for resource, own in _by_resource(dict.fromkeys(rules)).items():
            say(f"Current ACLs for resource `{resource}`:")
            say(*(f"\t{_line(rule)}" for rule in own), "")


def _creation(rule: Acl) -> AclCreation:
    return AclCreation(
        resource_type=rule.resource_type,
        resource_name=rule.resource_name,
        resource_pattern_type=rule.pattern_type,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission_type,
    )


def _filter(
    kind: int, name: str, pattern: int, principal: str | None, host: str | None, operation: int, permission: int
) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter=host,
        operation=operation,
        permission_type=permission,
    )


def _add(client: Client, rules: Sequence[Acl]) -> None:
    """Add what is not there yet, and say it. Errors: RequestFailedError."""
    for resource, own in _by_resource(rules).items():
        there = set(_found(client, resource))
        for rule in own:
            if rule in there:
                say(f"Acl (pattern={resource}, entry={_line(rule)}) already exists.")
        new = [rule for rule in own if rule not in there]
        if not new:
            continue
        lines = [f"\t{_line(rule)}" for rule in new]
        say(f"Adding ACLs for resource `{resource}`: ", f" {lines[0]}", *lines[1:], "")
        for each in client.ask(acls.create([_creation(rule) for rule in new])):
            if each.error_code:
                raise RequestFailedError(f"ACLs of {resource}", each.error_code, each.error_message)


def _remove(options: Options, client: Client, resources: Sequence[_Resource], given: Namespace) -> None:
    """Remove the ACLs that are named, or all of the resources. Errors: RequestFailedError; ends the tool."""
    if not resources:
        options.error("You must provide at least one resource: --topic <topic> or --cluster or --group <group>")
    rules = _rules(options, given, resources)
    if not given.force:
        what = ", ".join(map(_line, rules)) or "all ACLs"
        where = ", ".join(f"`{resource}`" for resource in resources)
        say(f"Are you sure you want to remove {what} from {where}? (y/n)")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return
    filters = [_filter(*rule) for rule in rules] or [_filter(*resource, None, None, ANY, ANY) for resource in resources]
    for result in client.ask(acls.delete(filters)):
        if result.error_code:
            raise RequestFailedError("ACLs", result.error_code, result.error_message)
