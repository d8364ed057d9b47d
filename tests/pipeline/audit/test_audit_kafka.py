"""What an audit finds in logs of Apache Kafka: nothing where its clients behaved, and each fault that it let happen.

tests/e2e/make_kafka_audit_logs.py has Apache Kafka write the folders of `kafka`; it says what is in each, and by which
version.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from job_kit import run

from pipeline.audit.directory import audit_of
from pipeline.jobs import audit as audit_job

GOLDEN = Path(__file__).parent / "kafka"
OFFSETS, STATES = "__consumer_offsets-0", "__transaction_state-0"
Place = tuple[str, str, int]  # kind, log, offset


def found(made: Any) -> list[Place]:
    """What was found, and where."""
    return sorted((row["kind"], row["log"], row["offset"]) for row in made.findings.collect())


def decisions(transactions: Any) -> dict[str, int]:
    """How many were decided so."""
    return {row["decision"]: row["count"] for row in transactions.groupBy("decision").count().collect()}


def unnamed(made: Any) -> set[str]:
    """Groups whose commits name no member."""
    return {row["group"] for row in made.unnamed.collect()}


def test_nothing_is_found_where_clients_behaved(spark):
    made = audit_of(spark, str(GOLDEN / "modern"))
    assert found(made) == []
    assert made.doubts.collect() == []
    assert made.gaps.collect() == []
    assert unnamed(made) == {"classic", "modern", "copier", "streaming"}
    assert decisions(made.transactions) == {"COMMIT": 5, "ABORT": 2}
    told = audit_job.summary(made, 0)
    assert told[0] == "transactions: 2 CompleteAbort, 5 CompleteCommit"
    assert told[-1] == (
        "Exactly-once held: no finding in 7 transactions, 7 logs complete; the commits of 4 groups name no member, so "
        "who made them was not checked"
    )


@pytest.mark.long
def test_what_the_cleaner_removed_is_told_and_not_found(spark):
    made = audit_of(spark, str(GOLDEN / "compacted"))
    assert found(made) == []
    assert {row["log"] for row in made.gaps.collect()} == {"latest-0"}
    undecided = {row["kind"]: row["log"] for row in made.doubts.collect()}
    assert undecided == {
        "missing-sequence": "latest-0",
        "transaction-without-marker": STATES,
        "transaction-without-records": "latest-0",
    }


def test_partition_that_a_transaction_names_and_does_not_write_to(spark):
    """Under transactions v2 a broker adds a partition when it takes records for it; a raw client named this one."""
    made = audit_of(spark, str(GOLDEN / "named"))
    assert found(made) == [("transaction-without-records", "named-0", 0)]
    (row,) = made.findings.collect()
    assert (row["proof_log"], row["proof_offset"]) == (STATES, 6)


def test_faults_that_kafka_lets_happen_without_verification(spark):
    made = audit_of(spark, str(GOLDEN / "unverified"))
    rows = {(row["kind"], row["log"]): row for row in made.findings.collect()}
    offsets = {place: (row["offset"], row["proof_log"]) for place, row in rows.items()}
    assert offsets == {
        ("commit-beyond-end", OFFSETS): (3, "source-0"),
        ("commit-outside-transaction", OFFSETS): (2, STATES),
        ("hanging-transaction", OFFSETS): (5, STATES),
        ("hanging-transaction", "source-0"): (0, None),
        ("stale-producer-epoch", OFFSETS): (5, STATES),
    }
    assert made.doubts.collect() == []


@pytest.mark.long
def test_job_finds_nothing_in_transactions_v1_and_says_what_it_cannot_decide_for_each_group(spark, tmp_path, capsys):
    source, output = tmp_path / "kafka", tmp_path / "out"
    shutil.copytree(GOLDEN / "before", source)
    assert run(audit_job, spark, source, output) == 0
    said = capsys.readouterr().out
    for group, commits in (("classic", 2), ("copier", 3)):
        assert f"undecided: {commits} commits of group {group} in {OFFSETS} name no member" in said
    assert "the commits of 2 groups name no member" in said

    def table(name: str) -> Any:
        return spark.read.parquet(f"{output}/{name}")

    assert table("findings").isEmpty()
    assert table("doubts").isEmpty()
    assert {row["group"] for row in table("unnamed").collect()} == {"classic", "copier"}
    assert decisions(table("transactions")) == {"COMMIT": 2, "ABORT": 1}


@pytest.mark.parametrize("engine", ["local"], indirect=True)
@pytest.mark.parametrize(
    ("folder", "undecided"),
    [
        # A topic that was made again under a running producer: its first batch there has the sequence 10.
        ("renewed", {("missing-sequence", "orders-0", "unknown-producer")}),
        # Down longer than the time-out, then up for a moment: the coordinator aborts at its next look.
        ("stopped_2", {("hanging-transaction", "orders-0", "stopped")}),
        ("stopped_3", set()),
    ],
)
def test_nothing_is_found_after_a_topic_was_made_again_or_a_broker_was_down(engine, folder, undecided):
    made = audit_of(engine, str(GOLDEN / folder))
    assert found(made) == []
    assert {(row["kind"], row["log"], row["why"]) for row in made.doubts.collect()} == undecided
