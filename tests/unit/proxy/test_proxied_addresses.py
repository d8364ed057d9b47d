"""Addresses in answers that pass the proxy: each of them becomes the proxy's, in every answer that has any."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import pytest

import protocol.messages
from broker.proxy.addresses import Addresses
from protocol.api import ApiKey
from protocol.messages.cluster import (
    Coordinator,
    DescribeClusterBroker,
    DescribeClusterResponse,
    FindCoordinatorResponse,
    MetadataResponse,
    MetadataResponseBroker,
)
from protocol.messages.fetch import FetchResponse, FetchResponseNodeEndpoint
from protocol.messages.produce import ProduceResponse, ProduceResponseNodeEndpoint
from protocol.messages.quorum import DescribeQuorumResponse, DescribeQuorumResponseListener, DescribeQuorumResponseNode
from protocol.messages.share_fetch import (
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponseNodeEndpoint,
    ShareFetchResponse,
    ShareFetchResponseNodeEndpoint,
)

NODES = (1, 2, 3)
# Endpoints of Kafka Streams' own processes, which ask each other.
OF_APPLICATIONS = {ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE}


class Nodes:
    """The proxy's listeners: node 1 at port 9001."""

    def endpoint(self, node_id, asker):
        return ("proxy", 9000 + node_id) if node_id in NODES else ("", -1)


def rows(row, name="node_id"):
    return [row(**{name: node_id, "host": "upstream", "port": 7000 + node_id}) for node_id in NODES]


def listeners(node_id):
    return [DescribeQuorumResponseListener(name=name, host="upstream", port=7000 + node_id) for name in ("A", "B")]


ANSWERS = {
    ApiKey.METADATA: lambda: MetadataResponse(brokers=rows(MetadataResponseBroker)),
    ApiKey.DESCRIBE_CLUSTER: lambda: DescribeClusterResponse(
        endpoint_type=1, brokers=rows(DescribeClusterBroker, "broker_id")
    ),
    ApiKey.FIND_COORDINATOR: lambda: FindCoordinatorResponse(coordinators=rows(Coordinator)),
    ApiKey.PRODUCE: lambda: ProduceResponse(node_endpoints=rows(ProduceResponseNodeEndpoint)),
    ApiKey.FETCH: lambda: FetchResponse(node_endpoints=rows(FetchResponseNodeEndpoint)),
    ApiKey.SHARE_FETCH: lambda: ShareFetchResponse(node_endpoints=rows(ShareFetchResponseNodeEndpoint)),
    ApiKey.SHARE_ACKNOWLEDGE: lambda: ShareAcknowledgeResponse(
        node_endpoints=rows(ShareAcknowledgeResponseNodeEndpoint)
    ),
    ApiKey.DESCRIBE_QUORUM: lambda: DescribeQuorumResponse(
        nodes=[DescribeQuorumResponseNode(node_id=each, listeners=listeners(each)) for each in NODES]
    ),
}


def places(value):
    """Each host with its port, wherever it is in an answer."""
    if isinstance(value, list):
        return [place for each in value for place in places(each)]
    names = getattr(type(value), "__annotations__", {})
    inside = [place for name in names for place in places(getattr(value, name))]
    return [*([(value.host, value.port)] if value.__class__ is not str and "host" in names else []), *inside]


@pytest.mark.parametrize("api_key", ANSWERS, ids=lambda each: each.name)
def test_every_address_of_an_answer_becomes_the_proxys(api_key):
    met = []
    answer = ANSWERS[api_key]()
    before = [place for place in places(answer) if place[0]]
    assert len(before) >= len(NODES)
    assert Addresses(Nodes(), lambda *node: met.append(node)).rewrite(api_key, answer, None) is True
    after = [place for place in places(answer) if place[0]]
    assert after == [("proxy", port + 2000) for _, port in before]
    if api_key != ApiKey.DESCRIBE_QUORUM:  # its nodes may be controllers, which no client connects to
        assert met == [(node_id, "upstream", 7000 + node_id) for node_id in NODES]


def test_the_one_coordinator_of_older_answers_becomes_the_proxys():
    answer = FindCoordinatorResponse(node_id=2, host="upstream", port=7002)
    assert Addresses(Nodes(), lambda *node: None).rewrite(ApiKey.FIND_COORDINATOR, answer, None)
    assert (answer.host, answer.port) == ("proxy", 9002)


def test_node_that_has_no_listener_here_keeps_its_address():
    answer = FindCoordinatorResponse(node_id=9, host="upstream", port=7009)
    assert not Addresses(Nodes(), lambda *node: None).rewrite(ApiKey.FIND_COORDINATOR, answer, None)
    assert (answer.host, answer.port) == ("upstream", 7009)


def has_address(kind):
    """Whether a message has a host with a port, at any depth."""
    told = getattr(kind, "__annotations__", {})
    if {"host", "port"} <= told.keys():
        return True
    names = {name for annotation in told.values() for name in re.findall(r"\w+", annotation)}
    around = vars(import_module(kind.__module__))
    return any(has_address(around[name]) for name in names if isinstance(around.get(name), type))


def test_each_answer_with_an_address_is_among_these():
    found = set()
    for module in pkgutil.iter_modules(protocol.messages.__path__):
        kinds = vars(import_module(f"protocol.messages.{module.name}")).items()
        answers = [kind for name, kind in kinds if name.endswith("Response") and getattr(kind, "API_KEY", -1) >= 0]
        found |= {kind.API_KEY for kind in answers if has_address(kind)}
    assert found - OF_APPLICATIONS == set(ANSWERS)
