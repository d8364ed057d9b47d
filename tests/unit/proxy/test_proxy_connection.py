"""The proxy's two sides of a connection: order of replies, back-pressure, what is refused, ends."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from core_broker import frame, split_frames
from proxy_kit import Path, reply

from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.header import decode_response_header
from protocol.messages.cluster import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.produce import ProduceRequest
from protocol.messages.sasl import SaslHandshakeRequest

COMMIT = OffsetCommitRequest(
    group_id="g",
    topics=[
        OffsetCommitRequestTopic(
            name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        )
    ],
)
REFUSAL = {"fault": "inject_error", "api": "OffsetCommit", "error": "NOT_COORDINATOR"}


def metadata(*nodes: tuple[int, str, int]) -> MetadataResponse:
    rows = [MetadataResponseBroker(node_id=number, host=host, port=port) for number, host, port in nodes]
    return MetadataResponse(brokers=rows, cluster_id="c")


def ids(path: Path) -> list[int]:
    """The correlation ids of what the client has got."""
    return [int.from_bytes(each[:4], "big") for each in split_frames(bytes(path.client.data))]


def seen(path: Path, request: Any, version: int) -> Any:
    """The last reply that the client has got."""
    body = split_frames(bytes(path.client.data))[-1]
    _, at = decode_response_header(body, request.API_KEY, version)
    from protocol.api import response_class

    return codec(response_class(request.API_KEY), version).decode(body, at)[0]


def test_an_error_made_by_the_proxy_waits_for_what_was_under_way_and_does_not_reach_the_cluster():
    path = Path()
    path.connection.data_received(frame(FetchRequest(session_epoch=-1), 12, 1))
    path.faults().add(REFUSAL)
    path.connection.data_received(frame(COMMIT, 8, 2))
    path.world.run()
    assert ids(path) == []
    path.link.data_received(reply(FetchResponse(), 12, 1))
    path.world.run()
    assert ids(path) == [1, 2]
    assert bytes(path.node.data) == frame(FetchRequest(session_epoch=-1), 12, 1)
    assert seen(path, COMMIT, 8).topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


def test_an_error_waits_for_the_rest_of_a_reply_that_is_passing():
    path = Path()
    path.connection.data_received(frame(COMMIT, 8, 1))
    answer = reply(FetchResponse(), 4, 1)  # its bytes do not matter
    path.link.data_received(answer[:10])
    path.faults().add(REFUSAL)
    path.connection.data_received(frame(COMMIT, 8, 2))
    path.world.run()
    assert bytes(path.client.data) == answer[:10]
    path.link.data_received(answer[10:])
    path.world.run()
    assert ids(path) == [1, 2]


def test_requests_pass_again_once_faults_are_gone():
    path = Path()
    faults = path.faults()
    fault = faults.add(REFUSAL)
    path.connection.data_received(frame(COMMIT, 8, 1))
    path.world.run()
    faults.remove(fault.name)
    path.connection.data_received(frame(COMMIT, 8, 2))
    assert [flight[4] for flight in path.connection.flights] == [-1]


def test_a_produce_without_acks_is_answered_by_nobody_and_later_replies_find_their_requests():
    path = Path()
    path.connection.data_received(frame(ProduceRequest(acks=0), 9, 1) + frame(COMMIT, 8, 2))
    assert [flight[0] for flight in path.connection.flights] == [2]


def test_a_node_that_an_answer_tells_of_is_met_before_the_client_sees_it():
    path = Path()
    path.connection.data_received(frame(MetadataRequest(), 9, 1))
    path.link.data_received(reply(metadata((1, "inside", 9092), (2, "other", 9093)), 9, 1))
    assert path.met == [(1, "inside", 9092), (2, "other", 9093)]
    first = seen(path, MetadataRequest(), 9).brokers[0]
    assert (first.host, first.port) == ("127.0.0.1", 9092)


def test_versions_that_cannot_be_read_are_not_offered_and_the_log_says_so_once(caplog):
    path = Path()
    rows = [
        ApiVersion(api_key=3, min_version=0, max_version=99),
        ApiVersion(api_key=8, min_version=2, max_version=99),
        ApiVersion(api_key=17, min_version=0, max_version=1),
    ]
    with caplog.at_level(logging.WARNING):
        for number in (1, 2):
            path.connection.data_received(frame(ApiVersionsRequest(), 3, number))
            path.link.data_received(reply(ApiVersionsResponse(api_keys=rows), 3, number))
    offered = {row.api_key: (row.min_version, row.max_version) for row in seen(path, ApiVersionsRequest(), 3).api_keys}
    assert offered == {3: (0, MetadataResponse.MAX_VERSION), 8: (2, 99), 17: (1, 1)}
    assert [record.message for record in caplog.records if "Metadata" in record.message] == [
        f"Metadata 0 to 99 of the cluster: clients are offered 0 to {MetadataResponse.MAX_VERSION},"
        " which the proxy can read"
    ]


def test_a_version_that_cannot_be_read_where_it_would_have_to_be_ends_the_connection():
    path = Path()
    data = bytearray(frame(MetadataRequest(), 9, 1))
    data[6:8] = (99).to_bytes(2, "big")
    path.connection.data_received(bytes(data))
    path.world.run()
    assert path.client.closed
    assert not path.node.data


def test_a_version_that_nobody_knows_passes_where_nothing_is_to_be_changed():
    path = Path()
    data = bytearray(frame(COMMIT, 8, 1))
    data[6:8] = (99).to_bytes(2, "big")
    path.connection.data_received(bytes(data))
    assert bytes(path.node.data) == bytes(data)


def test_sasl_passes_but_the_version_whose_tokens_have_no_heads():
    path = Path()
    path.connection.data_received(frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1))
    assert path.node.data
    path.connection.data_received(frame(SaslHandshakeRequest(mechanism="PLAIN"), 0, 2))
    path.world.run()
    assert path.client.closed


def test_what_comes_before_the_node_is_reached_waits_and_the_client_is_not_read():
    path = Path(reach=False)
    path.connection.data_received(frame(COMMIT, 8, 1))
    assert not path.client.is_reading
    path.reach()
    assert bytes(path.node.data) == frame(COMMIT, 8, 1)
    assert path.client.is_reading


def test_a_client_that_does_not_read_is_not_answered_and_not_read():
    path = Path()
    path.connection.pause_writing()
    assert (path.client.is_reading, path.node.is_reading) == (False, False)
    path.connection.resume_writing()
    assert (path.client.is_reading, path.node.is_reading) == (True, True)


def test_a_node_that_does_not_read_stops_its_client_alone():
    path = Path()
    path.link.pause_writing()
    assert (path.client.is_reading, path.node.is_reading) == (False, True)
    path.link.resume_writing()
    path.world.run()
    assert path.client.is_reading


def test_replies_that_a_fault_keeps_stop_the_node_at_the_limit_and_go_on_when_released():
    path = Path()
    faults = path.faults()
    fault = faults.add({"fault": "hold"})
    path.clients.backlog_limit = 1000
    answer = reply(FetchResponse(), 12, 1)
    for number in range(100):
        path.connection.data_received(frame(FetchRequest(session_epoch=-1), 12, number))
        path.link.data_received(answer[:4] + number.to_bytes(4, "big") + answer[8:])
        path.world.run()
        if not path.node.is_reading:
            break
    assert not path.node.is_reading
    held = number
    while fault.held:
        faults.release(fault)
        path.world.run()
    assert path.node.is_reading
    assert ids(path) == list(range(held + 1))


def test_the_end_of_the_node_is_that_of_the_client_after_whole_replies():
    path = Path()
    faults = path.faults()
    faults.add(REFUSAL)
    path.connection.data_received(frame(FetchRequest(session_epoch=-1), 12, 1))
    path.link.data_received(reply(FetchResponse(), 12, 1) + b"\0\0")
    path.link.connection_lost(None)
    path.world.run()
    assert ids(path) == [1]
    assert path.client.closed


def test_the_end_of_the_client_is_that_of_its_connection_to_the_node():
    path = Path()
    path.connection.connection_lost(None)
    assert path.node.closed


@pytest.mark.parametrize("data", [b"\0\0\0\1" + bytes(8), b"\x7f\xff\xff\xff" + bytes(8)])
def test_what_is_no_request_ends_the_connection(data):
    path = Path()
    path.connection.data_received(data)
    path.world.run()
    assert path.client.closed
    assert not path.node.data


def test_a_reply_to_no_request_ends_the_connection():
    path = Path()
    path.link.data_received(reply(FetchResponse(), 12, 77))
    path.world.run()
    assert path.client.closed
    assert not path.client.data


def test_a_reply_with_an_address_is_seen_after_many_of_its_size_without():
    from protocol.messages.produce import (
        PartitionProduceResponse,
        ProduceResponse,
        ProduceResponseNodeEndpoint,
        TopicProduceResponse,
    )

    path = Path()

    def answer(name: str, number: int, *endpoints: ProduceResponseNodeEndpoint) -> bytes:
        rows = [TopicProduceResponse(name=name, partition_responses=[PartitionProduceResponse(index=0)])]
        return reply(ProduceResponse(responses=rows, node_endpoints=list(endpoints)), 11, number)

    with_address = answer("t", 9, ProduceResponseNodeEndpoint(node_id=1, host="x", port=256))
    rest = len(with_address) - len(answer("t", 9))
    for number in range(3):
        path.connection.data_received(frame(ProduceRequest(acks=1), 11, number))
        path.link.data_received(answer("t" * (1 + rest), number))
    path.connection.data_received(frame(ProduceRequest(acks=1), 11, 9))
    assert len(answer("t" * (1 + rest), 9)) == len(with_address)
    path.link.data_received(with_address)
    assert seen(path, ProduceRequest(), 11).node_endpoints[0].host == "127.0.0.1"


def test_a_large_reply_that_cannot_be_walked_through_ends_the_connection():
    path = Path()
    path.connection.data_received(frame(FetchRequest(session_epoch=-1), 17, 1))
    size = 1 << 17
    path.link.data_received((size + 5).to_bytes(4, "big") + (1).to_bytes(4, "big") + b"\0" + b"\xff" * 64)
    path.link.data_received(b"\xff" * (size - 64))
    path.world.run()
    assert path.client.closed


def test_a_version_of_api_versions_that_is_not_known_is_answered_with_those_that_are():
    path = Path()
    data = bytearray(frame(ApiVersionsRequest(), 3, 1))
    data[6:8] = (99).to_bytes(2, "big")
    path.connection.data_received(bytes(data))
    path.world.run()
    assert seen(path, ApiVersionsRequest(), 0).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert not path.node.data
