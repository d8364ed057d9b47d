"""The shortcut of Produce answers byte for byte what the general handler answers, or leaves the request to it."""

from __future__ import annotations

import itertools
from struct import pack
from typing import Any

import pytest
from budget import budget
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from unit.partitions.data_path import NOW_MS, OTHER_NODE, DataPath, batch

from broker.shortcuts.produce import ProduceShortcut
from protocol.codegen import codec
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.record_batch import TRANSACTIONAL

VERSIONS = range(3, 14)
CORRELATION_ID = 77


class Line:
    """What the shortcut uses of a connection."""

    def __init__(self, node_id: int = 0) -> None:
        self.node_id = node_id
        self.base = 5
        self.out: list[Any] = [b"earlier"]
        self.barred = False
        self.learned: dict[int, Any] = {}
        self.generation = 0

    def follow(self, path: DataPath) -> Line:
        """Drop what was learnt, when the generation has changed, as a connection does."""
        if self.generation != path.turn.learned.generation:
            self.generation = path.turn.learned.generation
            self.learned.clear()
        return self

    def drain(self) -> None:
        """Nothing is sent."""


def request_of(path: DataPath, version: int, *parts: tuple[int, Any], name: str = "t", **more: Any) -> ProduceRequest:
    topic = path.metadata.topics.get(name)
    label = {"topic_id": topic.topic_id if topic else bytes(15) + b"?"} if version >= 13 else {"name": name}
    data = [PartitionProduceData(index=index, records=records) for index, records in parts]
    return ProduceRequest(
        **{"acks": -1, "timeout_ms": 30000, **more}, topic_data=[TopicProduceData(**label, partition_data=data)]
    )


def framed(request: ProduceRequest, version: int, client_id: str | None = "client") -> bytes:
    text = None if client_id is None else client_id.encode()
    header = pack(">hhi", 0, version, CORRELATION_ID)
    header += pack(">h", -1) if text is None else pack(">h", len(text)) + text
    body = header + (b"\0" if version >= 9 else b"") + codec(ProduceRequest, version).encode(request)
    return pack(">i", len(body)) + body


def shortcut(path: DataPath, frame: bytes, *, before: bytes = b"", after: bytes = b"", node_id: int = 0) -> Any:
    data = before + frame + after
    stop = len(data) - len(after)
    way = ProduceShortcut(path.turn, path.partitions, path.metadata_shard)
    return way.serve(Line(node_id), data, len(before), stop, CORRELATION_ID)


def generally(path: DataPath, request: ProduceRequest, version: int) -> bytes:
    """The reply of the general handler as a frame."""
    response = path.produce_request(request, path.context(version))
    body = (b"\0" if version >= 9 else b"") + codec(ProduceResponse, version).encode(response)
    return pack(">ii", 4 + len(body), CORRELATION_ID) + body


@each_case("version, time", itertools.product(VERSIONS, ["CreateTime", "LogAppendTime"]))
@pytest.mark.parametrize("size", [1, 40, 300, 20_000, 700_000])
def test_shortcut_answers_what_the_general_handler_answers(version: int, time: str, size: int) -> None:
    paths = [DataPath(), DataPath()]
    for path in paths:
        topic = path.topic(partitions=2, message_timestamp_type=time)
        path.produce(batch(b"before", b"before"), index=1)
        path.partition(topic, 1).delete_records(1)
    request = request_of(paths[0], version, (1, batch(b"x" * size, b"y", pid=4, epoch=0, seq=0)))
    frame = framed(request, version)
    for _ in range(2):  # the second is a repetition
        assert shortcut(paths[0], frame, before=b"?" * 3, after=b"!" * 9) == generally(paths[1], request, version)
        for path in paths:
            path.end_turn()
    logs = [path.partition(path.metadata.topics["t"], 1).log for path in paths]
    assert [log.end_offset for log in logs] == [4, 4]
    slices = [log.read(0 + 1, 1 << 22, limit_offset=4) for log in logs]
    assert slices[0].read() == slices[1].read()


