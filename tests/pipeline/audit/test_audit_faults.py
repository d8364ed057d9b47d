"""Each kind of fault, written into a log of its own: exactly that finding, with the place that proves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from audit_fault_kit import CLEANED, CO, Fault, audited
from faults_of_commits import (
    beyond_the_end,
    beyond_the_end_of_another_topic,
    committed_outside,
    committed_outside_on_purpose,
    epoch_of_nobody,
    incomplete_commit,
    not_its_own,
    regression,
    set_back,
    stale_generation,
    stale_member,
    unfinished_commit,
    whole_commit,
)
from faults_of_groups_and_logs import (
    began_again,
    cleaned,
    generation_back,
    group_epoch_back,
    handed_over,
    hole,
    leader_epoch_back,
    member_epoch_back,
    overlapping,
    two_owners,
    vanished,
)
from faults_of_producers import (
    against_decision,
    coordinator_goes_back,
    decided_and_not_ended,
    down_for_longer,
    duplicate,
    hanging,
    hanging_unknown,
    made_again,
    missing,
    missing_in_a_new_epoch,
    overdue,
    producer_id_twice,
    reordered,
    resent_marker,
    sequences_wrap,
    sound,
    stale_in_transaction,
    stale_producer,
    stray_marker,
    without_marker,
    without_marker_among_others,
    without_marker_in_a_topic_made_again,
    without_records,
    without_records_before_kip_890,
    wrapped_duplicate,
)
from made_logs import Logs

from pipeline.audit import audit as audits
from pipeline.transforms import missing_offsets

CASES: list[Callable[[Logs], Fault]] = [
    sound, sequences_wrap, wrapped_duplicate, duplicate, missing, made_again, missing_in_a_new_epoch, reordered,
    stale_producer, stale_in_transaction, overdue, hanging, hanging_unknown, without_marker,
    without_marker_among_others, without_marker_in_a_topic_made_again,
    stray_marker, resent_marker, against_decision, regression, set_back,
    stale_generation, stale_member, not_its_own, epoch_of_nobody, whole_commit, incomplete_commit, unfinished_commit,
    committed_outside, committed_outside_on_purpose, without_records, without_records_before_kip_890,
    coordinator_goes_back, two_owners, handed_over, generation_back, group_epoch_back,
    member_epoch_back, began_again, leader_epoch_back, beyond_the_end, beyond_the_end_of_another_topic,
    producer_id_twice, vanished, overlapping, hole, cleaned, decided_and_not_ended, down_for_longer,
]  # fmt: skip  # several to a line


@pytest.fixture(scope="module")
def outcome(
    engine: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Fault], list[Any], dict[str, Any]]:
    """All cases in one directory, audited once, in blocks of 8 offsets: what each promised, and what was found."""
    directory = tmp_path_factory.mktemp("faults")
    logs = Logs(directory)
    promised = {case.__name__: case(logs) for case in CASES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audits, "FEW_ROWS", -1)
        patch.setattr(missing_offsets, "BLOCK_OFFSETS", 8)
        made = audited(engine, directory, {CLEANED})
    coverage = {row["log"]: row for row in made.coverage.collect()}
    assert {name: row["end_offset"] for name, row in coverage.items()} == logs.ends
    other = {"coverage": coverage, "transactions": made.transactions.collect(), "undecided": made.undecided.collect()}
    return promised, made.findings.collect(), other


@pytest.mark.parametrize("name", [case.__name__ for case in CASES if case.__name__[0] != "_"])
def test_audit_fault_in_a_log_is_exactly_that_finding(name, outcome):
    promised, found, _ = outcome
    fault = promised[name]
    here = [row for row in found if (row["log"], row["offset"]) == (fault.log, fault.offset)]
    if fault.kind is None:
        return  # the next test: nothing but what was promised
    assert [row["kind"] for row in here] == [fault.kind]
    assert here[0]["detail"] == fault.says
    assert here[0]["segment"] is not None


def test_audit_sound_logs_have_no_finding(outcome):
    promised, found, _ = outcome
    wanted = sorted((fault.kind, fault.log, fault.offset) for fault in promised.values() if fault.kind)
    assert sorted((row["kind"], row["log"], row["offset"]) for row in found) == wanted


def test_audit_what_may_have_another_reason_is_undecided_and_says_why(outcome):
    *_, other = outcome
    rows = {(row["log"], row["kind"]): (row["offset"], row["why"]) for row in other["undecided"] if row["why"]}
    assert rows == {
        (f"{CO}-19", "commit-beyond-end"): (0, "another-topic"),
        ("again-0", "missing-sequence"): (1, "unknown-producer"),
        ("down-0", "hanging-transaction"): (0, "stopped"),
        ("downdecided-0", "hanging-transaction"): (0, "stopped"),
        ("emptyv1-0", "transaction-without-records"): (0, "named-by-client"),
        ("twice-0", "transaction-without-records"): (3, "named-by-client"),
    }


@pytest.mark.parametrize(
    ("offset", "kinds"), [(40, ["offset-regression", "stale-generation"]), (50, ["stale-generation"])]
)
def test_commit_that_comes_again_after_its_group_is_empty_is_stale(engine, tmp_path, offset, kinds):
    """The last member that leaves raises the generation; the newest commit goes back nowhere."""
    logs, log = Logs(tmp_path), f"{CO}-0"
    logs.classic_group(log, "left", 1)
    for earlier in (40, 50):
        logs.commit(log, "left", {0: earlier}, member="m", generation=1)
    logs.classic_group(log, "left", 2)  # without members
    again = logs.commit(log, "left", {0: offset}, member="m", generation=1)
    found = audited(engine, tmp_path).findings.collect()
    assert [(row["kind"], row["offset"]) for row in found] == [(kind, again) for kind in kinds]
