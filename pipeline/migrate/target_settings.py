"""Writes what the target has beside topics, and reads it back: share groups' offsets, group settings, ACLs, quotas.

It speaks Kafka's protocol with the command line's client: no client of Python's knows all of these requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeVar

from momus.client.kafka_client import Client, RequestFailedError
from pipeline.errors import PipelineError
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import acls, configs, quotas, share_offsets

if TYPE_CHECKING:
    from pipeline.migrate.settings import Acl, Quota

_GROUP: Final = 32  # a resource type
_SET: Final = 0  # an operation
_ANY: Final = 1  # of ACL filters
_EXACT: Final = 0  # of quota filters
_GROUP_CONFIG: Final = 8  # ConfigSource: set on the group itself
AT_ONCE: Final = 500  # entries of a request

_Row = TypeVar("_Row")
Starts = Mapping[tuple[str, int], int]  # (topic, partition) -> start offset


class TargetSettings(Client):
    """A client of the target for its settings. Errors, of every method that sets: PipelineError: it is refused."""

    def offers_share_groups(self) -> bool:
        """Whether start offsets of share groups can be set."""
        return ApiKey.ALTER_SHARE_GROUP_OFFSETS in self._connections[None]._versions

    def with_members(self) -> set[str]:
        """The groups that have members."""
        return {row["group"] for row in self.groups() if row["state"] not in (None, "Empty", "Dead")}

    def set_share_offsets(self, group: str, starts: Starts) -> None:
        """Set the start offsets of a share group without members."""
        wanted = [
            share_offsets.AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=[
                    share_offsets.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                    for (name, index), offset in starts.items()
                    if name == topic
                ],
            )
            for topic in sorted({topic for topic, _ in starts})
        ]
        request = share_offsets.AlterShareGroupOffsetsRequest(group_id=group, topics=wanted)
        answer = self._call(self._coordinator(group), request)
        what = f"share group {group} cannot be set"
        _check(what, answer.error_code, answer.error_message)
        for topic in answer.responses:
            for each in topic.partitions:
                _check(f"{what} on {topic.topic_name}-{each.partition_index}", each.error_code, each.error_message)

    def share_starts(self, group: str, starts: Starts) -> dict[tuple[str, int], int]:
        """The start offsets of a share group on these partitions."""
        topics = [
            share_offsets.DescribeShareGroupOffsetsRequestTopic(
                topic_name=topic, partitions=[index for name, index in starts if name == topic]
            )
            for topic in sorted({topic for topic, _ in starts})
        ]
        wanted = share_offsets.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
        request = share_offsets.DescribeShareGroupOffsetsRequest(groups=[wanted])
        [found] = self._call(self._coordinator(group), request).groups
        _check(f"share group {group} cannot be read", found.error_code, found.error_message)
        return {
            (topic.topic_name, each.partition_index): each.start_offset
            for topic in found.topics
            for each in topic.partitions
        }

    def set_group_settings(self, groups: Mapping[str, Mapping[str, str]], *, only_check: bool = False) -> None:
        """Set settings of groups."""
        for some in _pieces(sorted(groups.items())):
            resources = [
                configs.IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=_GROUP,
                    resource_name=group,
                    configs=[
                        configs.IncrementalAlterConfigsRequestAlterableConfig(
                            name=name, config_operation=_SET, value=text
                        )
                        for name, text in settings.items()
                    ],
                )
                for group, settings in some
            ]
            request = configs.IncrementalAlterConfigsRequest(resources=resources, validate_only=only_check)
            for each in self._call(self._controller(), request).responses:
                _check(f"group {each.resource_name} cannot be configured", each.error_code, each.error_message)

    def group_settings(self, groups: Iterable[str]) -> dict[str, dict[str, str | None]]:
        """The settings made on these groups themselves."""
        found = {}
        for some in _pieces(sorted(groups)):
            resources = [
                configs.DescribeConfigsResource(resource_type=_GROUP, resource_name=name, configuration_keys=None)
                for name in some
            ]
            for answer in self._call(None, configs.DescribeConfigsRequest(resources=resources)).results:
                _check(f"group {answer.resource_name}", answer.error_code, answer.error_message)
                found[answer.resource_name] = {
                    each.name: each.value for each in answer.configs if each.config_source == _GROUP_CONFIG
                }
        return found

    def add_acls(self, rules: Sequence[Acl]) -> None:
        """Add access rules to those that are there."""
        for some in _pieces(rules):
            creations = [acls.AclCreation(resource_pattern_type=each.pattern_type, **_rest(each)) for each in some]
            answer = self._call(self._controller(), acls.CreateAclsRequest(creations=creations))
            for rule, made in zip(some, answer.results, strict=True):
                _check(f"the ACL {tuple(rule)} cannot be made", made.error_code, made.error_message)

    def has_authorizer(self) -> bool:
        """Whether the target keeps access rules. Errors: PipelineError: it does not say."""
        answer = self._acls()
        if answer.error_code == ErrorCode.SECURITY_DISABLED:
            return False
        _check("the target's ACLs cannot be read", answer.error_code, answer.error_message)
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
            for resource in self._acls().resources
            for each in resource.acls
        }

    def _acls(self) -> Any:
        request = acls.DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        return self._call(self._controller(), request)

    def set_quotas(self, wanted: Sequence[Quota], *, only_check: bool = False) -> None:
        """Set client quotas."""
        for some in _pieces([list(each) for _, each in groupby(wanted, key=lambda quota: quota.entity)]):
            entries = [
                quotas.AlterClientQuotasRequestEntryData(
                    entity=[quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in of_one[0].entity],
                    ops=[quotas.OpData(key=each.key, value=each.value, remove=False) for each in of_one],
                )
                for of_one in some
            ]
            request = quotas.AlterClientQuotasRequest(entries=entries, validate_only=only_check)
            for made in self._call(self._controller(), request).entries:
                named = ", ".join(f"{each.entity_type} {each.entity_name or 'default'}" for each in made.entity)
                _check(f"the quotas of {named} cannot be set", made.error_code, made.error_message)

    def quotas(self) -> dict[tuple[Any, str], float]:
        """All client quotas: (entity, key) -> value."""
        answer = self._call(self._controller(), quotas.DescribeClientQuotasRequest(components=[], strict=False))
        _check("the target's quotas cannot be read", answer.error_code, answer.error_message)
        return {
            (tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity)), value.key): value.value
            for entry in answer.entries or ()
            for value in entry.values
        }


def _rest(rule: Acl) -> dict[str, Any]:
    return {name: value for name, value in rule._asdict().items() if name != "pattern_type"}


def _pieces(rows: Sequence[_Row]) -> Iterable[Sequence[_Row]]:
    return (rows[at : at + AT_ONCE] for at in range(0, len(rows), AT_ONCE))


def _check(what: str, code: int, message: str | None) -> None:
    if code:
        raise PipelineError(str(RequestFailedError(what, code, message)))