def test_reply_is_held_for_the_flush_in_its_slot() -> None:
    path = DataPath()
    topic = path.topic()
    frame = framed(request_of(path, 9, (0, batch(b"a"))), 9)
    assert shortcut(path, frame, before=b"12345") is not None
    ((_, slot, data, position, stop),) = path.partition(topic, 0).flush_state.held
    assert (slot, data[position:stop]) == (6, frame)
    assert path.partition(topic, 0).high_watermark == 0
    path.end_turn()
    assert path.partition(topic, 0).high_watermark == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_request_out_of_the_ordinary_is_left_alone(version: int) -> None:
    path = DataPath()
    topic = path.topic(partitions=2)
    path.topic("__consumer_offsets")
    path.topic("elsewhere", leader=OTHER_NODE)
    good = batch(b"a", pid=1, epoch=0, seq=0)
    two = request_of(path, version, (0, good))
    two.topic_data = two.topic_data * 2
    cases = [
        request_of(path, version, (0, good), acks=0),
        request_of(path, version, (0, good), acks=2),
        request_of(path, version, (0, good), transactional_id="tx"),
        request_of(path, version, (0, good), (1, good)),
        request_of(path, version, (2, good)),
        request_of(path, version, (-1, good)),
        request_of(path, version, (0, None)),
        request_of(path, version, (0, b"")),
        request_of(path, version, (0, b"junk")),
        request_of(path, version, (0, batch(b"a", pid=1, epoch=0, seq=0, attributes=TRANSACTIONAL))),
        request_of(path, version, (0, good), name="nowhere"),
        request_of(path, version, (0, good), name="__consumer_offsets"),
        request_of(path, version, (0, good), name="elsewhere"),
        two,
    ]
    for request in cases:
        assert shortcut(path, framed(request, version)) is None
    assert path.partition(topic, 0).log.end_offset == 0
    assert not path.partition(topic, 0).flush_state.queued


def test_moved_and_recreated_topics_are_looked_at_again() -> None:
    path = DataPath()
    topic = path.topic()
    frame = framed(request_of(path, 9, (0, batch(b"a"))), 9)
    way = ProduceShortcut(path.turn, path.partitions, path.metadata_shard)
    lines = {0: Line(0), OTHER_NODE: Line(OTHER_NODE)}

    def send(node_id: int = 0) -> bytes | None:
        reply = way.serve(lines[node_id].follow(path), frame, 0, len(frame), CORRELATION_ID)
        path.end_turn()
        return reply

    assert send() is not None
    path.move_leader(topic, 0, OTHER_NODE)
    assert send() is None
    assert send(OTHER_NODE) is not None
    path.delete_topic(topic)
    assert send(OTHER_NODE) is None
    again = path.topic("t", topic_id=b"another id of t.")
    assert send() is not None
    assert path.partition(again, 0).high_watermark == 1
    path.set_config("t", "max.message.bytes", "10")
    assert send() is None


def test_topic_that_is_not_durable_yet_is_left_alone() -> None:
    path = DataPath()
    topic = path.topic()
    frame = framed(request_of(path, 9, (0, batch(b"a"))), 9)
    path.metadata_shard.flush_state.queued = True
    assert shortcut(path, frame) is None
    assert path.partition(topic, 0).log.end_offset == 0
    path.metadata_shard.flush_state.queued = False
    assert shortcut(path, frame) is not None


def test_topics_without_a_client_id_work() -> None:
    path = DataPath()
    path.topic()
    for client_id in (None, "", "x" * 300):
        frame = framed(request_of(path, 9, (0, batch(b"a"))), 9, client_id)
        assert shortcut(path, frame) is not None


@given(st.data())
@budget(60)
def test_damaged_request_never_breaks_the_shortcut(data: st.DataObject) -> None:
    path = DataPath()
    topic = path.topic()
    version = data.draw(st.sampled_from(VERSIONS))
    frame = bytearray(framed(request_of(path, version, (0, batch(b"value", ts=NOW_MS))), version))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(6, min(len(frame) - 1, 90)))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(frame)), st.integers(12, len(frame))))
    reply = shortcut(path, bytes(frame[:cut]))
    assert path.partition(topic, 0).log.end_offset == (0 if reply is None else 1)
