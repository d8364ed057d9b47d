"""An idempotent producer with a hundred batches in flight, over connections that are cut at random.

Every released client stops at five, so the frames are made here.
"""

from __future__ import annotations

import select
import socket
from random import Random

import pytest
from fault_proxy import FaultProxy
from raw_producer import VERSION, RawProducer, check_records

from momus import Broker
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.header import decode_response_header, encode_request_header
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.transactions import InitProducerIdRequest
from protocol.record_batch import iter_batches, iter_records

BATCHES = 4000
WRAP = 2**31 - 2000


def receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("the connection was cut")
        data += more
    return data


def call(address: str, request: object, version: int):
    """One request over a connection of its own."""
    host, port = address.rsplit(":", 1)
    key = type(request).API_KEY
    body = encode_request_header(key, version, 1, "raw") + codec(type(request), version).encode(request)
    with socket.create_connection((host, int(port)), timeout=120) as sock:
        sock.sendall(len(body).to_bytes(4, "big") + body)
        answer = receive(sock, int.from_bytes(receive(sock, 4), "big"))
    from protocol.api import response_class

    _, position = decode_response_header(answer, key, version)
    return codec(response_class(key), version).decode(answer, position)[0]


def read_all(address: str, topic: str) -> list[bytes]:
    values: list[bytes] = []
    offset = 0
    while True:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 22)
        wanted = [FetchTopic(topic=topic, partitions=[part])]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 24, topics=wanted)
        data = bytes(call(address, request, 11).responses[0].partitions[0].records)
        if not data:
            return values
        for position, header in iter_batches(data):
            offset = header.next_offset
            values += [bytes(r.value) for r in iter_records(data[position : position + header.size])]


def produce(producer: RawProducer, address: tuple[str, int]) -> None:
    """Over one connection: send what may be sent, take what is answered, until all is done or the line is cut."""
    with socket.create_connection(address, timeout=120) as sock:
        received = b""
        while not producer.done:
            sock.sendall(producer.take())
            select.select([sock], [], [], 120)
            more = sock.recv(1 << 16)
            if not more:
                raise ConnectionError("the connection was cut")
            received += more
            while len(received) >= 4 and len(received) >= 4 + int.from_bytes(received[:4], "big"):
                size = int.from_bytes(received[:4], "big")
                body, received = received[4 : 4 + size], received[4 + size :]
                _, position = decode_response_header(body, ProduceRequest.API_KEY, VERSION)
                response = codec(ProduceResponse, VERSION).decode(body, position)[0]
                answer = response.responses[0].partition_responses[0]
                producer.answered(answer.error_code, answer.base_offset)


@pytest.mark.parametrize("first_sequence", [0, WRAP], ids=["from-zero", "over-the-wrap"])
def test_all_records_are_there_once_and_in_order(broker: Broker, first_sequence: int) -> None:
    address = broker.bootstrap_servers
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert not call(address, CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 4).topics[0].error_code
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    producer_id = call(address, request, 1).producer_id
    producer = RawProducer(producer_id, "t", BATCHES, Random(5), first_sequence=first_sequence)
    with FaultProxy(7, least_bytes=200, most_bytes=60_000) as proxy:
        proxy.target = address
        while not producer.done:
            try:
                produce(producer, proxy.address)
            except OSError:
                producer.disconnected()
    assert proxy.cuts > 20
    assert producer.most_in_flight == 100
    assert producer.codes.keys() == {ErrorCode.NONE}  # what was sent again has an offset, which is checked next
    check_records(read_all(address, "t"), [producer])
