"""The batch of a commit that is more than a run of plain offsets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.commit_run import Commit, Run
from protocol.record_batch import BatchHeader


@pytest.mark.parametrize("producer", [None, (0, 4), (9, 4)])
def test_commit_of_a_producer_is_transactional_whatever_its_id(producer: tuple[int, int] | None) -> None:
    run = Run("t", bytes(16))
    run.add_other(0, Committed(5, -1, "m", 9))
    log: Any = SimpleNamespace(leader_epoch=3, config=SimpleNamespace(max_message_bytes=1 << 20))
    batch: Any = Commit("g", producer=producer, runs=[run]).build(log, 7, 99)
    header = BatchHeader.from_buffer(batch[0][0])
    expected = (-1, -1, False) if producer is None else (*producer, True)
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == expected
