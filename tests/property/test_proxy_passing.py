"""What a client and its node say to each other through the proxy: all but addresses, in order, however it is cut.

Requests are drawn at random, so are the pieces in which sockets deliver them, and the moments at which a fault, which
acts on nothing, begins and ends to look at requests.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from codec_values import sample
from core_broker import frame
from hypothesis import given
from hypothesis import strategies as st
from proxy_kit import Path, in_pieces, reply

from broker.proxy.walk import Walk
from protocol.api import ApiKey, request_class, response_class
from protocol.codegen import codec

APIS = (
    (ApiKey.PRODUCE, (3, 8, 9, 12, 13)),
    (ApiKey.FETCH, (4, 12, 15, 16, 18)),
    (ApiKey.METADATA, (1, 9, 12, 13)),
    (ApiKey.FIND_COORDINATOR, (1, 3, 4, 6)),
    (ApiKey.DESCRIBE_CLUSTER, (0, 2)),
    (ApiKey.DESCRIBE_QUORUM, (1, 2)),
    (ApiKey.SHARE_FETCH, (1, 2)),
    (ApiKey.SHARE_ACKNOWLEDGE, (1, 2)),
    (ApiKey.OFFSET_COMMIT, (2, 8, 10)),
    (ApiKey.API_VERSIONS, (0, 3)),
)
WALKED = [(key, version) for key, first in ((ApiKey.PRODUCE, 10), (ApiKey.FETCH, 16)) for version in range(first, 14)]
LARGE = 1 << 17  # of records: such a reply is not collected


def _of_endpoints(response: Any) -> list[Any]:
    for field in ("brokers", "coordinators", "node_endpoints"):
        if getattr(response, field, None):
            found: list[Any] = getattr(response, field)
            return found
    return [response] if hasattr(response, "host") else []


def _answer(rng: random.Random, key: ApiKey, version: int, *, is_large: bool) -> Any:
    """A response, in it the node 1, which the proxy knows, and others, which it does not."""
    response: Any = sample(response_class(key), version, rng, unknown_tags=False)
    for row in _of_endpoints(response):
        if hasattr(row, "node_id"):
            row.node_id = rng.choice((1, 7))
    if key == ApiKey.FETCH and is_large:
        response.responses[0].partitions[0].records = rng.randbytes(LARGE)
    if key == ApiKey.DESCRIBE_CLUSTER:
        response.endpoint_type = 1
        for row in response.brokers:
            row.broker_id = rng.choice((1, 7))
    if key == ApiKey.API_VERSIONS:
        response.error_code = 0
    return response


def _as_client_sees(response: Any, key: ApiKey, path: Path) -> Any:
    """The same with the proxy's address for node 1."""
    host, port = path.world.broker.nodes.endpoint(1, path.connection)
    for row in _of_endpoints(response):
        if getattr(row, "broker_id", getattr(row, "node_id", -1)) == 1 and row.host:
            row.host, row.port = host, port
    if key == ApiKey.DESCRIBE_QUORUM:
        for node in response.nodes:
            if node.node_id == 1:
                for listener in node.listeners:
                    listener.host, listener.port = host, port
    if key == ApiKey.API_VERSIONS:
        assert path.router.addresses is not None
        path.router.addresses.rewrite(key, response, path.connection)
    return response


@given(seed=st.integers(0, 1 << 32))
def test_bytes_pass_in_order_however_they_are_cut_and_looked_at(seed):
    rng = random.Random(seed)
    path = Path()
    up: deque[bytes] = deque()
    down: deque[bytes] = deque()
    sent, expected, fault = b"", b"", ""
    faults = path.faults()

    def size() -> int:
        return rng.choice((1, 7, 13, 60, 300, 1 << 18))

    for number in range(rng.randrange(1, 12)):
        key, versions = rng.choice(APIS)
        version = rng.choice(versions)
        request: Any = sample(request_class(key), version, rng)
        is_answered = True
        if key == ApiKey.PRODUCE:
            request.acks = rng.choice((0, 1, -1))
            is_answered = request.acks != 0
        data = frame(request, version, number, rng.choice((None, "", "client")))
        sent += data
        up += in_pieces(data, size)
        if is_answered:
            response = _answer(rng, key, version, is_large=rng.random() < 0.3)
            down += in_pieces(reply(response, version, number), size)
            expected += reply(_as_client_sees(response, key, path), version, number)
    answers = b"".join(down)
    given_back = 0
    while up or given_back < len(answers):
        if rng.random() < 0.2:
            if fault:
                faults.remove(fault)
                fault = ""
            else:
                fault = faults.add({"fault": "hold", "client_id": "nobody-at-all"}).name
        if up and rng.random() < 0.6:
            path.connection.data_received(up.popleft())
        elif given_back < (until := _answerable(path, answers, expected, sent)):
            piece = answers[given_back : min(until, given_back + size())]
            given_back += len(piece)
            path.link.data_received(piece)
        elif not up:
            break
        if rng.random() < 0.7:
            path.world.run()
    path.world.run()
    assert not path.client.closed
    assert bytes(path.node.data) == sent
    hidden = _without_hidden(bytes(path.client.data))
    assert hidden == _without_hidden(expected)


