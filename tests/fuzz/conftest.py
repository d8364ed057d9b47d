"""A broker under attack, watched from outside: alive, small, quiet, and of use to others."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator

import pytest
from wire_peer import Peer, allow_descriptors, forget_peak, make_topic, resident_bytes

from momus import Broker
from protocol.messages.cluster import MetadataRequest

GROWTH_LIMIT_BYTES = 100 << 20  # at the peak
METADATA = MetadataRequest(topics=None)


class Target:
    """One broker with a topic of 500 partitions and one with 10 MB of records."""

    def __init__(self, broker: Broker, seed: int, seconds: float, *, tls: bool = False) -> None:
        self.broker = broker
        self.tls = tls
        self.random = random.Random(seed)
        self.seconds = seconds
        self.peers: list[Peer] = []
        self.healthy = Peer(broker, tls=tls)
        make_topic(self.healthy, "wide", 500)
        make_topic(self.healthy, "t", 1)
        self.healthy.call(METADATA, 12)
        self.resident = resident_bytes(broker.pid)
        self.pid = broker.pid

    def begin(self) -> None:
        """What the memory is measured from."""
        self.resident = forget_peak(self.pid)

    def peer(self) -> Peer:
        """A connection that is closed at the end of the test at the latest."""
        self.peers.append(Peer(self.broker, tls=self.tls))
        return self.peers[-1]

    def throw(self, data: bytes) -> None:
        """Send bytes on a connection of their own and go, without looking at what comes back."""
        with Peer(self.broker, 5, tls=self.tls) as peer:
            try:
                peer.socket.sendall(data)
                peer.socket.shutdown(socket.SHUT_WR)
                peer.is_closed_by_broker()
            except OSError:
                pass  # closed on us in the middle: that is an answer

    def check(self) -> None:
        """A healthy client is served, and the broker is what it was."""
        assert self.healthy.call(METADATA, 12).topics
        assert self.broker.running
        assert self.broker.pid == self.pid
        grown = resident_bytes(self.pid, peak=True) - self.resident
        assert grown < GROWTH_LIMIT_BYTES, f"memory has grown by {grown >> 20} MB"
        log = self.broker.log
        at = log.find("Traceback")
        if at >= 0:
            pytest.fail(f"the broker's log has a traceback:\n{log[max(0, at - 500) : at + 3000]}")
        assert " ERROR " not in log, [line for line in log.splitlines() if " ERROR " in line][:5]

    def leave(self) -> None:
        """All attackers go at once; whoever comes after them is served."""
        for peer in self.peers:
            peer.close()
        self.peers.clear()
        with Peer(self.broker, tls=self.tls) as late:
            assert late.call(METADATA, 12).topics


@pytest.fixture
def fuzz_seconds(request: pytest.FixtureRequest) -> float:
    """How long a fuzz test goes on."""
    return float(request.config.getoption("--fuzz-seconds"))


@pytest.fixture
def target(request: pytest.FixtureRequest, broker_factory: Callable[..., Broker]) -> Iterator[Target]:
    """A broker to attack; it must be well at the end, and stop in order."""
    yield from attacked(request, broker_factory, tls=False)


@pytest.fixture
def tls_target(request: pytest.FixtureRequest, broker_factory: Callable[..., Broker]) -> Iterator[Target]:
    """The same behind TLS."""
    yield from attacked(request, broker_factory, tls=True)


def attacked(request: pytest.FixtureRequest, broker_factory: Callable[..., Broker], *, tls: bool) -> Iterator[Target]:
    """A fixture's course."""
    allow_descriptors(8192)
    seconds = request.config.getoption("--fuzz-seconds")
    seed = random.SystemRandom().randrange(1 << 32) if seconds > 10 else 1
    request.node.add_report_section("setup", "seed", str(seed))
    broker = broker_factory(log_level="warning", security="ssl" if tls else None)
    target = Target(broker, seed, seconds, tls=tls)
    yield target
    target.check()
    target.leave()
    target.healthy.close()
    assert target.broker.stop() == 0
