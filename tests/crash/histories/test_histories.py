"""The checks of histories, each on a history that is right and on one that is wrong, and the short form of the runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from histories import checks
from histories.campaign import main
from histories.checks import Final, wrong
from histories.history import Journal, Op, read


def op(kind: str, asked: int, answered: int, is_done: bool | None = True, worker: str = "w", **facts: Any) -> Op:
    return Op(kind, worker, asked, answered, is_done, facts)


def sent(value: str, offset: int, at: int = 0, **facts: Any) -> Op:
    return op("send", at, at + 1, value=value, partition=0, offset=offset, run="r", **facts)


def transaction(offset: int, *, commit: bool = True, is_done: bool | None = True) -> Op:
    values = {"0": [f"a{offset}"], "1": [f"b{offset}"]}
    return op("transaction", 1, 2, is_done, values=values, group="g", offset=offset, commit=commit)


def has(*values: str, partition: int = 0) -> dict[int, list[tuple[int, str]]]:
    return {partition: list(enumerate(values))}


def end(records: dict[int, Any], shown: dict[int, Any] | None = None, **committed: int) -> Final:
    return Final(records, records if shown is None else shown, committed)


BOTH = {0: [(0, "a1")], 1: [(0, "b1")]}
RIGHT: dict[str, tuple[list[Op], Final]] = {
    "sent": ([sent("x", 0), sent("y", 1, 2)], end(has("x", "y"))),
    "unknown at the end": ([sent("x", 0), op("send", 5, 9, None, value="y", partition=0, run="r")], end(has("x"))),
    "plain twice": ([sent("x", 1, plain=True)], end(has("x", "x"))),
    "committed": ([transaction(1)], end(BOTH, g=1)),
    "aborted": ([transaction(1, commit=False)], end(BOTH, {})),
    "unknown, shown": ([transaction(1, is_done=None)], end(BOTH, g=1)),
    "unknown, not shown": ([transaction(1, is_done=None)], end(BOTH, {})),
    "read": ([sent("x", 0), op("read", 3, 4, partition=0, records=[[0, "x"]], high=1, stable=1)], end(has("x"))),
    "two reads at once": (
        [op("read", 1, 9, partition=0, high=5, stable=5), op("read", 2, 3, partition=0, high=4, stable=4)],
        end({}),
    ),
    "register": (
        [op("commit", 1, 2, group="g", offset=1), op("fetch offset", 3, 4, group="g", offset=1)],
        end({}, g=1),
    ),
    "register, unknown": (
        [op("commit", 1, 9, None, group="g", offset=1), op("fetch offset", 3, 4, group="g", offset=1)],
        end({}),
    ),
    "made again": ([op("remake", 1, 2, topic="t", sent=["x"], found=["x"])], end({})),
}
WRONG: dict[str, tuple[str, list[Op], Final]] = {
    "twice": ("once", [sent("x", 0)], end(has("x", "x"))),
    "from nowhere": ("once", [], end(has("x"))),
    "lost": ("durable", [sent("x", 0)], end({})),
    "moved": ("durable", [sent("x", 1), sent("y", 0, 2)], end(has("x", "y"))),
    "in part": ("atomic", [transaction(1)], end(BOTH, {0: BOTH[0]}, g=1)),
    "committed and hidden": ("atomic", [transaction(1)], end(BOTH, {})),
    "aborted and shown": ("atomic", [transaction(1, commit=False)], end(BOTH, g=1)),
    "refused and shown": ("atomic", [transaction(1, is_done=False)], end(BOTH, g=1)),
    "offset of an older one": ("atomic", [transaction(1)], end(BOTH, g=0)),
    "offset of an aborted one": ("atomic", [transaction(1), transaction(2, commit=False)], end(BOTH, g=2)),
    "out of order": ("in_order", [sent("x", 1), sent("y", 0, 2)], end(has("y", "x"))),
    "a gap": ("in_order", [sent("x", 0), op("send", 3, 9, None, value="y", partition=0, run="r"), sent("z", 1, 5)],
              end(has("x", "z"))),
    "shown and gone": ("isolated", [op("read", 3, 4, partition=0, records=[[0, "x"]], high=1, stable=1)], end({})),
    "left out": ("isolated", [sent("x", 0), sent("y", 1, 2), sent("z", 2, 4),
                              op("read", 8, 9, partition=0, records=[[0, "x"], [2, "z"]], high=3, stable=3)],
                 end(has("x", "y", "z"))),
    "high goes back": ("forward", [op("read", 1, 2, partition=0, high=5, stable=4),
                                   op("read", 3, 4, partition=0, high=4, stable=4)], end({})),
    "stable goes back": ("forward", [op("read", 1, 2, partition=0, high=5, stable=4),
                                     op("read", 3, 4, partition=0, high=5, stable=3)], end({})),
    "stale": ("linear", [op("commit", 1, 2, group="g", offset=1), op("fetch offset", 3, 4, group="g", offset=-1)],
              end({}, g=1)),
    "from the future": ("linear", [op("fetch offset", 1, 2, group="g", offset=1),
                                   op("commit", 3, 4, group="g", offset=1)], end({}, g=1)),
    "read back": ("linear", [op("commit", 1, 9, None, group="g", offset=1),
                             op("fetch offset", 2, 3, group="g", offset=1),
                             op("fetch offset", 4, 5, group="g", offset=-1)], end({})),
    "commit lost": ("linear", [op("commit", 1, 2, group="g", offset=1)], end({})),
    "old content": ("remade", [op("remake", 1, 2, topic="t", sent=["x"], found=["w", "x"])], end({})),
}  # fmt: skip  # a history a line


@pytest.mark.parametrize("name", RIGHT)
def test_history_that_is_allowed_passes(name):
    assert list(wrong(*RIGHT[name])) == []


@pytest.mark.parametrize("name", WRONG)
def test_history_that_is_not_allowed_is_found_by_the_check_that_is_about_it(name):
    check, ops, final = WRONG[name]
    assert check in {sentence.partition(":")[0] for sentence in wrong(ops, final)}


def test_fork_that_differs_is_found():
    one, other = end(has("x"), g=1), end(has("x"), g=2)
    assert list(checks.as_before(one, one)) == []
    assert list(checks.as_before(one, other)) == ["as_before: committed are not those of the snapshot"]


def test_journal_is_read_back_with_what_is_unknown(tmp_path: Path):
    times = iter(range(100))
    journal = Journal(tmp_path / "w.jsonl", "w", lambda: next(times))
    first, _, third = (journal.ask("send", value=each) for each in "xyz")
    journal.end(first, True, offset=3)
    journal.end(third, None)
    with (tmp_path / "w.jsonl").open("ab") as file:
        file.write(b'{"n": 4, "ki')
    ops = read([tmp_path / "w.jsonl"])
    assert [(each.is_done, each.facts) for each in ops] == [
        (True, {"value": "x", "offset": 3}),
        (None, {"value": "y"}),
        (None, {"value": "z"}),
    ]
    assert [each.answered < 100 for each in ops] == [True, False, False]
    assert checks.counted(ops) == {"send": [1, 3]}


def test_history_in_which_nothing_was_answered_is_wrong():
    assert checks.unseen([]) == ["send", "transaction", "commit", "fetch offset", "read"]
    ops = [sent("x", 0), op("commit", 1, 9, None, group="g", offset=1)]
    assert checks.unseen(ops) == ["transaction", "commit", "fetch offset", "read"]


@pytest.mark.slow
def test_clients_of_three_libraries_see_what_kafka_promises_over_kills(tmp_path):
    assert main(["--kills", "4", "--kills-a-history", "4", "--state", str(tmp_path)]) == 0
