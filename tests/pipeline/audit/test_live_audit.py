"""The audit of a running broker finds what that of its files finds, and nothing that was written while it looked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from audit_fault_kit import audited
from file_broker import FileBroker
from made_logs import STATES, Logs
from test_audit_faults import CASES
from test_audit_gaps import write as write_gaps
from test_audit_kafka import GOLDEN

from broker.coordinator.transactions.transaction import State
from pipeline.audit.audit import Audit
from pipeline.audit.directory import audit_of
from pipeline.audit.running_broker import audit_of_broker
from pipeline.jobs.audit import finding_line, summary
from pipeline.live.cut import take_cut
from pipeline.source.log_starts import starts_of
from protocol.api import ApiKey

pytestmark = pytest.mark.timeout(900)

Case = tuple[str, str, int]  # kind, log, offset
STATE = f"{STATES}-0"
FILES_ALONE = {"segment"}


def live(spark: Any, broker: FileBroker) -> Audit:
    return audit_of_broker(spark, take_cut(broker.address, {}))


def rows(table: Any) -> list[dict[str, Any]]:
    """What does not depend on files, in order."""
    found = ({name: row[name] for name in row.asDict() if name not in FILES_ALONE} for row in table.collect())
    return sorted(found, key=repr)


def cases(table: Any) -> list[Case]:
    return sorted((row["kind"], row["log"], row["offset"]) for row in table.collect())


def served(directory: Path, logs: Iterable[str] = ()) -> FileBroker:
    """A broker of these files; logs: those that start at their first segment, as after retention."""
    broker = FileBroker(directory)
    broker.starts = dict(starts_of(str(directory)).offsets)
    broker.starts |= {log: min(int(path.stem) for path in (directory / log).glob("*.log")) for log in logs}
    return broker


def test_faults_are_found_each_log_is_fetched_once(spark, tmp_path):
    logs = Logs(tmp_path)
    promised = [case(logs) for case in CASES]
    with served(tmp_path, ("wrap-0", "wrapdup-0")) as broker:
        made = live(spark, broker)
        assert broker.asked.count(ApiKey.FETCH) == len(logs.ends)
    found, torn = cases(made.findings), cases(made.undecided.where("kind = 'incomplete-commit'"))
    assert sorted(found + torn) == sorted(
        (fault.kind, fault.log, fault.offset)
        for fault in promised
        if fault.kind and fault.kind != "missing-records"  # a broker does not say what it has cleaned
    )
    assert len(torn) == 1  # at the end of its log: the rest may follow
    for row in made.findings.collect():
        assert finding_line(row, as_json=False).startswith(f"{row['kind']}: {row['log']} offset {row['offset']}: ")


@pytest.mark.long
def test_faults_in_apache_kafkas_logs_are_found(spark):
    with served(GOLDEN / "unverified") as broker:
        made = live(spark, broker)
    assert cases(made.findings) == [
        ("commit-beyond-end", "__consumer_offsets-0", 3),
        ("commit-outside-transaction", "__consumer_offsets-0", 2),
        ("hanging-transaction", "__consumer_offsets-0", 5),
        ("hanging-transaction", "source-0", 0),
        ("stale-producer-epoch", "__consumer_offsets-0", 5),
    ]
    assert cases(made.undecided) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["modern", "before", "compacted", "named", "unverified"])
def test_apache_kafkas_logs_are_audited_as_their_files(spark, name):
    directory = GOLDEN / name
    with served(directory) as broker:
        made = live(spark, broker)
    wanted = audit_of(spark, str(directory))
    for table in ("findings", "undecided", "doubts", "gaps", "coverage", "unnamed"):
        assert rows(made.tables()[table]) == rows(wanted.tables()[table]), table


@pytest.mark.long
def test_gaps_are_doubts_as_in_the_files(spark, tmp_path):
    write_gaps(Logs(tmp_path))
    with served(tmp_path) as broker:
        made = live(spark, broker)
    wanted = audited(spark, tmp_path)
    for name in ("findings", "doubts", "gaps", "coverage", "unnamed"):
        assert rows(made.tables()[name]) == rows(wanted.tables()[name]), name


def test_what_may_still_come_or_has_been_removed_is_undecided(spark, tmp_path):
    """The coordinator completes `moving` between the looks, and its marker comes after the second."""
    logs = Logs(tmp_path)
    logs.transaction("before", 1, 0, "seen-0", markers=[])  # a fault below the first look
    logs.transaction("removed", 3, 0, "lost-0", markers=[])  # the marker may have been at the end, which is gone
    logs.transaction("emptied", 4, 0, "emptied-0", markers=[])  # as for this log, of which nothing is left
    (tmp_path / "emptied-0" / f"{0:020d}.log").write_bytes(b"")
    logs.state(STATE, "moving", State.ONGOING, 2, 0, {"data": [0]})
    logs.data("data-0", 2, 2, 0, 0, txn=True)
    logs.commit("__consumer_offsets-1", "torn", {0: 1, 1: 1}, size=3)
    logs.commit("__consumer_offsets-1", "next", {0: 1})
    logs.commit("__consumer_offsets-0", "wide", {0: 1, 1: 1}, size=3)  # the rest may come after the second look

    def complete(api: ApiKey, number: int) -> None:
        if (api, number) == (ApiKey.METADATA, 2):
            logs.state(STATE, "moving", State.PREPARE_COMMIT, 2, 0, {"data": [0]})
            logs.state(STATE, "moving", State.COMPLETE_COMMIT, 2, 0)
            logs.marker("data-0", 2, 0)
            broker.ends["data-0"] = 2

    with served(tmp_path) as broker:
        broker.before = complete
        broker.ends |= {"lost-0": 3, "emptied-0": 2}
        broker.starts["emptied-0"] = 2
        made = live(spark, broker)
    assert cases(made.findings) == [
        ("incomplete-commit", "__consumer_offsets-1", 0), ("transaction-without-marker", STATE, 2),
    ]  # fmt: skip  # short
    assert cases(made.undecided) == [
        ("incomplete-commit", "__consumer_offsets-0", 0),
        *(("transaction-without-marker", STATE, offset) for offset in (5, 8, 11)),
    ]
    assert all(row["lost"] > 0 for row in made.undecided.collect())
    gaps = {row["log"]: (row["from_offset"], row["to_offset"], row["reason"]) for row in made.gaps.collect()}
    assert gaps == {"lost-0": (2, 3, "removed"), "emptied-0": (0, 2, "removed")}
    told = {row["log"]: (row["end_offset"], row["records"], row["batches"]) for row in made.coverage.collect()}
    assert (told["lost-0"], told["emptied-0"], told["data-0"]) == ((3, 2, 1), (2, None, 0), (2, 2, 1))
    said = "\n".join(summary(made, 2, is_live=True))
    assert "missing records, or some written since, could explain them" in said
    assert "coverage: lost-0 lacks 1 offsets from 2 to 2: removed by the cleaner" in said


@pytest.mark.parametrize("lost", [pytest.param(0, marks=pytest.mark.long), 1])
def test_coordinator_whose_last_records_are_gone_leaves_its_producers_undecided(spark, tmp_path, lost):
    logs = Logs(tmp_path)
    logs.state(STATE, "other", State.EMPTY, 9, 0)
    logs.data("hangs-0", 2, 1, 0, 0, txn=True)
    hanging = [("hanging-transaction", "hangs-0", 0)]
    with served(tmp_path) as broker:
        broker.ends[STATE] = 1 + lost
        made = live(spark, broker)
    assert (cases(made.findings), cases(made.undecided)) == (([], hanging) if lost else (hanging, []))
