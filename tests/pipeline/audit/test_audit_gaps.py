"""What a gap could explain is not a finding: the same faults where offsets are missing, and one where too few are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from audit_fault_kit import CO, audited
from made_logs import STATES, Logs
from pyspark.sql import functions as F

from pipeline.audit.directory import audit_of
from pipeline.jobs import audit as audit_job
from pipeline.jobs.audit import KEPT_BY, REASONS, summary

pytestmark = pytest.mark.timeout(900)


def write(logs: Logs) -> dict[str, str]:
    """Log -> the kind that cannot be decided there."""
    states = f"{STATES}-0"
    logs.skip(states, 5)  # what coordinators knew before

    logs.data("missing-0", 5, pid=1, epoch=0, sequence=0)
    logs.skip("missing-0", 2)
    logs.data("missing-0", 5, pid=1, epoch=0, sequence=7)

    logs.skip("start-0", 7)
    logs.data("start-0", 5, pid=2, epoch=0, sequence=7)

    logs.data("stray-0", 1)
    logs.marker("stray-0", 3, 0)

    logs.transaction("nomarker", 4, 0, "nomarker-0", markers=[])
    logs.skip("nomarker-0", 1)
    logs.data("nomarker-0", 1)

    logs.transaction("gone", 5, 0, "gone-0", markers=[])
    (logs.directory / "gone-0" / f"{0:020d}.log").unlink()  # a topic that was deleted
    del logs.ends["gone-0"]

    # Its first transaction is gone whole; what is left is the next one's, of the same epoch (transactions v1).
    logs.transaction("early", 7, 0, "early-0")
    logs.ends["early-0"] = 0
    (logs.directory / "early-0" / f"{0:020d}.log").unlink()
    logs.skip("early-0", 3)
    logs.transaction("early", 7, 0, "early-0", sequence=2)

    logs.commit(f"{CO}-1", "back", {0: 50}, member="m", generation=1)
    logs.skip(f"{CO}-1", 1)
    logs.commit(f"{CO}-1", "back", {0: 40}, member="m", generation=1)

    logs.classic_group(f"{CO}-2", "old", 2)
    logs.skip(f"{CO}-2", 1)
    logs.commit(f"{CO}-2", "old", {0: 2}, member="m1", generation=1)

    first = logs.commit(f"{CO}-3", "torn", {0: 1, 1: 1}, size=3)
    logs.skip(f"{CO}-3", 1)
    logs.commit(f"{CO}-3", "torn", {0: 2})
    assert first == 0

    logs.commit(f"{CO}-3", "nobody", {0: 1, 1: 1, 2: 1})
    logs.commit(f"{CO}-4", "other", {0: 1})

    logs.data("few-0", 5, pid=6, epoch=0, sequence=0)
    logs.skip("few-0", 1)
    logs.roll("few-0")
    logs.data("few-0", 5, pid=6, epoch=0, sequence=7)
    return {
        "missing-0": "missing-sequence",
        "start-0": "missing-sequence",
        "early-0": "missing-sequence",
        "stray-0": "marker-without-transaction",
        f"{CO}-1": "offset-regression",
        f"{CO}-2": "stale-generation",
        f"{CO}-3": "incomplete-commit",
        states: "transaction-without-marker",
    }


@pytest.fixture(scope="module")
def outcome(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, str]]:
    directory: Path = tmp_path_factory.mktemp("gaps")
    logs = Logs(directory)
    undecided = write(logs)
    return audited(spark, directory), undecided


def test_audit_fault_that_a_gap_could_explain_is_a_doubt_and_no_finding(outcome):
    made, undecided = outcome
    found = made.findings.collect()
    assert [(row["log"], row["offset"], row["kind"]) for row in found] == [("few-0", 6, "missing-sequence")]
    doubts = {row["log"]: (row["kind"], row["undecided"]) for row in made.doubts.collect()}
    counts = {f"{STATES}-0": 3}
    assert doubts == {log: (kind, counts.get(log, 1)) for log, kind in undecided.items()}


def test_audit_coverage_tells_what_was_not_there(outcome):
    made, _ = outcome
    rows = {row["log"]: row for row in made.coverage.collect()}
    start, missing, few = rows["start-0"], rows["missing-0"], rows["few-0"]
    assert (start["start_offset"], start["missing_inside"], start["gaps"], start["complete"]) == (7, 0, 0, False)
    assert (missing["start_offset"], missing["missing_inside"], missing["gaps"]) == (0, 2, 1)
    assert not few["complete"]
    assert rows["stray-0"]["complete"]


def test_audit_gaps_are_told_with_their_reason(outcome):
    made, _ = outcome
    rows = {
        (row["log"], row["from_offset"], row["to_offset"], row["missing"], row["reason"]) for row in made.gaps.collect()
    }
    wanted = {
        ("start-0", 0, 7, 7, "removed"),
        ("missing-0", 5, 7, 2, "removed"),
        ("few-0", 5, 6, 1, "removed"),
        ("gone-0", None, None, None, "absent"),
    }
    assert wanted <= rows


def test_summary_says_what_is_missing_and_what_cannot_be_decided(outcome, monkeypatch):
    """Also what only archives have: logs that began again, and reasons of their own."""
    made, _ = outcome
    why = F.when(F.col("log") == "start-0", "before").when(F.col("log") == "early-0", "unwaited")
    monkeypatch.setattr(audit_job, "MOST_GROUPS", 1)
    gaps = made.gaps.withColumn("reason", F.coalesce(why, "reason"))
    coverage = made.coverage.withColumn("renewed", F.col("log") == "few-0")
    told = summary(replace(made, gaps=gaps, coverage=coverage), 1, archived=True)
    assert (told[0], told[-1]) == ("transactions: 4 CompleteCommit", "1 finding: exactly-once did not hold")
    for line in (
        "coverage: missing-0 lacks 2 offsets from 5 to 6: removed by the cleaner, retention or DeleteRecords; an "
        f"archive made before would have them ({KEPT_BY})",
        "coverage: start-0 lacks 7 offsets from 0 to 6: removed before the archive began",
        "coverage: early-0 lacks 3 offsets from 0 to 2: removed before they were archived: the archive ran too seldom "
        "or without --retain-for, or more was held back than archive.retain.max.bytes allows",
        "coverage: gone-0 is named by transactions but is not there: the topic was deleted, or was not archived "
        "(archive --topics)",
        "coverage: few-0 is archived twice: its topic was deleted and created again, so nothing in it can be decided",
        f"undecided: 3 x transaction-without-marker in {STATES}-0, the first at offset 7: missing records could "
        f"explain them; {KEPT_BY}, keeps such records",
        f"undecided: 3 commits of group nobody in {CO}-3 name no member (their clients said neither a member nor a "
        "client id, or offsets.provenance was off): offset-regression, stale-generation, stale-member-epoch, "
        "commit-outside-transaction cannot be decided here",
        "undecided: the same in 2 more groups, see the table `unnamed`",
    ):
        assert line in told


def test_commits_that_name_no_member_are_counted_from_the_first(outcome):
    made, _ = outcome
    rows = {row["group"]: (row["log"], row["commits"], row["first_offset"]) for row in made.unnamed.collect()}
    assert rows == {"torn": (f"{CO}-3", 3, 0), "nobody": (f"{CO}-3", 3, 4), "other": (f"{CO}-4", 1, 0)}


@pytest.mark.parametrize("engine", ["local"], indirect=True)
def test_reasons_in_a_directory_go_by_what_its_cleaner_has_been_at(engine, tmp_path):
    logs = Logs(tmp_path)
    logs.skip("front-0", 3)
    for log in ("front-0", "hole-0", "cleaned-0", "double-0"):
        logs.data(log, 2)
    for log in ("hole-0", "cleaned-0"):
        logs.skip(log, 4)
        logs.data(log)
    logs.ends["double-0"] = 0
    logs.data("double-0", 2)
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\ncleaned 0 7\n")

    made = audit_of(engine, str(tmp_path))

    assert {row["log"]: row["reason"] for row in made.gaps.collect()} == {
        "front-0": "deleted",
        "hole-0": "hole",
        "cleaned-0": "cleaned",
    }
    told = [line for line in summary(made, 1) if line.startswith("coverage: ")]
    assert told == [
        f"coverage: cleaned-0 lacks 4 offsets from 2 to 5: {REASONS['cleaned']}",
        f"coverage: front-0 lacks 3 offsets from 0 to 2: {REASONS['deleted']}",
        f"coverage: hole-0 lacks 4 offsets from 2 to 5: {REASONS['hole']}",
        "coverage: double-0 has offsets twice, so nothing else in it can be decided",
    ]
    assert ["cleaner" in line for line in told] == [True, False, False, False]
