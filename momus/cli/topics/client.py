"""A client that changes topics. Only where use_packages() has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from momus.client.kafka_client import TOPIC_RESOURCE, Client, Row
from momus.client.kafka_client import _outcome as outcome

SET, DELETE = 0, 1  # operations of IncrementalAlterConfigs


class TopicClient(Client):
    """A client for `momus topic alter`."""

    def grow(self, topics: Sequence[str], partitions: int, *, dry_run: bool) -> list[Row]:
        """Raise the number of partitions; one row a topic, `error` None when it was done."""
        from protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic

        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=partitions, assignments=None) for name in topics],
            timeout_ms=int(self._timeout_s * 1000),
            validate_only=dry_run,
        )
        answer = self._call(self._controller(), request)
        return [outcome(each.name, each.error_code, each.error_message) for each in answer.results]

    def alter_configs(
        self, topics: Sequence[str], configs: Mapping[str, str], unset: Sequence[str], *, dry_run: bool
    ) -> list[Row]:
        """Set some settings and give others their default again; one row a topic, `error` None when it was done."""
        from protocol.messages.configs import (
            IncrementalAlterConfigsRequest,
            IncrementalAlterConfigsRequestAlterableConfig,
            IncrementalAlterConfigsRequestAlterConfigsResource,
        )

        changes = [(key, SET, value) for key, value in configs.items()] + [(key, DELETE, None) for key in unset]
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=name,
                    configs=[
                        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=what, value=value)
                        for key, what, value in changes
                    ],
                )
                for name in topics
            ],
            validate_only=dry_run,
        )
        answer = self._call(self._controller(), request)
        return [outcome(each.resource_name, each.error_code, each.error_message) for each in answer.responses]
