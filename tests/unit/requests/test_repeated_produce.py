"""A Produce served from its bytes: what its reply waits for, what is kept of it, and what goes the general way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from core_broker import Client, World, make_topic, watch_repeats
from core_requests import produce_request

from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest
from protocol.record_batch import TRANSACTIONAL
from storage.files.errors import StorageError

VERSION = 9


class Line:
    """A client that has produced to a partition before, and a count of its requests that are served from bytes."""

    def __init__(self, flush: str = "os", **settings: str) -> None:
        self.world = World(flush, **settings)
        self.client = Client(self.world)
        make_topic(self.client, "t", 2)
        self.taken: list[bool] = []
        watch_repeats(self.world, lambda api_key, is_served: self.taken.append(is_served))
        self.send(produce_request("t", 0, b"first"))
        self.taken.clear()
        self.partition = self.world.broker.partitions.get(self.world.broker.metadata.topics["t"], 0)

    def send(self, request: ProduceRequest) -> tuple[int, int]:
        """Error code and base offset."""
        answer = self.client.call(request, VERSION).responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    def kept(self) -> Any:
        """The Ask of the only request that is kept."""
        (form,) = self.client.connection.learned[ApiKey.PRODUCE].forms.values()
        (kept,) = form.kept.values()
        return kept.ask


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.world.check_replay()


def test_reply_waits_for_the_sync_of_its_records() -> None:
    line = Line("fsync")
    line.world.auto_sync = False
    line.client.send(produce_request("t", 0, b"second"), VERSION)
    line.world.run()
    assert (line.taken, line.client.replies()) == ([True], [])
    assert line.partition.high_watermark == 1
    line.world.auto_sync = True
    line.world.run()
    assert [each.responses[0].partition_responses[0].base_offset for each in line.client.replies()] == [1]


def test_no_records_are_kept_of_a_request_whether_it_is_served_or_not(line: Line) -> None:
    again = produce_request("t", 0, b"sent twice", producer_id=7, producer_epoch=0, base_sequence=5)
    control = produce_request("t", 0, b"refused", attributes=32)
    for request in (produce_request("t", 0, b"served"), control, again, again):
        line.send(request)
        batch = line.kept().batch
        assert (batch.records, batch.stored, batch.producers) == (b"", (), None)
    assert line.taken == [True, False, True, False]


def test_reply_tells_of_a_write_that_fails_at_the_end_of_the_turn(line: Line) -> None:
    line.world.files.inject(1, forever=True)
    code, _ = line.send(produce_request("t", 0, b"lost"))
    line.world.files.heal()
    assert ErrorCode(code).retriable
    assert line.taken == [True]
    assert line.send(produce_request("t", 0, b"second")) == (0, 1)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"attributes": TRANSACTIONAL}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"attributes": 32}, ErrorCode.INVALID_RECORD),  # a control batch
        ({"producer_id": 1, "producer_epoch": 0, "base_sequence": -1}, ErrorCode.INVALID_RECORD),
    ],
)
def test_batch_that_is_refused_goes_the_general_way_and_the_next_one_does_not(
    line: Line, changed: dict[str, int], code: ErrorCode
) -> None:
    assert line.send(produce_request("t", 0, b"refused", **changed)) == (code, -1)
    assert line.send(produce_request("t", 0, b"good")) == (0, 1)
    assert line.taken == [False, True]


def test_partition_whose_log_is_out_of_use_is_opened_again(line: Line) -> None:
    line.partition.log.give_up("could not be read")
    assert line.send(produce_request("t", 0, b"second")) == (0, 1)
    assert line.send(produce_request("t", 0, b"third")) == (0, 2)
    assert line.taken == [False, True]


def test_append_that_fails_is_answered_generally_and_holds_no_reply(line: Line, monkeypatch: Any) -> None:
    def fail(*_args: Any, **_more: Any) -> None:
        raise StorageError("out of use")

    with monkeypatch.context() as patched:
        patched.setattr(type(line.partition.log), "append", fail)
        assert line.send(produce_request("t", 0, b"lost")) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert line.send(produce_request("t", 0, b"second")) == (0, 1)
    assert line.taken == [False, True]


def test_request_is_not_kept_while_its_topic_may_still_be_lost(line: Line) -> None:
    flush_state = line.world.broker.metadata_shard.flush_state
    for is_unsettled in (True, False):
        flush_state.queued = is_unsettled  # as if the turn had made the topic
        line.client.send(produce_request("t", 1, b"a"), VERSION)
        flush_state.queued = False
        line.world.run()
    line.send(produce_request("t", 1, b"a"))
    assert line.taken == [False, False, True]
