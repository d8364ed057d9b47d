"""Requests to describe configs of broker and groups, and the code of those that cannot be."""

from __future__ import annotations

from core_broker import Client

from protocol.errors import ErrorCode
from protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource

INVALID_REQUEST = ErrorCode.INVALID_REQUEST


def described(client: Client, *resources: tuple[int, str], version: int = 4) -> list[tuple[int, int]]:
    rows = [DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in resources]
    answer = client.call(DescribeConfigsRequest(resources=rows), version)
    assert [(each.resource_type, each.resource_name) for each in answer.results] == list(resources)
    return [(each.error_code, bool(each.configs)) for each in answer.results]
