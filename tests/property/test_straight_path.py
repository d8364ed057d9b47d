"""The way past the transport is a shortcut: a client gets the bytes that a transport alone would have sent.

Random Fetches of several partitions with other requests around them, slow readers, and in the middle of what is being
sent appended records, failed writes, deleted topics, moved log starts, new and removed segments.
"""

from __future__ import annotations

from typing import Any

import core_broker
import pytest
from budget import budget
from core_broker import Client, World, frame, make_topic
from core_requests import fetch_request, produce_request
from hypothesis import given
from hypothesis import strategies as st
from straight_kit import SocketClient, end_all
from unit.wire.replies_kit import METADATA

from broker.shell.sockets.straight import IS_KNOWN
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from storage.clock.manual_clock import ManualClock
from storage.files.disk import SystemFiles
from storage.files.env import Env, Rng

pytestmark = pytest.mark.skipif(not IS_KNOWN, reason="bytes go past the transport on Linux alone")

PLACES = [("a", 0), ("a", 1), ("b", 0)]
PLACE = st.sampled_from(PLACES)
LIMIT = st.sampled_from([1 << 26, 400_000])
FETCH = st.tuples(st.lists(PLACE, min_size=1, max_size=3, unique=True), st.integers(0, 3), LIMIT)
STEP = st.one_of(
    st.tuples(st.just("append"), PLACE, st.sampled_from([10, 5_000, 70_000, 300_000])),
    st.tuples(st.just("ask"), st.lists(st.one_of(FETCH, FETCH, st.none()), min_size=1, max_size=4)),
    st.tuples(st.just("read"), st.sampled_from([1, 1000, 40_000, 500_000])),
    st.tuples(st.sampled_from(["delete topic", "delete records", "roll", "retain", "failed write"])),
)


class Both:
    """The same requests on two connections of one broker: one past its transport, one through it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.admin = Client(world)
        for name, count in (("a", 2), ("b", 1)):
            make_topic(self.admin, name, count)
        self.fast, self.plain = SocketClient(world), Client(world)
        for place in PLACES[:2]:
            self.perform("append", place, 300_000)

    def ask(self, wishes: list[tuple[list[tuple[str, int]], int, int] | None]) -> None:
        """Requests that come together; one that came while others leave would be served later than on the transport."""
        self.fast.read_all()
        for client in (self.fast, self.plain):
            data = b""
            for number, wish in enumerate(wishes):
                request: Any = METADATA
                if wish is not None:
                    places, offset, limit = wish
                    request = fetch_request(*places[0], offset)
                    for place in places[1:]:
                        request.topics += fetch_request(*place, offset).topics
                    for topic in request.topics:
                        topic.partitions[0].partition_max_bytes = limit
                data += frame(request, 12, number)
            client.send_bytes(data)
        self.world.run()

    def partition(self, place: tuple[str, int]) -> Any:
        topic = self.world.broker.metadata.topics.get(place[0])
        return None if topic is None else self.world.broker.partitions.get(topic, place[1])

    def perform(self, step: str, *more: Any) -> None:
        first = self.partition(PLACES[0])
        if step in ("roll", "retain", "failed write") and not first.log.end_offset:
            return
        if step == "append":
            if self.partition(more[0]) is not None:
                self.admin.call(produce_request(*more[0], bytes([self.world.clock.now_ms() % 251]) * more[1]), 9)
        elif step == "ask":
            self.ask(more[0])
        elif step == "read":
            self.fast.read(more[0])
            self.world.run()
        elif step == "delete topic":
            wanted = DeleteTopicState(name="b", topic_id=bytes(16))
            self.admin.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6)
        elif step == "delete records":
            first.delete_records(min(first.log.log_start_offset + 1, first.high_watermark))
        elif step == "retain":
            first.delete_records(first.high_watermark)
            first.log.roll()
            first.log.retain(self.world.clock.now_ms())
        elif step == "roll":
            first.log.roll()
        else:  # what nobody could read is cut off
            end = first.log.end_offset
            first.log.append((bytes(9000),), base_offset=end, last_offset=end, max_timestamp_ms=1, size=9000)
            first.log.cut_back(end)
        self.world.clock.advance(1)


@pytest.mark.parametrize("disk", ["memory", "disk"])
def test_bytes_past_the_transport_are_those_that_it_would_have_sent(disk, tmp_path, monkeypatch) -> None:
    runs = 0
    straight_bytes = 0

    @budget(20)
    @given(steps=st.lists(STEP, min_size=5, max_size=20))
    def run(steps: list[tuple[Any, ...]]) -> None:
        nonlocal runs, straight_bytes
        runs += 1
        monkeypatch.setattr(core_broker, "DATA", str(tmp_path / f"data-{runs}"))
        on_disk = Env(ManualClock(), Rng(1), SystemFiles())  # type: ignore[arg-type]  # it moves as a clock does
        world = World("os", on_disk if disk == "disk" else None)
        try:
            both = Both(world)
            for step in steps:
                both.perform(*step)
            both.fast.read_all()
            assert not both.fast.closed
            assert bytes(both.fast.made.received) == bytes(both.plain.transport.received)
            straight_bytes += both.fast.straight_bytes
        finally:
            end_all(world)
            world.broker.close()
            world.env.files.close()

    run()
    assert straight_bytes > 0, "or nothing was compared"
