"""Messages about log directories."""

from __future__ import annotations

from protocol.declare import Message, field, message, nested
from protocol.errors import ErrorCode
from protocol.wire import Array, Bool, Int16, Int32, Int64, String


@nested
class DescribableLogDirTopic(Message):
    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest(Message):
    """Ask how large the logs are on disk; null topics means all."""

    topics: list[DescribableLogDirTopic] | None = field(Array(DescribableLogDirTopic), nullable="0+")


@nested
class DescribeLogDirsPartition(Message):
    partition_index: int = field(Int32)
    partition_size: int = field(Int64)
    offset_lag: int = field(Int64)
    is_future_key: bool = field(Bool)


@nested
class DescribeLogDirsTopic(Message):
    name: str = field(String)
    partitions: list[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition))


@nested
class DescribeLogDirsResult(Message):
    error_code: int = field(Int16)
    log_dir: str = field(String)
    topics: list[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic))
    total_bytes: int = field(Int64, "4+", default=-1)
    usable_bytes: int = field(Int64, "4+", default=-1)
    is_cordoned: bool = field(Bool, "5+")


@message(api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse(Message):
    """Log directories and the sizes of the partitions in them.

    3 top-level error; 4 size of the disk; 5 cordoned directories.
    """

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, "3+")
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult))


def error_response(request: Message, api_version: int, code: ErrorCode, message: str | None = None) -> Message:
    """The response that refuses a whole request, with the code where Kafka puts it."""
    if isinstance(request, DescribeLogDirsRequest):
        return DescribeLogDirsResponse(error_code=code)
    raise TypeError(f"not a request of this family: {request!r}")
