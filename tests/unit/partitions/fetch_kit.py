"""A Fetch that waits, and the one partition of an answer."""

from __future__ import annotations

from typing import Any

from unit.partitions.data_path import DataPath

from protocol.messages.fetch import FetchRequest


def long_poll(path: DataPath, *places: tuple[str, int, int], version: int = 12, **more: Any) -> Any:
    """A Fetch that may wait half a second, of (topic, partition, offset)."""
    request = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 26, **more}
    topics = [path.wanted(name, (index, offset)) for name, index, offset in places]
    return path.fetch_request(FetchRequest(session_epoch=-1, topics=topics, **request), version)


def only(response: Any) -> Any:
    """The one partition of a response."""
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition
