"""Incremental fetch sessions: what is asked and told only once, and who is evicted."""

from __future__ import annotations

from typing import Any

import pytest
from unit.partitions.data_path import DataPath, batch, values_of

from broker.partitions.fetch_session import EVICTION_MS, FetchSessions, Wanted, next_epoch
from broker.turn.decision import LATER
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from storage.files.env import Rng


@pytest.fixture
def path() -> DataPath:
    path = DataPath()
    path.topic("a", partitions=3)
    path.topic("b")
    return path


def ask(path: DataPath, session_id: int, epoch: int, topics: Any = (), forget: Any = (), **more: Any) -> Any:
    version = more.pop("version", 13)
    request = FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=list(topics),
        forgotten_topics_data=list(forget),
        **{"max_bytes": 1 << 26, "max_wait_ms": 0, "min_bytes": 1, **more},
    )
    return path.fetch_request(request, version)


def begin(path: DataPath, *topics: Any, version: int = 13) -> int:
    """A new session over these; its id."""
    response = ask(path, 0, 0, topics, version=version)
    assert response.error_code == 0
    assert response.session_id > 0
    return int(response.session_id)


def told(response: Any) -> list[tuple[str, int]]:
    return [(t.topic, p.partition_index) for t in response.responses for p in t.partitions]


def test_first_answer_tells_of_every_partition(path: DataPath) -> None:
    response = ask(path, 0, 0, [path.wanted("a", (0, 0), (1, 0)), path.wanted("b", (0, 0))])
    assert told(response) == [("a", 0), ("a", 1), ("b", 0)]


def test_later_answers_tell_only_news(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0), (1, 0)), path.wanted("b", (0, 0)))
    assert told(ask(path, session, 1)) == []
    path.produce(batch(b"x"), "a", 1)
    response = ask(path, session, 2)
    assert (response.session_id, told(response)) == (session, [("a", 1)])
    assert values_of(response.responses[0].partitions[0].records) == [b"x"]


def test_records_are_sent_again_until_the_client_moves_on(path: DataPath) -> None:
    path.produce(batch(b"x"), "a", 0)
    session = begin(path, path.wanted("a", (0, 0)))
    assert told(ask(path, session, 1)) == [("a", 0)]
    assert told(ask(path, session, 2, [path.wanted("a", (0, 1))])) == []


def test_moved_log_start_is_news(path: DataPath) -> None:
    path.produce(batch(b"x"), "a", 0)
    session = begin(path, path.wanted("a", (0, 1)))
    path.partition(path.metadata.topics["a"], 0).delete_records(1)
    assert told(ask(path, session, 1)) == [("a", 0)]
    assert told(ask(path, session, 2)) == []


def test_error_is_told_each_time_and_the_watermark_after_it(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 99)), path.wanted("b", (0, 0)))
    assert told(ask(path, session, 1)) == [("a", 0)]
    assert told(ask(path, session, 2)) == [("a", 0)]
    assert told(ask(path, session, 3, [path.wanted("a", (0, 0))])) == [("a", 0)]
    assert told(ask(path, session, 4)) == []


def test_partitions_are_added_and_forgotten(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0)))
    assert told(ask(path, session, 1, [path.wanted("a", (2, 0))])) == [("a", 2)]
    path.produce(batch(b"x"), "a", 0)
    path.produce(batch(b"x"), "a", 2)
    assert told(ask(path, session, 2, forget=[path.forgotten("a", 0)])) == [("a", 2)]


def test_partition_that_got_records_is_served_last_next_time(path: DataPath) -> None:
    for index in range(3):
        path.produce(batch(b"x" * 100), "a", index)
    session = begin(path, path.wanted("a", (0, 0), (1, 0), (2, 0)))
    seen = []
    for epoch in range(1, 7):
        response = ask(path, session, epoch, max_bytes=10)
        assert len(response.responses) == 1
        seen += [p.partition_index for p in response.responses[0].partitions if p.records]
    assert seen == [0, 1, 2, 0, 1, 2]


