"""Complete offsets of logs that are read while they grow: as far as every view has been read, and not further."""

from __future__ import annotations

import shutil
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import pytest
from made_logs import STATES, Logs

from broker.coordinator.transactions.transaction import State
from pipeline.schema import TOPICS
from pipeline.source.complete_offsets import NO_MORE, CompleteOffsets, read_complete_offsets, write_complete_offsets

DATA, STATE = "d-0", f"{STATES}-0"


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    made = Logs(tmp_path / "data")
    made.state(STATE, "tx", State.ONGOING, 1, 0, {"d": [0]})
    made.data(DATA, 5, pid=1, epoch=0, sequence=0, txn=True)
    return made


def complete_offsets_of(logs: Logs) -> CompleteOffsets:
    return CompleteOffsets(
        str(logs.directory), {view: partial(fnmatchcase, pat=pattern) for view, pattern in TOPICS.items()}
    )


def read(data: int, states: int, states_of_raw: int | None = None) -> dict[str, dict[str, int]]:
    of_raw = {DATA: data, STATE: states if states_of_raw is None else states_of_raw}
    return {"raw": of_raw, "offsets": {}, "transactions": {STATE: states}}


def test_nothing_is_complete_while_a_view_is_behind(logs):
    complete_offsets = complete_offsets_of(logs)
    assert complete_offsets.complete(read(5, 0, 1)) is None
    assert complete_offsets.complete(read(4, 1)) is None
    assert complete_offsets.complete(read(5, 1)) == {DATA: 5, STATE: 1}


def test_what_came_after_the_last_snapshot_is_not_complete(logs):
    complete_offsets = complete_offsets_of(logs)
    logs.data(DATA, 3, pid=1, epoch=0, sequence=5, txn=True)
    assert complete_offsets.complete(read(5, 1)) == {DATA: 5, STATE: 1}
    logs.data("new-0", 1)
    assert complete_offsets.complete(read(6, 1)) == {DATA: 5, STATE: 1, "new-0": 0}
    assert complete_offsets.complete(read(8, 1)) == {
        DATA: 5,
        STATE: 1,
        "new-0": 0,
    }  # the second snapshot read to its end is the first with 8
    positions = read(8, 1)
    positions["raw"]["new-0"] = 1
    assert complete_offsets.complete(positions) == {DATA: 8, STATE: 1, "new-0": 1}


def test_a_log_that_is_gone_has_no_more_to_come(logs):
    complete_offsets = complete_offsets_of(logs)
    shutil.rmtree(logs.directory / DATA)
    assert complete_offsets.complete(read(2, 1), [DATA, STATE]) == {DATA: NO_MORE, STATE: 1}


def test_complete_offsets_are_stored(tmp_path):
    assert read_complete_offsets(str(tmp_path)) == {}
    write_complete_offsets(str(tmp_path), {DATA: 5})
    write_complete_offsets(str(tmp_path), {DATA: 6, STATE: 1})
    assert read_complete_offsets(str(tmp_path)) == {DATA: 6, STATE: 1}
