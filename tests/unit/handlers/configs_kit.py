"""Requests about configs, and the numbers of resources and operations."""

from __future__ import annotations

from broker.handlers.configs import (
    describe_configs,
    incremental_alter_configs,
)
from protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(broker, kind, name, keys=None, version=4, synonyms=True, documentation=False):
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    (result,) = broker.call(describe_configs, request, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def change(broker, kind, name, *operations, validate_only=False, version=1):
    """(code, message) of an incremental change; an operation is (key, operation, value)."""
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in operations
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (result,) = broker.call(incremental_alter_configs, request, version).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result.error_code, result.error_message
