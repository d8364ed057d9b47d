"""Templates of commits are kept up to a number of records, whatever sizes of commit a client sends."""

from __future__ import annotations

from broker.coordinator.offsets import commit_batch
from broker.coordinator.offsets.commit_batch import TEMPLATE_RECORDS_KEPT, template_of


def test_templates_of_many_sizes_stay_within_their_bound() -> None:
    for count in range(1000, 1200):
        template_of(count, 20, 40)
        assert sum(kept for kept, _, _ in commit_batch._templates) <= TEMPLATE_RECORDS_KEPT
    assert template_of(1199, 20, 40) is template_of(1199, 20, 40)
