"""Messages that list, describe and change configs."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int8, Int16, Int32, String


@message(api_key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Message):
    """Ask for the names of resources that have configs.

    0 client metrics only; 1 by resource type (KIP-1142).
    """

    resource_types: list[int] = field(Array(Int8), "1+")


@nested
class ConfigResource(Message):
    resource_name: str = field(String)
    resource_type: int = field(Int8, "1+", default=16)


@message(api_key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Message):
    """Names and types of config resources."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    config_resources: list[ConfigResource] = field(Array(ConfigResource))


@nested
class DescribeConfigsResource(Message):
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configuration_keys: list[str] | None = field(Array(String), nullable="0+")


@message(api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsRequest(Message):
    """Ask for configs of topics, brokers, groups; null keys means all.

    1 synonyms; 3 documentation.
    """

    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource))
    include_synonyms: bool = field(Bool, "1+")
    include_documentation: bool = field(Bool, "3+")


@nested
class DescribeConfigsSynonym(Message):
    name: str = field(String, "1+")
    value: str | None = field(String, "1+", nullable="0+")
    source: int = field(Int8, "1+")


@nested
class DescribeConfigsResourceResult(Message):
    name: str = field(String)
    value: str | None = field(String, nullable="0+")
    read_only: bool = field(Bool)
    config_source: int = field(Int8, "1+", default=-1)
    is_sensitive: bool = field(Bool)
    synonyms: list[DescribeConfigsSynonym] = field(Array(DescribeConfigsSynonym), "1+")
    config_type: int = field(Int8, "3+")
    documentation: str | None = field(String, "3+", nullable="0+")


@nested
class DescribeConfigsResult(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configs: list[DescribeConfigsResourceResult] = field(Array(DescribeConfigsResourceResult))


@message(api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse(Message):
    """Configs with their source and synonyms.

    1 source in place of is_default; 3 type and documentation.
    """

    throttle_time_ms: int = field(Int32)
    results: list[DescribeConfigsResult] = field(Array(DescribeConfigsResult))


@nested
class AlterConfigsRequestAlterableConfig(Message):
    name: str = field(String)
    value: str | None = field(String, nullable="0+")


@nested
class AlterConfigsRequestAlterConfigsResource(Message):
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configs: list[AlterConfigsRequestAlterableConfig] = field(Array(AlterConfigsRequestAlterableConfig))


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest(Message):
    """Replace all dynamic configs of resources."""

    resources: list[AlterConfigsRequestAlterConfigsResource] = field(Array(AlterConfigsRequestAlterConfigsResource))
    validate_only: bool = field(Bool)


@nested
class AlterConfigsResponseAlterConfigsResourceResponse(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    resource_type: int = field(Int8)
    resource_name: str = field(String)


@message(api_key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse(Message):
    """A result for each resource."""

    throttle_time_ms: int = field(Int32)
    responses: list[AlterConfigsResponseAlterConfigsResourceResponse] = field(
        Array(AlterConfigsResponseAlterConfigsResourceResponse)
    )


@nested
class IncrementalAlterConfigsRequestAlterableConfig(Message):
    name: str = field(String)
    config_operation: int = field(Int8)
    value: str | None = field(String, nullable="0+")


@nested
class IncrementalAlterConfigsRequestAlterConfigsResource(Message):
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configs: list[IncrementalAlterConfigsRequestAlterableConfig] = field(
        Array(IncrementalAlterConfigsRequestAlterableConfig)
    )


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Message):
    """Set, delete, append to or subtract from single configs (KIP-339)."""

    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource] = field(
        Array(IncrementalAlterConfigsRequestAlterConfigsResource)
    )
    validate_only: bool = field(Bool)


@nested
class IncrementalAlterConfigsResponseAlterConfigsResourceResponse(Message):
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable="0+")
    resource_type: int = field(Int8)
    resource_name: str = field(String)


@message(api_key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message):
    """A result for each resource."""

    throttle_time_ms: int = field(Int32)
    responses: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = field(
        Array(IncrementalAlterConfigsResponseAlterConfigsResourceResponse)
    )


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    match request:
        case ListConfigResourcesRequest():
            return ListConfigResourcesResponse(error_code=code)
        case DescribeConfigsRequest():
            return DescribeConfigsResponse(
                results=[
                    DescribeConfigsResult(
                        error_code=code,
                        error_message=message or code.words,
                        resource_type=resource.resource_type,
                        resource_name=resource.resource_name,
                    )
                    for resource in request.resources
                ]
            )
        case AlterConfigsRequest():
            return AlterConfigsResponse(
                responses=[
                    AlterConfigsResponseAlterConfigsResourceResponse(
                        error_code=code,
                        error_message=message,
                        resource_type=resource.resource_type,
                        resource_name=resource.resource_name,
                    )
                    for resource in request.resources
                ]
            )
        case IncrementalAlterConfigsRequest():
            return IncrementalAlterConfigsResponse(
                responses=[
                    IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                        error_code=code,
                        error_message=message,
                        resource_type=each.resource_type,
                        resource_name=each.resource_name,
                    )
                    for each in request.resources
                ]
            )
    raise TypeError(f"not a request of this family: {request!r}")
