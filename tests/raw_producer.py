"""An idempotent producer without a client library: any number of batches in flight, and all unanswered ones again.

It does no I/O: `take` says which frames to send, `answered` and `disconnected` tell it what became of them. Released
clients never have more than five batches in flight; this one is what KAFKA-12207 makes possible.
"""

from __future__ import annotations

from collections import deque
from random import Random

from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.header import encode_request_header
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

VERSION = 9
MAX_SEQUENCE = 2**31 - 1
DONE = {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}


class Sent:
    """One batch, from its making to its answer."""

    __slots__ = ("base_sequence", "data", "offset", "values")

    def __init__(self, base_sequence: int, values: list[bytes], data: bytes) -> None:
        self.base_sequence = base_sequence
        self.values = values
        self.data = data
        self.offset = -1  # what the broker answered, if it knew


class RawProducer:
    """One producer id that writes to one partition."""

    def __init__(
        self, producer_id: int, topic: str, batches: int, rng: Random, *, in_flight: int = 100, first_sequence: int = 0
    ) -> None:
        self.producer_id = producer_id
        self.topic = topic
        self.in_flight = in_flight
        self._rng = rng
        self._left = batches
        self._sequence = first_sequence
        self._made = 0
        self.unanswered: deque[Sent] = deque()  # by rising sequence
        self._on_the_wire: deque[Sent] = deque()  # of the present connection
        self._to_send: deque[Sent] = deque()
        self.acknowledged: list[Sent] = []
        self.codes: dict[ErrorCode, int] = {}
        self.most_in_flight = 0

    @property
    def done(self) -> bool:
        """Whether every batch is acknowledged."""
        return not self._left and not self.unanswered

    @property
    def values(self) -> list[bytes]:
        """All that was ever to be written, in order."""
        return [b"%d/%d" % (self.producer_id, number) for number in range(self._made)]

    def take(self, most: int = 1 << 30) -> bytes:
        """Up to so many frames that may go out now."""
        if not self._on_the_wire and not self._to_send:
            self._to_send.extend(self.unanswered)  # all of them, in order
        while self._left and len(self.unanswered) < self.in_flight:
            sent = self._make()
            self.unanswered.append(sent)
            self._to_send.append(sent)
        frames = []
        while self._to_send and most:
            most -= 1
            sent = self._to_send.popleft()
            self._on_the_wire.append(sent)
            frames.append(self._frame(sent))
        self.most_in_flight = max(self.most_in_flight, len(self._on_the_wire))
        return b"".join(frames)

    def answered(self, code: int, offset: int) -> None:
        """The answer to the oldest frame on the wire."""
        sent = self._on_the_wire.popleft()
        known = ErrorCode(code)
        self.codes[known] = self.codes.get(known, 0) + 1
        if known in DONE:
            sent.offset = offset
            self.unanswered.remove(sent)
            self.acknowledged.append(sent)

    def disconnected(self) -> None:
        """Whatever was on the wire may have arrived or not."""
        self._on_the_wire.clear()
        self._to_send.clear()

    def _make(self) -> Sent:
        count = min(self._left, self._rng.randint(1, 3))
        values = [b"%d/%d" % (self.producer_id, self._made + at) for at in range(count)]
        data = build_batch(
            [(None, value) for value in values],
            leader_epoch=-1,
            timestamp_ms=1_700_000_000_000,
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        sent = Sent(self._sequence, values, data)
        self._made += count
        self._left -= 1
        self._sequence = (self._sequence + count) & MAX_SEQUENCE
        return sent

    def _frame(self, sent: Sent) -> bytes:
        parts = [PartitionProduceData(index=0, records=sent.data)]
        request = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=self.topic, partition_data=parts)]
        )
        body = encode_request_header(ProduceRequest.API_KEY, VERSION, sent.base_sequence, "raw")
        body += codec(ProduceRequest, VERSION).encode(request)
        return len(body).to_bytes(4, "big") + body


def check_records(values: list[bytes], producers: list[RawProducer]) -> None:
    """The partition's records are those of the producers: all, once, each producer's in order, at the offsets told."""
    for producer in producers:
        prefix = b"%d/" % producer.producer_id
        assert [value for value in values if value.startswith(prefix)] == producer.values
        for sent in producer.acknowledged:
            if sent.offset >= 0:
                assert values[sent.offset : sent.offset + len(sent.values)] == sent.values
    assert len(values) == sum(len(producer.values) for producer in producers)
