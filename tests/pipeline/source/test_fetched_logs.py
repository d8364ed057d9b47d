"""Logs that are fetched from a broker: the rows of its files, whatever happens to the logs meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from file_broker import FileBroker
from hypothesis import given, settings
from hypothesis import strategies as st
from made_logs import OFFSETS, STATES, Logs

from momus.client import log_client
from momus.client.log_client import NO_ID, LogPlace
from pipeline.errors import PipelineError
from pipeline.live import fetched_logs
from pipeline.live.cut import Cut, LogCut, connected, take_cut
from pipeline.live.fetched_logs import LogRange, read_range, tasks
from pipeline.schema import VIEWS, view_fields
from pipeline.source.segment_ranges import scan
from protocol.api import ApiKey
from protocol.errors import ErrorCode

ID = bytes(range(16))
FILES_ALONE = ("segment", "position", "topic_id")


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    """One transaction with offsets, data of several kinds, and a log of two segments."""
    made = Logs(tmp_path / "data")
    made.data("plain-0", 3)
    made.data("plain-0", 2)
    made.roll("plain-0")
    made.data("plain-0", 4)
    made.transaction("tx", 1, 0, "data-1")
    made.commit(f"{OFFSETS}-0", "group", {0: 5, 1: 6}, member="m", generation=1)
    return made


@pytest.fixture
def broker(logs: Logs) -> Iterator[FileBroker]:
    with FileBroker(logs.directory, batches_a_fetch=2) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_client, "_PAUSE_S", 0.001)


def cut_of(broker: FileBroker) -> Cut:
    return take_cut(broker.address, {})


def rows(cut: Cut, records: str = "raw", topic: str = "*", columns: Any = None) -> list[dict[str, Any]]:
    found = []
    with connected(cut.bootstrap, cut.settings) as client:
        for task in tasks(cut.logs, topic):
            for each in task:
                for batch in read_range(client, each, records, columns):
                    assert batch.schema.equals(view_fields(records, columns))
                    found += batch.to_pylist()
    return found


def files(directory: Path, records: str = "raw", topic: str | None = None) -> list[dict[str, Any]]:
    return [row for batch in scan(str(directory), records, topic) for row in batch.to_pylist()]


def same(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what only files have."""
    return [{name: value for name, value in row.items() if name not in FILES_ALONE} for row in found]


def offsets(found: list[dict[str, Any]], log: str = "plain-0") -> list[int]:
    return [row["offset"] for row in found if row["log"] == log]


TOPICS = {"raw": "*", "offsets": OFFSETS, "transactions": STATES}


@pytest.mark.parametrize("records", list(VIEWS))
@pytest.mark.parametrize("topic_id", [NO_ID, ID])
@pytest.mark.parametrize("task_offsets", [1, 2, 1 << 20])
def test_rows_are_those_of_the_files(logs, broker, records, topic_id, task_offsets, monkeypatch):
    monkeypatch.setattr(fetched_logs, "TASK_OFFSETS", task_offsets)
    if topic_id != NO_ID:
        broker.ids = {log.rpartition("-")[0]: ID[:15] + bytes([n]) for n, log in enumerate(logs.ends)}
    found = rows(cut_of(broker), records, TOPICS[records])
    assert found
    assert same(found) == same(files(logs.directory, records))
    assert {row["segment"] for row in found} == {row["position"] for row in found} == {-1}
    assert {row["topic_id"] is None for row in found} == {topic_id == NO_ID}


def test_only_the_named_columns_are_decoded(broker):
    (row, *_) = rows(cut_of(broker), "raw", "plain", ("offset", "position"))
    assert row == {"offset": 0, "position": -1}


def test_topic_id_is_in_kafkas_text_form():
    assert LogCut(LogPlace("t", 0, ID), 0, 0, 0).topic_id == "AAECAwQFBgcICQoLDA0ODw"
    assert LogCut(LogPlace("t", 0), 0, 0, 0).topic_id is None


def test_rows_below_the_logs_start_are_deleted_also_those_of_a_batch_that_goes_on(broker):
    broker.starts["plain-0"] = 4  # in the middle of the second batch
    found = rows(cut_of(broker), columns=("log", "key"), topic="plain")
    assert [row["key"] for row in found] == [b"k1", b"k0", b"k1", b"k2", b"k3"]


def test_what_is_written_after_the_second_look_is_not_read(logs, broker):
    cut = cut_of(broker)
    logs.data("plain-0", 7)
    assert offsets(rows(cut)) == list(range(9))


