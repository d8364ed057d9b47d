"""What a search hands to its process, while retention goes on."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, Mock

from broker.shell.page.search.stream import Lent, _feed
from broker.shell.page.search.worker import PIECE


class ShortLog:
    """A log that begins at offset 8, as retention has removed what was before. It ends at 10."""

    def read(self, offset: int, max_bytes: int, *, limit_offset: int) -> Any:
        assert 8 <= offset < limit_offset, "OFFSET_OUT_OF_RANGE"
        return Mock(end_offset=limit_offset, read=lambda: b"batches")


def test_what_retention_has_removed_since_files_were_handed_over_is_passed_over():
    partition = Mock(index=0, log_start_offset=8, high_watermark=10, log=ShortLog())
    partition.aborted_transactions.return_value, partition.producers.open = [], {}
    child = Mock(stdin=Mock(drain=AsyncMock()))
    asyncio.run(_feed(child, [partition], [Lent(0, 7, 0, 100, end_offset=5)], {"most": 1}))
    written = [call.args[0] for call in child.stdin.write.call_args_list]
    assert PIECE.unpack(written[-1][: PIECE.size]) == (0, 7)
    assert written[-1].endswith(b"batches")
    child.stdin.close.assert_called_once_with()
