"""Fetches that wait: for how many bytes, until when, and what wakes or ends them."""

from __future__ import annotations

import pytest
from fetch_kit import long_poll, only
from unit.partitions.data_path import NOW_MS, DataPath, batch, values_of
from unit.partitions.data_path_parts import OTHER_NODE

from broker.turn.decision import LATER
from protocol.errors import ErrorCode

# ---------------------------------------------------------------- waiting


def test_fetch_without_records_waits_and_is_answered_by_the_next_write(path: DataPath) -> None:
    topic = path.topic()
    assert long_poll(path, ("t", 0, 0)) is LATER
    path.produce(batch(b"a"), end_turn=False)
    assert not path.answers
    path.end_turn()
    ((token, response),) = path.answers
    assert token == (path.connection, 0)
    assert values_of(only(response).records) == [b"a"]
    assert not path.partition(topic, 0).waiters
    assert not path.connection.fetch_waits
    path.advance(1000)
    path.ring()
    assert len(path.answers) == 1


def test_fetch_is_answered_empty_at_its_deadline(path: DataPath) -> None:
    topic = path.topic()
    assert long_poll(path, ("t", 0, 0)) is LATER
    assert [due_ms for due_ms, _ in path.alarms] == [NOW_MS + 500]
    path.advance(500)
    path.ring()
    ((_, response),) = path.answers
    assert len(only(response).records) == 0
    assert not path.partition(topic, 0).waiters


@pytest.mark.parametrize("max_wait_ms", [0, -1])
def test_fetch_that_does_not_want_to_wait_is_answered_at_once(path: DataPath, max_wait_ms: int) -> None:
    path.topic()
    assert len(only(long_poll(path, ("t", 0, 0), max_wait_ms=max_wait_ms)).records) == 0


def test_fetch_of_no_bytes_is_answered_at_once(path: DataPath) -> None:
    path.topic()
    assert long_poll(path, ("t", 0, 0), min_bytes=0) is not LATER
    assert long_poll(path, ("t", 0, 0), max_bytes=0) is not LATER


def test_fetch_of_nothing_is_answered_at_once(path: DataPath) -> None:
    assert long_poll(path).responses == []


def test_fetch_waits_until_min_bytes_have_come(path: DataPath) -> None:
    path.topic(partitions=2)
    size = len(batch(b"x" * 100))
    path.produce(batch(b"x" * 100))
    assert long_poll(path, ("t", 0, 0), ("t", 1, 0), min_bytes=3 * size) is LATER
    path.produce(batch(b"x" * 100), index=1)
    assert not path.answers
    path.produce(batch(b"x" * 100), index=1)
    ((_, response),) = path.answers
    assert [len(p.records) for p in response.responses[0].partitions] == [size, 2 * size]


def test_min_bytes_above_the_limit_are_not_waited_for(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"x" * 100))
    assert long_poll(path, ("t", 0, 0), min_bytes=1 << 30, max_bytes=50) is not LATER


def test_error_of_one_partition_is_answered_at_once(path: DataPath) -> None:
    path.topic(partitions=2)
    assert long_poll(path, ("t", 0, 0), ("t", 1, 99)) is not LATER


def test_unknown_partition_does_not_keep_the_others_from_waiting(path: DataPath) -> None:
    path.topic()
    assert long_poll(path, ("nowhere", 0, 0)) is not LATER
    assert long_poll(path, ("nowhere", 0, 0), ("t", 0, 0)) is LATER
    path.produce(batch(b"a"))
    ((_, response),) = path.answers
    assert {t.topic: t.partitions[0].error_code for t in response.responses} == {
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "t": 0,
    }


def test_write_elsewhere_wakes_nobody(path: DataPath) -> None:
    path.topic(partitions=2)
    assert long_poll(path, ("t", 0, 0)) is LATER
    path.produce(batch(b"a"), index=1)
    assert not path.answers


def test_many_waiters_are_all_answered(path: DataPath) -> None:
    topic = path.topic()
    for _ in range(1000):
        assert long_poll(path, ("t", 0, 0)) is LATER
    path.produce(batch(b"a"))
    assert [token[1] for token, _ in path.answers] == list(range(1000))
    assert not path.partition(topic, 0).waiters


def test_cancelled_wait_leaves_nothing_behind(path: DataPath) -> None:
    topic = path.topic(partitions=2)
    assert long_poll(path, ("t", 0, 0), ("t", 1, 0)) is LATER
    (wait,) = path.connection.fetch_waits.values()
    wait.cancel()
    assert not path.connection.fetch_waits
    assert not path.partition(topic, 0).waiters
    assert not path.partition(topic, 1).waiters
    path.produce(batch(b"a"))
    path.advance(500)
    path.ring()
    assert not path.answers


def test_deleted_topic_ends_the_wait(path: DataPath) -> None:
    topic = path.topic()
    assert long_poll(path, ("t", 0, 0)) is LATER
    path.delete_topic(topic)
    ((_, response),) = path.answers
    assert only(response).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_moved_leadership_ends_the_wait(path: DataPath) -> None:
    topic = path.topic()
    assert long_poll(path, ("t", 0, 0)) is LATER
    path.move_leader(topic, 0, OTHER_NODE)
    path.partition(topic, 0).configure(topic, path.metadata)
    ((_, response),) = path.answers
    assert only(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_lost_write_wakes_nobody_with_records(path: DataPath) -> None:
    path.topic()
    assert long_poll(path, ("t", 0, 0)) is LATER
    path.env.files.inject(1)
    path.produce(batch(b"lost"))
    path.env.files.heal()
    assert not path.answers
    path.produce(batch(b"kept"))
    ((_, response),) = path.answers
    assert values_of(only(response).records) == [b"kept"]
