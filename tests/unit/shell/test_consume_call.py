"""Reading of records over the control plane, where the topic changes between two requests of one call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from broker.shell.control.calls.records import MOVED, _Reader
from broker.shell.control.routes import RefusedError


class Gone:
    """A client whose Fetch finds that the partition has gone."""

    def __init__(self, code: int) -> None:
        self.code = code

    async def call(self, request: Any, version: int, node_id: int) -> Any:
        row = SimpleNamespace(error_code=self.code, records=b"", aborted_transactions=[])
        return SimpleNamespace(responses=[SimpleNamespace(partitions=[row])])


@pytest.mark.parametrize("code", MOVED)
async def test_partition_that_goes_while_records_are_waited_for_is_looked_for_again(code):
    reader = _Reader(Gone(code), "t", "uncommitted", 10, waits=True)
    assert await reader.read(0, 1, 7) == 7
    assert reader.found == []


@pytest.mark.parametrize("code", MOVED)
async def test_partition_that_goes_while_nothing_is_waited_for_is_refused(code):
    with pytest.raises(RefusedError):
        await _Reader(Gone(code), "t", "uncommitted", 10, waits=False).read(0, 1, 7)
