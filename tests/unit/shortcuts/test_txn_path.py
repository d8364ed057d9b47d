"""The fast way and the general way of transactional requests: the same answers and the same logs, byte for byte."""

from __future__ import annotations

from random import Random

import pytest
from budget import IS_DEEP
from cases import each_case
from core_broker import Client, World, frame, make_topic
from txn_kit import Producer

from protocol.messages.transactions import TxnOffsetCommitRequestTopic


class Twin:
    """One of two worlds that are asked the same."""

    def __init__(self, *, fast: bool, **settings: str) -> None:
        self.world = World("os", **settings)
        client = Client(self.world)
        make_topic(client, "t", 3)
        make_topic(client, "u", 1)
        assert Producer(client, "warm-up").init() == 0
        if not fast:
            self.world.broker.clients.shortcuts = {}
        self.client = Client(self.world)
        self.fast = fast

    def send(self, data: bytes) -> bytes:
        """What came back for it."""
        before = len(self.client.transport.received)
        self.client.send_bytes(data)
        self.world.run()
        received = bytes(self.client.transport.received[before:])
        if self.client.closed:
            self.client = Client(self.world)
            received += b"(closed)"
        return received

    def logs(self) -> dict[str, bytes]:
        """The bytes of every log."""
        return {
            f"{directory}/{name}": bytes(inode.data)
            for directory, names in self.world.files._names.items()
            for name, inode in names.items()
            if inode is not None and name.endswith(".log")
        }


class Pair:
    """Both worlds."""

    def __init__(self, **settings: str) -> None:
        self.fast, self.general = Twin(fast=True, **settings), Twin(fast=False, **settings)

    def send(self, data: bytes) -> bytes:
        answers = self.fast.send(data), self.general.send(data)
        assert answers[0] == answers[1]
        return answers[0]

    def check(self) -> None:
        assert self.fast.logs() == self.general.logs()
        fast, general = (twin.world.fingerprints() for twin in (self.fast, self.general))
        assert fast == general
        for twin in (self.fast, self.general):
            twin.world.check_replay()


class Scribe(Producer):
    """Writes the requests of a producer that believes whatever it likes."""

    def __init__(self, pair: Pair, name: str, *, v2: bool) -> None:
        super().__init__(pair.fast.client, name, v2=v2)
        self.pair = pair
        answer = pair.send(frame(self._init(), 5, 7))
        self.id = int.from_bytes(answer[17:25], "big", signed=True)
        self.epoch = int.from_bytes(answer[25:27], "big", signed=True)

    def _init(self):
        from protocol.messages.transactions import InitProducerIdRequest

        return InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)

    def script(self, rounds: int = 3):
        """The frames of some transactions, as a client would send them one after the other."""
        for number in range(rounds):
            if not self.v2:
                yield frame(self._add(), 3, 1)
                yield frame(self._add_offsets(), 3, 2)
            for value in (b"a%d" % number, b"b"):
                yield frame(self.produce_request(value), 12 if self.v2 else 11, 3)
            yield frame(self.produce_request(b"x", topic="u"), 12 if self.v2 else 10, 3, client_id=None)
            version = 5 if self.v2 else 3
            yield frame(self.offsets_request({0: number, 2: number}), version, 4)
            yield frame(self.offsets_request({1: number}, topic="t"), version, 4)
            yield frame(self.offsets_request({0: number}, "h", generation_id=3, member_id="m"), version, 4)
            yield frame(self.offsets_request({0: number, 7: 1}), version, 4)
            yield frame(self.offsets_request({}), version, 4)
            odd = self.offsets_request({0: number})
            odd.topics[0].partitions[0].committed_metadata = "noted" if number else None
            yield frame(odd, version, 4)
            odd.topics.append(TxnOffsetCommitRequestTopic(name="u", partitions=odd.topics[0].partitions))
            yield frame(odd, version, 4)
            yield frame(self.end_request(commit=number != 1), 5 if self.v2 else 4, 5)
            if self.v2:
                self.epoch += 1
                self.sequences.clear()

    def _add(self):
        from protocol.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic

        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "u")],
        )

    def _add_offsets(self):
        from protocol.messages.transactions import AddOffsetsToTxnRequest

        return AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, group_id="g"
        )


@pytest.mark.parametrize("provenance", ["true", "false"])
@pytest.mark.parametrize("v2", [True, False])
def test_transactions_are_answered_alike(v2, provenance):
    pair = Pair(offsets_provenance=provenance)
    for name in ("one", "two"):
        for data in Scribe(pair, name, v2=v2).script():
            assert pair.send(data)
    pair.check()


def test_zombies_are_answered_alike():
    pair = Pair()
    zombie = Scribe(pair, "one", v2=True)
    first = list(zombie.script(1))
    Scribe(pair, "one", v2=True)
    for data in first:
        assert pair.send(data)
    pair.check()


def test_a_whole_transaction_in_one_go_is_answered_alike():
    pair = Pair()
    scribe = Scribe(pair, "one", v2=True)
    assert pair.send(b"".join(scribe.script(3)))
    pair.check()


@each_case("seed", range(640 if IS_DEEP else 16))
def test_damaged_requests_are_answered_alike(seed):
    random = Random(seed)
    pair = Pair()
    scribe = Scribe(pair, "one", v2=seed % 2 == 0)
    for data in scribe.script(4):
        if random.random() < 0.5:
            broken = bytearray(data)
            for _ in range(random.choice((1, 1, 2, 5))):
                at = random.randrange(12, len(broken))
                if random.random() < 0.7:
                    broken[at] = random.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, broken[at] ^ 1, random.randrange(256)))
                elif random.random() < 0.5:
                    del broken[at]
                else:
                    broken.insert(at, random.randrange(256))
            broken[:4] = (len(broken) - 4).to_bytes(4, "big")
            pair.send(bytes(broken))
        pair.send(data)
    pair.check()
