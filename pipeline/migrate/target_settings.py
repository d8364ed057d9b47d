"""Writes what the target has beside topics, and reads it back: share groups' offsets, group settings, ACLs, quotas.

It speaks Kafka's protocol with the command line's client: no client of Python's knows all of these requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeVar

from momus.client.kafka_client import Client, RequestFailedError, acls, configs, groups, quotas
from pipeline.errors import PipelineError
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.acls import AclCreation

if TYPE_CHECKING:
    from pipeline.migrate.settings import Acl, Quota

AT_ONCE: Final = 500  # entries of a request

_Row = TypeVar("_Row")
Starts = Mapping[tuple[str, int], int]  # (topic, partition) -> start offset


class TargetSettings(Client):
    """A client of the target for its settings. Errors, of every method that sets: PipelineError: it is refused."""

    def offers_share_groups(self) -> bool:
        """Whether start offsets of share groups can be set."""
        return self.offers(ApiKey.ALTER_SHARE_GROUP_OFFSETS)

    def with_members(self) -> set[str]:
        """The groups that have members."""
        return {row["group"] for row in self.groups() if row["state"] not in (None, "Empty", "Dead")}

    def set_share_offsets(self, group: str, starts: Starts) -> None:
        """Set the start offsets of a share group without members."""
        try:
            self.ask(groups.move_share_group(group, starts))
        except RequestFailedError as error:
            raise PipelineError(f"share group {group} cannot be set: {error}") from None

    def share_starts(self, group: str, starts: Starts) -> dict[tuple[str, int], int]:
        """The start offsets of a share group on these partitions."""
        rows = self.ask(groups.share_offsets(group))
        found = {(row["topic"], row["partition"]): row["committed"] for row in rows}
        return {place: offset for place, offset in found.items() if place in starts}

    def set_group_settings(self, groups: Mapping[str, Mapping[str, str]], *, only_check: bool = False) -> None:
        """Set settings of groups."""
        for some in _pieces(sorted(groups.items())):
            for each in self.ask(configs.alter(configs.GROUP, dict(some), only_check=only_check)):
                _check(f"group {each.resource_name} cannot be configured", each.error_code, each.error_message)

    def group_settings(self, groups: Iterable[str]) -> dict[str, dict[str, str | None]]:
        """The settings made on these groups themselves."""
        found = {}
        for some in _pieces(sorted(groups)):
            for answer in self.ask(configs.describe(configs.GROUP, some)):
                _check(f"group {answer.resource_name}", answer.error_code, answer.error_message)
                found[answer.resource_name] = {
                    each.name: each.value for each in answer.configs if each.config_source == configs.OF_GROUP
                }
        return found

    def add_acls(self, rules: Sequence[Acl]) -> None:
        """Add access rules to those that are there."""
        for some in _pieces(rules):
            creations = [AclCreation(resource_pattern_type=each.pattern_type, **_rest(each)) for each in some]
            for rule, made in zip(some, self.ask(acls.create(creations)), strict=True):
                _check(f"the ACL {tuple(rule)} cannot be made", made.error_code, made.error_message)

    def has_authorizer(self) -> bool:
        """Whether the target keeps access rules. Errors: PipelineError: it does not say."""
        try:
            self.ask(acls.describe())
        except RequestFailedError as error:
            if error.code == ErrorCode.SECURITY_DISABLED:
                return False
            raise PipelineError(f"the target's ACLs cannot be read: {error}") from None
        return True

    def acls(self) -> set[tuple[Any, ...]]:
        """All access rules, each as a tuple of an Acl."""
        return {
            (
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
            for resource in self.ask(acls.describe())
            for each in resource.acls
        }

    def set_quotas(self, wanted: Sequence[Quota], *, only_check: bool = False) -> None:
        """Set client quotas."""
        for some in _pieces([list(each) for _, each in groupby(wanted, key=lambda quota: quota.entity)]):
            changes = [(of_one[0].entity, {each.key: each.value for each in of_one}) for of_one in some]
            for made in self.ask(quotas.alter(changes, only_check=only_check)):
                named = ", ".join(f"{each.entity_type} {each.entity_name or 'default'}" for each in made.entity)
                _check(f"the quotas of {named} cannot be set", made.error_code, made.error_message)

    def quotas(self) -> dict[tuple[Any, str], float]:
        """All client quotas: (entity, key) -> value."""
        try:
            entries = self.ask(quotas.describe())
        except RequestFailedError as error:
            raise PipelineError(f"the target's quotas cannot be read: {error}") from None
        return {
            (tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity)), value.key): value.value
            for entry in entries
            for value in entry.values
        }


def _rest(rule: Acl) -> dict[str, Any]:
    return {name: value for name, value in rule._asdict().items() if name != "pattern_type"}


def _pieces(rows: Sequence[_Row]) -> Iterable[Sequence[_Row]]:
    return (rows[at : at + AT_ONCE] for at in range(0, len(rows), AT_ONCE))


def _check(what: str, code: int, message: str | None) -> None:
    if code:
        raise PipelineError(str(RequestFailedError(what, code, message)))