def test_ends_are_all_looked_at_before_any_is_looked_at_again(logs, broker):
    def write(api: ApiKey, number: int) -> None:
        if api == ApiKey.LIST_OFFSETS:
            logs.data("plain-0", 10)
        if api == ApiKey.METADATA and number == 2:
            logs.data("new-0", 1)

    broker.before = write
    found = {each.log: (each.first, each.seen, each.end) for each in cut_of(broker).logs}
    assert found["plain-0"] == (0, 19, 29)
    assert found["new-0"] == (0, 0, 1)
    assert [api for api in broker.asked if api != ApiKey.API_VERSIONS] == [
        ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.LIST_OFFSETS,
    ]  # fmt: skip  # one a look, in order


def test_start_that_moved_above_the_end_looked_at_leaves_nothing_to_read(logs, broker):
    def delete(api: ApiKey, number: int) -> None:
        if (api, number) == (ApiKey.LIST_OFFSETS, 3):
            logs.data("plain-0", 3)
            broker.starts["plain-0"] = 12

    broker.before = delete
    cut = cut_of(broker)
    assert {each.log: (each.first, each.end) for each in cut.logs}["plain-0"] == (9, 9)
    assert offsets(rows(cut)) == []


def test_offsets_that_retention_removes_meanwhile_are_not_there(broker):
    cut = cut_of(broker)
    broker.starts["plain-0"] = 5
    assert offsets(rows(cut)) == [5, 6, 7, 8]


def test_end_of_a_log_whose_last_records_the_cleaner_has_removed(broker):
    broker.ends["plain-0"] = 20
    cut = cut_of(broker)
    assert {each.log: each.end for each in cut.logs}["plain-0"] == 20
    assert offsets(rows(cut)) == list(range(9))


def test_log_that_was_cut_is_an_error_and_not_a_shorter_log(logs, broker):
    cut = cut_of(broker)
    (logs.directory / "plain-0" / f"{5:020d}.log").unlink()
    with pytest.raises(PipelineError, match=r"plain-0 was deleted or cut .* run the job again: it ends at 5, .* at 9"):
        rows(cut)


def test_log_that_was_cut_below_what_is_asked_for_is_an_error(logs, broker, monkeypatch):
    monkeypatch.setattr(fetched_logs, "TASK_OFFSETS", 7)
    cut = cut_of(broker)
    for path in (logs.directory / "plain-0").glob("*.log"):
        path.unlink()
    second = next(part for task in tasks(cut.logs, "plain") for part in task if part.begin == 7)
    with connected(cut.bootstrap, {}) as client, pytest.raises(PipelineError, match="OFFSET_OUT_OF_RANGE"):
        list(read_range(client, second, "raw", None))


