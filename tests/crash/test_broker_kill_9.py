"""kill -9 of a real broker under load, again and again: what 16 connections were told is there, and nothing is torn."""

from __future__ import annotations

import random
import selectors
import socket
import time

import pytest
from core_broker import frame
from core_requests import commit_request, fetch_request, produce_request
from wire_peer import Peer, make_topic

from momus import Broker
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.offsets import (
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.produce import ProduceResponse
from protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from protocol.record_batch import iter_batches, iter_records

CONNECTIONS = 16
IN_FLIGHT = 8
PARTITIONS = 20


class Committer:
    """One connection that commits 1, 2, 3 ... on 20 partitions of its own group, several commits in flight."""

    version, response = 8, OffsetCommitResponse

    def __init__(self, number: int) -> None:
        self.group_id = f"group-{number}"
        self.asked = self.told = 0

    def request(self) -> bytes:
        self.asked += 1
        return frame(commit_request(self.group_id, dict.fromkeys(range(PARTITIONS), self.asked), "wide"), self.version)

    def answer(self, response: OffsetCommitResponse) -> None:
        assert {p.error_code for p in response.topics[0].partitions} == {0}
        self.told += 1

    def check(self, peer: Peer) -> None:
        question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group_id, topics=None)])
        group = peer.call(question, 8).groups[0]
        while group.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            time.sleep(0.01)
            group = peer.call(question, 8).groups[0]
        assert group.error_code == 0
        found = {p.partition_index: p.committed_offset for topic in group.topics for p in topic.partitions}
        if self.told or found:
            assert sorted(found) == list(range(PARTITIONS))
            assert len(set(found.values())) == 1, f"the last commit of {self.group_id} is torn: {found}"
            value = found[0]
            assert self.told <= value <= self.asked, f"told {self.told}, asked {self.asked}, found {value}"
            self.asked = self.told = value


class Producer:
    """One connection that produces numbered records to one partition."""

    version, response = 9, ProduceResponse

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.asked = self.told = 0

    def request(self) -> bytes:
        self.asked += 1
        return frame(produce_request(self.topic, 0, b"%d" % self.asked), self.version)

    def answer(self, response: ProduceResponse) -> None:
        answer = response.responses[0].partition_responses[0]
        assert answer.error_code == 0
        self.told += 1
        assert answer.base_offset == self.told - 1

    def check(self, peer: Peer) -> None:
        found: list[int] = []
        while True:
            answer = peer.call(fetch_request(self.topic, 0, len(found)), 12).responses[0].partitions[0]
            assert answer.error_code == 0
            data = bytes(answer.records or b"")
            if not data:
                break
            for position, header in iter_batches(data):
                found += [int(record.value) for record in iter_records(data[position : position + header.size])]
        assert found == list(range(1, len(found) + 1))
        assert self.told <= len(found) <= self.asked
        self.asked = self.told = len(found)


class ProducerIds:
    """One connection that asks for producer ids; none may come twice, whatever happens in between."""

    version, response = 4, InitProducerIdResponse

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self.told = 0

    def request(self) -> bytes:
        return frame(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), self.version)

    def answer(self, response: InitProducerIdResponse) -> None:
        assert response.error_code == 0
        assert response.producer_id not in self.ids, f"producer id {response.producer_id} came twice"
        self.ids.add(response.producer_id)
        self.told += 1

    def check(self, peer: Peer) -> None:
        """Seen in `answer`."""


def load(broker: Broker, roles: list, seconds: float, end: object) -> None:
    """Keep all connections busy until each has had an answer; then end the broker, and take what had left before."""
    selector = selectors.DefaultSelector()
    host, port = broker.bootstrap_servers.split(":")
    connections = []
    for role in roles:
        connection = socket.create_connection((host, int(port)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(connection, selectors.EVENT_READ, (role, bytearray()))
        connections.append(connection)
        connection.sendall(b"".join(role.request() for _ in range(IN_FLIGHT)))
    stop_at = time.monotonic() + seconds
    dead, unanswered = False, set(roles)
    while selector.get_map():
        if not dead and not unanswered and time.monotonic() >= stop_at:
            dead = True
            end()
        for key, _ in selector.select(0.05):
            role, data = key.data
            try:
                piece = key.fileobj.recv(65536)
                data += piece
                answered = take_answers(role, data)
                if answered:
                    unanswered.discard(role)
                if not dead and answered:
                    key.fileobj.sendall(b"".join(role.request() for _ in range(answered)))
            except OSError:
                piece = b""
            if not piece:
                selector.unregister(key.fileobj)
    for connection in connections:
        connection.close()


def take_answers(role, data: bytearray) -> int:
    """Hand on whole replies; how many."""
    count = 0
    while len(data) >= 4 and len(data) >= 4 + (size := int.from_bytes(data[:4], "big")):
        position = 9  # size, correlation id, tags
        role.answer(codec(role.response, role.version).decode(bytes(data[: 4 + size]), position)[0])
        del data[: 4 + size]
        count += 1
    return count


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_broker_killed_under_load_has_all_it_acknowledged_whole(broker_factory, crash_rounds, flush):
    broker = broker_factory(flush=flush, config={"offsets.topic.num.partitions": 7})
    with Peer(broker) as peer:
        make_topic(peer, "wide", PARTITIONS)
        make_topic(peer, "log", 1)
    roles = [*(Committer(n) for n in range(CONNECTIONS - 2)), Producer("log"), ProducerIds()]
    chance = random.Random(crash_rounds)
    for _ in range(crash_rounds):
        load(broker, roles, chance.uniform(0.05, 0.6), broker.kill)
        broker.start()
        with Peer(broker) as peer:
            for role in roles:
                role.check(peer)
    assert all(role.told for role in roles)
    assert "damaged" not in broker.log
    assert "Traceback" not in broker.log


@pytest.mark.parametrize("flush", ["memory", "os", "fsync"])
def test_broker_stopped_under_load_ends_in_order_and_has_all_it_acknowledged(broker_factory, flush):
    broker = broker_factory(flush=flush)
    with Peer(broker) as peer:
        make_topic(peer, "wide", PARTITIONS)
        make_topic(peer, "log", 1)
    roles = [*(Committer(n) for n in range(CONNECTIONS - 2)), Producer("log"), ProducerIds()]
    codes = []
    load(broker, roles, 0.4, lambda: codes.append(broker.stop()))
    assert codes == [0]
    assert all(role.told for role in roles)
    if flush != "memory":
        broker.start()
        with Peer(broker) as peer:
            for role in roles:
                role.check(peer)
    assert broker.log == ""
