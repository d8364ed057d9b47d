"""What a finding says: its line, and the meaning of its kind."""

from __future__ import annotations

import pytest
from pyspark.sql import Row

from pipeline.audit.findings import KINDS
from pipeline.jobs.audit import finding_line
from pipeline.live.fetched_logs import NO_FILE

ROW = Row(kind="offset-regression", log="l-1", segment=2, offset=3, proof_log="p-4", proof_offset=5, detail="went back")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "offset-regression: l-1 segment 2 offset 3: went back (against p-4 offset 5)"),
        ({"segment": NO_FILE}, "offset-regression: l-1 offset 3: went back (against p-4 offset 5)"),
        ({"proof_log": None, "proof_offset": None}, "offset-regression: l-1 segment 2 offset 3: went back"),
    ],
)
def test_line_of_a_finding_has_its_place_and_that_of_its_proof(changes, line):
    assert finding_line(Row(**{**ROW.asDict(), **changes}), as_json=False) == line


def test_kind_of_a_finding_means_what_its_check_looks_for():
    """The word of each meaning that its opposite, or another kind, would not have."""
    words = {
        "stale-producer-epoch": "producer still wrote after it was replaced",
        "stale-generation": "older generation",
        "stale-member-epoch": "did not own at that epoch",
        "offset-regression": "went back: the records between were read again",
        "duplicate-sequence": "appended twice",
        "missing-sequence": "not in the log",
        "reordered-sequence": "another order than they were sent",
        "hanging-transaction": "no producer will end this transaction: read_committed consumers stop",
        "transaction-without-marker": "is complete, but this partition has no marker",
        "marker-without-transaction": "a transaction that no coordinator has",
        "marker-against-decision": "the opposite of the coordinator's decision",
        "transaction-without-records": "committed transaction names this partition, but none of its records",
        "commit-outside-transaction": "belong to a transaction were committed outside",
        "incomplete-commit": "only a part of a commit",
        "share-delivery-limit": "more often than its limit",
        "share-delivered-again": "again that was acknowledged or archived",
        "share-unread": "archived or passed a record that no consumer got",
        "two-owners": "two members of a group own a partition at once",
        "epoch-regression": "generation or epoch of a group or member is below",
        "leader-epoch-regression": "epoch below that of an earlier leader",
        "commit-beyond-end": "an offset that its log never had",
        "producer-id-twice": "two transactional ids have the same producer id",
        "transaction-vanished": "neither committed nor aborted as was decided",
        "overlapping-batches": "are there twice",
        "missing-records": "missing in the middle of a log that nothing compacts",
    }
    assert words.keys() == KINDS.keys()
    for kind, said in words.items():
        assert said in KINDS[kind]