def _answerable(path: Path, answers: bytes, expected: bytes, sent: bytes) -> int:
    """How many bytes of the answers a node would have given to what it was sent: all to the whole requests."""
    position, got, whole = 0, path.node.data, set()
    while len(got) - position >= 12:
        stop = position + 4 + int.from_bytes(got[position : position + 4], "big")
        if stop > len(got):
            break
        whole.add(int.from_bytes(got[position + 8 : position + 12], "big"))
        position = stop
    until = 0
    while until < len(answers) and int.from_bytes(answers[until + 4 : until + 8], "big") in whole:
        until += 4 + int.from_bytes(answers[until : until + 4], "big")
    return until


def _without_hidden(data: bytes) -> list[Any]:
    """The replies; of one that is large its correlation id and size alone where addresses may be hidden."""
    found = []
    position = 0
    while position < len(data):
        stop = position + 4 + int.from_bytes(data[position : position + 4], "big")
        body = data[position:stop]
        found.append(body if len(body) < LARGE else body[4:8])
        position = stop
    return found


@pytest.mark.parametrize(("key", "version"), WALKED)
def test_addresses_at_the_end_of_a_reply_are_found(key, version):
    rng = random.Random(f"{key} {version}")
    cls: Any = response_class(key)
    if version > cls.MAX_VERSION:
        pytest.skip("there is no such version")
    for has_addresses in (False, True) * 20:
        response: Any = sample(cls, version, rng)
        if not has_addresses:
            response.node_endpoints = []
        data = reply(response, version, 1)
        walk = Walk(key, version)
        begin = 4
        for piece in in_pieces(data[4:], lambda: rng.choice((1, 5, 100))):
            begin, _ = _feed(walk, data, begin, begin + len(piece))
        while not walk.is_at_end:
            walk.feed(data, walk.at, len(data))
        assert walk.look(data, walk.at, len(data)) is bool(response.node_endpoints)


def _feed(walk: Walk, data: bytes, begin: int, stop: int) -> tuple[int, int]:
    """Walk on with what is there up to `stop`."""
    if walk.at < stop and not walk.is_at_end:
        walk.feed(data, walk.at, stop)
    return stop, walk.at


def test_an_address_in_a_large_reply_is_hidden_and_its_records_pass():
    rng = random.Random(1)
    path = Path()
    response = _answer(rng, ApiKey.FETCH, 17, is_large=True)
    response.node_endpoints[0].node_id = 1
    path.connection.data_received(frame(sample(request_class(ApiKey.FETCH), 17, rng), 17, 5))
    data = reply(response, 17, 5)
    for begin in range(0, len(data), 1000):
        path.link.data_received(data[begin : begin + 1000])
    seen, _ = codec(response_class(ApiKey.FETCH), 17).decode(bytes(path.client.data), 9)
    assert len(path.client.data) == len(data)
    assert seen.node_endpoints == []
    assert [each.responses[0].partitions[0].records for each in (seen, response)] == [
        response.responses[0].partitions[0].records
    ] * 2


def test_the_bytes_of_a_large_reply_are_passed_as_they_are_without_a_copy():
    rng = random.Random(2)
    path = Path()
    written: list[bytes] = []
    path.client.write = written.append  # type: ignore[method-assign]  # to see each object that is passed
    response = _answer(rng, ApiKey.FETCH, 18, is_large=True)
    response.responses = response.responses[:1]
    response.responses[0].partitions = response.responses[0].partitions[:1]
    response.responses[0].partitions[0].records = rng.randbytes(4 * LARGE)
    path.connection.data_received(frame(sample(request_class(ApiKey.FETCH), 18, rng), 18, 5))
    data = reply(response, 18, 5)
    pieces = [data[begin : begin + LARGE] for begin in range(0, len(data), LARGE)]
    for piece in pieces:
        path.link.data_received(piece)
    assert b"".join(written)[: 4 * LARGE] == data[: 4 * LARGE]
    for piece, passed in zip(pieces[:4], written, strict=False):
        assert piece is passed
