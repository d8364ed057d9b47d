"""Reading of records over the control plane, where the topic changes between two requests of one call."""

from __future__ import annotations

from typing import Any

import pytest

from broker.asks.ask import Places, Sending, To, routed
from broker.shell.asking import Asking, answer_of
from broker.shell.control.calls.records import MOVED, _Reader
from broker.shell.control.routes import RefusedError
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData


class Unmoved(Places):
    """Any node leads all partitions."""

    def find(self, to: To) -> Sending[None]:
        return
        yield


class Gone(Asking):
    """Asks whose Fetch finds that the partition has gone."""

    def __init__(self, code: int) -> None:
        self.code = code

    async def ask(self, ask: Any) -> Any:
        return await answer_of(routed(ask, Unmoved()), self._call)

    async def _call(self, request: Any, version: int, node_id: int | None) -> Any:
        row = PartitionData(error_code=self.code, records=b"", aborted_transactions=[])
        return FetchResponse(responses=[FetchableTopicResponse(partitions=[row])])


@pytest.mark.parametrize("code", MOVED)
async def test_partition_that_goes_while_records_are_waited_for_is_looked_for_again(code):
    reader = _Reader(Gone(code), "t", "uncommitted", 10, waits=True)
    assert await reader.read(0, 7) == 7
    assert reader.found == []


@pytest.mark.parametrize("code", MOVED)
async def test_partition_that_goes_while_nothing_is_waited_for_is_refused(code):
    with pytest.raises(RefusedError):
        await _Reader(Gone(code), "t", "uncommitted", 10, waits=False).read(0, 7)