def test_emptied_session_is_closed(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0)))
    response = ask(path, session, 1, forget=[path.forgotten("a", 0)])
    assert (response.error_code, response.session_id) == (0, 0)
    assert ask(path, session, 2).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_unknown_session_is_not_found(path: DataPath) -> None:
    response = ask(path, 12345, 1)
    assert (response.error_code, response.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


def test_epoch_must_follow(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0)))
    for epoch in (2, 7):
        assert ask(path, session, epoch).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(path, session, 1).error_code == 0
    assert ask(path, session, 1).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_session_keeps_to_names_or_to_ids(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0)), version=12)
    assert ask(path, session, 1, version=13).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    session = begin(path, path.wanted("a", (0, 0)), version=13)
    assert ask(path, session, 1, version=12).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_full_fetch_replaces_the_session_it_names(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0)))
    again = ask(path, session, 0, [path.wanted("b", (0, 0))])
    assert again.session_id not in (0, session)
    assert ask(path, session, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    closed = ask(path, again.session_id, -1, [path.wanted("b", (0, 0))])
    assert (closed.session_id, len(path.fetch_sessions)) == (0, 0)


def test_parked_session_fetch_tells_what_came(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0), (1, 0)))
    assert ask(path, session, 1, max_wait_ms=500) is LATER
    path.produce(batch(b"x"), "a", 1)
    ((_, response),) = path.answers
    assert (response.session_id, told(response)) == (session, [("a", 1)])


def test_parked_session_fetch_that_was_overtaken_is_refused(path: DataPath) -> None:
    session = begin(path, path.wanted("a", (0, 0)))
    assert ask(path, session, 1, max_wait_ms=500) is LATER
    assert ask(path, session, 2).error_code == 0
    path.produce(batch(b"x"), "a", 0)
    ((_, response),) = path.answers
    assert (response.error_code, response.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])


def test_recreated_topic_is_inconsistent_with_its_old_id(path: DataPath) -> None:
    session = begin(path, path.wanted("b", (0, 0)))
    path.delete_topic(path.metadata.topics["b"])
    response = ask(path, session, 1)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    path.topic("b", topic_id=b"another id of b.")
    response = ask(path, session, 2)
    assert response.responses[0].partitions[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_topic_id_may_become_known_later(path: DataPath) -> None:
    late = path.wanted("late", (0, 0))
    late.topic_id = b"late".ljust(16, b"\1")
    session = begin(path, late)
    assert ask(path, session, 1).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    path.topic("late")
    path.produce(batch(b"x"), "late")
    assert values_of(ask(path, session, 2).responses[0].partitions[0].records) == [b"x"]


# ---------------------------------------------------------------- the cache


def wanted(count: int) -> dict[Any, Wanted]:
    return {("t", i): Wanted("t", bytes(16), i, 0, 1, -1, -1) for i in range(count)}


def test_epochs_wrap_to_one() -> None:
    assert [next_epoch(e) for e in (0, 1, 2**31 - 2, 2**31 - 1)] == [1, 2, 2**31 - 1, 1]


def test_full_cache_of_young_sessions_turns_newcomers_away() -> None:
    sessions = FetchSessions(2)
    rng = Rng(1)
    assert all(sessions.create(wanted(1), False, 0, rng) for _ in range(2))
    assert sessions.create(wanted(9), False, EVICTION_MS, rng) == 0


def test_idle_session_is_evicted_first() -> None:
    sessions = FetchSessions(2)
    rng = Rng(1)
    first, second = (sessions.create(wanted(5), False, 0, rng) for _ in range(2))
    session = sessions.get(first)
    assert session is not None
    sessions.touch(session, 10)
    assert sessions.create(wanted(1), False, EVICTION_MS + 1, rng) > 0
    assert sessions.get(second) is None
    assert sessions.get(first) is not None


def test_old_session_gives_way_only_to_a_larger_one() -> None:
    sessions = FetchSessions(1)
    rng = Rng(1)
    old = sessions.get(sessions.create(wanted(3), False, 0, rng))
    assert old is not None
    sessions.touch(old, EVICTION_MS + 1)
    assert sessions.create(wanted(3), False, EVICTION_MS + 2, rng) == 0
    assert sessions.create(wanted(4), False, EVICTION_MS + 2, rng) > 0


def test_no_slots_mean_no_sessions() -> None:
    assert FetchSessions(0).create(wanted(1), False, 0, Rng(1)) == 0
