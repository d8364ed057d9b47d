"""Refusing a whole request puts the code where Apache Kafka puts it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from protocol.api import message_class, response_class
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, FindCoordinatorRequest, error_response

_LINES = [
    line.split(" ")
    for line in (Path(__file__).parent / "golden_refusals.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(
    ("name", "version", "asked", "answered"), _LINES, ids=[f"{line[0]}-{line[1]}" for line in _LINES]
)
def test_refusal_of_a_request_equals_that_of_kafka(name: str, version: str, asked: str, answered: str) -> None:
    cls, api_version = message_class(name), int(version)
    request, _ = codec(cls, api_version).decode(bytes.fromhex(asked))

    response = import_module(cls.__module__).error_response(request, api_version, ErrorCode.NOT_COORDINATOR)

    assert codec(response_class(cls.API_KEY), api_version).encode(response).hex() == answered


def test_refusal_of_find_coordinator_names_no_node_and_says_why() -> None:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    single = error_response(FindCoordinatorRequest(key="g"), 3, code)
    assert (single.error_code, single.node_id, single.port) == (code, -1, -1)
    assert single.error_message == "coordinator not available"
    several = error_response(FindCoordinatorRequest(coordinator_keys=["a", "b"]), 4, code, "why")
    found = [(each.key, each.error_code, each.error_message) for each in several.coordinators]
    assert found == [("a", code, "why"), ("b", code, "why")]


def test_refusal_of_api_versions_from_the_future_tells_its_own_range() -> None:
    response = error_response(ApiVersionsRequest(), 0, ErrorCode.UNSUPPORTED_VERSION)
    [own] = response.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 4)
    assert error_response(ApiVersionsRequest(), 3, ErrorCode.INVALID_REQUEST).api_keys == []
