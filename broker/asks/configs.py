"""Asks about the settings of topics, brokers and groups: read, set, given their default again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.asks.ask import ANY, Ask, Controller, Question, To
from protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

if TYPE_CHECKING:
    from protocol.messages.configs import (
        DescribeConfigsResponse,
        DescribeConfigsResult,
        IncrementalAlterConfigsResponse,
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    )

TOPIC, BROKER, GROUP = 2, 4, 32  # types of resources
OF_TOPIC, OF_GROUP = 1, 8  # sources: set on the topic, or the group, itself
SET, UNSET = 0, 1
VERSION, ALTER_VERSION = 4, 1
Changes = Mapping[str, "str | None"]  # None: its default again


def describe(
    kind: int, names: Iterable[str], keys: list[str] | None = None, to: To = ANY, *, with_synonyms: bool = False
) -> Ask[list[DescribeConfigsResult]]:
    """The settings of resources of one type, all or those named."""
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys) for name in names
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=with_synonyms)
    answer: DescribeConfigsResponse = yield Question(request, VERSION, to)
    return answer.results


def alter(
    kind: int, changes: Mapping[str, Changes], *, only_check: bool = False
) -> Ask[list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse]]:
    """Change settings, resource -> changes; a row each."""
    resources = [
        IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                IncrementalAlterConfigsRequestAlterableConfig(
                    name=key, config_operation=UNSET if value is None else SET, value=value
                )
                for key, value in settings.items()
            ],
        )
        for name, settings in changes.items()
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=only_check)
    answer: IncrementalAlterConfigsResponse = yield Question(request, ALTER_VERSION, Controller())
    return answer.responses
