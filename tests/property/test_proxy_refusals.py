"""inject_error at a proxy: every API that is served, in every version, is refused as the broker refuses it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from codec_values import sample
from core_broker import Client, World, frame
from proxy_kit import Path

from broker.faults.errors import NotHereError
from broker.handlers import make_routes
from protocol.api import ApiKey, api_label, request_class, response_class
from protocol.codegen import codec
from protocol.declare import Message
from protocol.errors import ErrorCode
from protocol.header import decode_response_header
from protocol.messages.cluster import MetadataRequestTopic
from protocol.messages.offsets import OffsetCommitRequest

ROUTES = {route.api_key: route for route in make_routes(None)}
CODES = [code for code in ErrorCode if code != ErrorCode.NONE]
# As in Kafka: a member would leave its group because the coordinator has just started.
HIDDEN = (ApiKey.HEARTBEAT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
# As in Kafka, the answers of these versions have no place for the error of a whole request.
PLACELESS = {(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2)}


@pytest.fixture(scope="module")
def direct() -> World:
    return World()


@pytest.fixture(scope="module")
def proxied() -> World:
    return World()


def codes_in(message: Any) -> Iterator[int]:
    """All error codes of a response."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                yield from codes_in(each)
            elif field.name.endswith("error_code"):
                yield each


@pytest.mark.parametrize("api_key", ROUTES, ids=api_label)
def test_a_refusal_of_the_proxy_is_the_brokers_own_and_does_not_reach_the_cluster(api_key, direct, proxied):
    route, rng = ROUTES[api_key], random.Random(api_key)
    path, client = Path(world=proxied), Client(direct)
    here, there = path.faults(), direct.broker.faults
    for number, version in enumerate(range(route.min_version, route.max_version + 1)):
        code = rng.choice([each for each in CODES if (api_key, each) != HIDDEN])
        words = {"fault": "inject_error", "api": api_label(api_key), "error": code.name}
        faults = [(table, table.add(words)) for table in (here, there)]
        request: Any = sample(request_class(api_key), version, rng)
        if api_key == ApiKey.PRODUCE:
            request.acks = 1
        if api_key == ApiKey.METADATA and request.topics is None:  # the codes stand beside the topics
            request.topics = [MetadataRequestTopic(name="t")]
        data = frame(request, version, number)
        client.transport.received.clear()
        path.client.data.clear()
        client.send_bytes(data)
        direct.run()
        path.connection.data_received(data)
        proxied.run()
        assert [fault.hits for _, fault in faults] == [1, 1]
        for table, fault in faults:
            table.remove(fault.name)
        refused = bytes(path.client.data)
        assert refused == bytes(client.transport.received)
        _, at = decode_response_header(refused[4:], api_key, 0 if api_key == ApiKey.API_VERSIONS else version)
        response, end = codec(response_class(api_key), version).decode(refused[4:], at)
        assert end == len(refused) - 4
        assert (code in codes_in(response)) is ((api_key, version) not in PLACELESS), response
    assert not path.node.data


def test_a_version_that_the_proxy_cannot_answer_is_refused_by_the_end_of_its_connection(proxied, caplog):
    path = Path(world=proxied)
    fault = path.faults().add({"fault": "inject_error", "api": "OffsetCommit", "error": "NOT_COORDINATOR"})
    data = bytearray(frame(OffsetCommitRequest(group_id="g"), 8, 1))
    data[6:8] = (99).to_bytes(2, "big")
    path.connection.data_received(bytes(data))
    proxied.run()
    assert (path.client.closed, bytes(path.node.data), fault.hits) == (True, b"", 1)
    assert "refuses OffsetCommit v99: the connection is closed" in caplog.text


def test_an_api_that_the_proxy_cannot_answer_is_not_taken(proxied):
    faults = Path(world=proxied).faults()
    with pytest.raises(NotHereError, match="inject_error cannot answer AlterPartition"):
        faults.add({"fault": "inject_error", "api": ["OffsetCommit", "AlterPartition"], "error": "NOT_COORDINATOR"})
    assert faults.all() == []