def with_little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client sees four seconds pass with each look at the clock: it asks a few times, however slow the machine is."""
    clock = SimpleNamespace(monotonic=iter(range(0, 400, 4)).__next__, sleep=lambda _s: None)
    monkeypatch.setattr(log_client, "time", clock)


def test_topic_created_again_meanwhile_is_an_error(broker, monkeypatch):
    with_little_patience(monkeypatch)
    broker.ids = {"plain": ID}
    cut = cut_of(broker)
    broker.ids = {"plain": ID[::-1]}
    with pytest.raises(PipelineError, match=r"plain-0 was deleted or cut .* UNKNOWN_TOPIC_ID"):
        rows(cut, topic="plain")


@pytest.mark.parametrize("at", [30, 70, -1])  # in the first batch's header, its records, and the last batch
def test_damaged_batch_is_an_error_with_its_offset(broker, at):
    cut = cut_of(broker)

    def damage(data: bytes) -> bytes:
        place = at % len(data) if data else 0
        return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] if data else data

    broker.damage = damage
    offset = 0 if at > 0 else 5  # an answer holds two batches: whatever comes last can be fetched, but for the last one
    with pytest.raises(PipelineError, match=f"plain-0: the broker sends a batch with a wrong CRC at offset {offset}"):
        rows(cut, topic="plain")


def test_batch_that_never_comes_whole_is_an_error(broker):
    cut = cut_of(broker)
    broker.damage = lambda data: data[:70]
    with pytest.raises(PipelineError, match="plain-0: the broker sends a batch that is not whole at offset 0"):
        rows(cut, topic="plain")


def test_batch_that_is_cut_off_at_the_end_of_an_answer_is_fetched_again(broker):
    cut = cut_of(broker)
    broker.damage = lambda data: data[:-1] if has_two_batches(data) else data
    assert offsets(rows(cut)) == list(range(9))


def has_two_batches(data: bytes) -> bool:
    return len(data) > int.from_bytes(data[8:12], "big") + 12


PASSING = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
]


@pytest.mark.parametrize("api", [ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA])
@pytest.mark.parametrize("code", PASSING)
def test_leader_that_moves_is_found_again(broker, api, code):
    broker.before = lambda asked, number: code if (asked, number) == (api, 1) else None
    assert offsets(rows(cut_of(broker))) == list(range(9))
    assert broker.asked.count(ApiKey.METADATA) > 2


def test_error_that_does_not_pass_is_told_at_once(broker):
    cut = cut_of(broker)
    broker.before = lambda api, number: ErrorCode.TOPIC_AUTHORIZATION_FAILED if api == ApiKey.FETCH else None
    with pytest.raises(PipelineError, match="TOPIC_AUTHORIZATION_FAILED"):
        rows(cut)
    assert broker.asked.count(ApiKey.FETCH) == 1


def test_error_that_should_pass_and_does_not_is_told_in_the_end(broker, monkeypatch):
    with_little_patience(monkeypatch)
    cut = cut_of(broker)
    broker.before = lambda api, number: ErrorCode.NOT_LEADER_OR_FOLLOWER if api == ApiKey.FETCH else None
    with pytest.raises(PipelineError, match="NOT_LEADER_OR_FOLLOWER"):
        rows(cut)
    assert broker.asked.count(ApiKey.FETCH) > 1


def test_connection_that_breaks_is_made_again(broker):
    cut = cut_of(broker)

    def break_one(api: ApiKey, number: int) -> None:
        if (api, number) == (ApiKey.FETCH, 2):
            raise ConnectionResetError  # ends this connection

    broker._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # socketserver prints it
    broker.before = break_one
    assert offsets(rows(cut)) == list(range(9))


def test_broker_that_is_not_there_is_told(tmp_path):
    with FileBroker(tmp_path) as gone:
        address = gone.address
    with pytest.raises(PipelineError, match=f"the broker at {address}: cannot reach {address}"):
        take_cut(address, {})


def test_broker_without_topics_is_told(tmp_path):
    with FileBroker(tmp_path) as empty, pytest.raises(PipelineError, match="shows no topic to this user"):
        take_cut(empty.address, {})


def test_topic_that_cannot_be_described_is_told(broker):
    broker.before = lambda api, _: ErrorCode.TOPIC_AUTHORIZATION_FAILED if api == ApiKey.METADATA else None
    with pytest.raises(PipelineError, match=r"topic .*TOPIC_AUTHORIZATION_FAILED"):
        take_cut(broker.address, {})


def log(name: str, first: int, end: int) -> LogCut:
    return LogCut(LogPlace(name, 0), first, end, end)


def spans(found: list[tuple[LogRange, ...]]) -> list[list[tuple[str, int, int]]]:
    return [[(each.cut.log, each.begin, each.end) for each in task] for task in found]


def test_tasks_divide_large_logs_and_join_small_ones(monkeypatch):
    monkeypatch.setattr(fetched_logs, "TASK_OFFSETS", 10)
    assert spans(tasks([log("a", 3, 25), log("b", 0, 4), log("c", 0, 0), log("d", 5, 9), log("e", 0, 3)])) == [
        [("a-0", 3, 13)], [("a-0", 13, 23)], [("a-0", 23, 25), ("b-0", 0, 4), ("d-0", 5, 9)], [("e-0", 0, 3)],
    ]  # fmt: skip  # a task a line
    assert spans(tasks([log("a", 0, 1), log("b", 0, 1)], "*", ("a",))) == [[("b-0", 0, 1)]]
    assert spans(tasks([log("a", 0, 1), log("b", 0, 1)], "a*")) == [[("a-0", 0, 1)]]
    assert tasks([log("a", 4, 4)]) == []


def test_task_has_a_bounded_number_of_logs(monkeypatch):
    monkeypatch.setattr(fetched_logs, "TASK_LOGS", 2)
    assert [len(each) for each in tasks([log(f"t{n}", 0, 1) for n in range(5)])] == [2, 2, 1]


@given(st.integers(0, 1 << 30))
@settings(max_examples=25, deadline=None)
def test_every_record_is_in_one_range_whatever_their_bounds(tmp_path_factory, seed):
    """Batches of one to five offsets, of which the cleaner has removed some, in ranges of a few offsets."""
    chance = random.Random(seed)
    made = Logs(tmp_path_factory.mktemp("random"))
    for _ in range(chance.randint(1, 25)):
        if chance.random() < 0.3:
            made.skip("t-0", chance.randint(1, 6))
        else:
            made.data("t-0", chance.randint(1, 5))
    if not made.directory.joinpath("t-0").is_dir():
        return
    with FileBroker(made.directory, batches_a_fetch=chance.randint(1, 4)) as broker:
        broker.ends["t-0"] = made.ends["t-0"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fetched_logs, "TASK_OFFSETS", chance.randint(1, 8))
            found = rows(take_cut(broker.address, {}), columns=("log", "offset"))
    assert offsets(found, "t-0") == offsets(files(made.directory), "t-0")
