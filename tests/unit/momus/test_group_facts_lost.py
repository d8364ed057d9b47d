"""`momus group seek` when a partition loses its leader between two of its requests."""

from __future__ import annotations

from typing import Any

import pytest

from momus.cli.groups.client import GroupClient
from momus.cli.groups.reset import Reset, ResetError
from momus.client.kafka_client import EARLIEST, LATEST


class Losing(GroupClient):
    """Answers from a table; at one of the questions a partition has no leader."""

    def __init__(self, lost_at: int) -> None:
        self.lost_at = lost_at

    def leaders(self, topic: str) -> dict[int, int]:
        return {0: 1, 1: 2}

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        return {}

    def _offsets(self, topic: str, leaders: dict[int, int], at: int, *_: Any) -> dict[int, int]:
        return {each: 5 for each in leaders if at != self.lost_at or each != 1}


@pytest.mark.parametrize("at", [EARLIEST, LATEST, 1000])
def test_partition_that_loses_its_leader_is_named(at):
    with pytest.raises(ResetError, match="t-1 has no leader"):
        Losing(at).plan("g", Reset("time", 1000), [("t", None)], "Empty")
