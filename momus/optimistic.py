"""Committing offsets only where no other client has: "set to x if it is y now", for Python clients of any kind.

    from momus.optimistic import NONE, OffsetConflict, commit_if

    commit_if("localhost:9092", "group", {("topic", 0): (120, 100)})   # 120, if 100 is committed
    commit_if("localhost:9092", "group", {("topic", 1): (7, NONE)})    # 7, if nothing is

All partitions are committed or none: OffsetConflict tells what is committed where it was not as expected. Only momus
looks at what is expected: another broker passes over what it does not know and commits all the same.

Wire: OffsetCommit v8 with tagged field 10000 (int64) on a partition: the offset expected, -1 for none. In the answer
of a partition that is not as expected (error 42, INVALID_REQUEST) the same tag has what is committed, -1 for nothing;
the others then have error 55, OPERATION_NOT_ATTEMPTED. Standard library only.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping

NONE = -1
TAG = 10000
OFFSET_COMMIT, VERSION = 8, 8
INVALID_REQUEST = 42
RETRIABLE = (14, 15, 16)  # the coordinator is loading, not there, or elsewhere
RETRY_PAUSE_S = 0.05

TopicPartition = tuple[str, int]  # topic and partition


class OffsetConflict(Exception):  # noqa: N818  # a result, not a failure
    """Something else is committed: `current` says what, NONE where there is nothing. Nothing was changed."""

    def __init__(self, current: dict[TopicPartition, int]) -> None:
        super().__init__(f"something else is committed: {current}")
        self.current = current


class CommitError(OSError):
    """The broker refused the commit; `codes` are Kafka's error codes."""

    def __init__(self, codes: dict[TopicPartition, int]) -> None:
        super().__init__(f"the commit was refused: {codes}")
        self.codes = codes


def commit_if(
    bootstrap: str,
    group_id: str,
    offsets: Mapping[TopicPartition, tuple[int, int]],
    *,
    member_id: str = "",
    generation: int = -1,
    timeout_s: float = 10.0,
) -> None:
    """Commit (offset, offset expected before) on some partitions, all of them or none.

    Durable: when it returns, at the broker's flush level.
    Errors:  OffsetConflict; CommitError; OSError: it is unknown whether it was committed.
    """
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    deadline = time.monotonic() + timeout_s
    request = _request(group_id, member_id, generation, offsets)
    with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
        while True:
            codes, current = _parse(_call(connection, request))
            conflicts = {place: at for place, at in current.items() if codes[place] == INVALID_REQUEST}
            if conflicts:
                raise OffsetConflict(conflicts)
            failed = {place: code for place, code in codes.items() if code}
            if not failed:
                return
            if not all(code in RETRIABLE for code in failed.values()) or time.monotonic() > deadline:
                raise CommitError(failed)
            time.sleep(RETRY_PAUSE_S)


def _request(
    group_id: str, member_id: str, generation: int, offsets: Mapping[TopicPartition, tuple[int, int]]
) -> bytes:
    topics: dict[str, list[bytes]] = {}
    for (topic, partition), (offset, expected) in offsets.items():
        tag = b"\x01" + _uvarint(TAG) + b"\x08" + struct.pack(">q", expected)
        row = struct.pack(">iqi", partition, offset, -1) + b"\x01" + tag
        topics.setdefault(topic, []).append(row)
    rows = [_text(name) + _uvarint(len(parts) + 1) + b"".join(parts) + b"\x00" for name, parts in topics.items()]
    body = _text(group_id) + struct.pack(">i", generation) + _text(member_id) + b"\x00"
    body += _uvarint(len(rows) + 1) + b"".join(rows) + b"\x00"
    header = struct.pack(">hhi", OFFSET_COMMIT, VERSION, 1) + struct.pack(">h", 5) + b"momus" + b"\x00"
    return struct.pack(">i", len(header) + len(body)) + header + body


def _parse(answer: bytes) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Error code of each partition, and what is committed where the answer says so."""
    codes: dict[TopicPartition, int] = {}
    current: dict[TopicPartition, int] = {}
    at = _skip_tags(answer, 4) + 4  # correlation id and tags of the header; throttle time
    count, at = _read_uvarint(answer, at)
    for _ in range(count - 1):
        size, at = _read_uvarint(answer, at)
        topic, at = answer[at : at + size - 1].decode(), at + size - 1
        rows, at = _read_uvarint(answer, at)
        for _ in range(rows - 1):
            partition, code = struct.unpack_from(">ih", answer, at)
            codes[topic, partition] = code
            tags, at = _read_uvarint(answer, at + 6)
            for _ in range(tags):
                tag, at = _read_uvarint(answer, at)
                size, at = _read_uvarint(answer, at)
                if tag == TAG and size == 8:
                    current[topic, partition] = struct.unpack_from(">q", answer, at)[0]
                at += size
        at = _skip_tags(answer, at)
    return codes, current


def _call(connection: socket.socket, request: bytes) -> bytes:
    connection.sendall(request)
    return _read(connection, struct.unpack(">i", _read(connection, 4))[0])


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return data


def _skip_tags(data: bytes, at: int) -> int:
    count, at = _read_uvarint(data, at)
    for _ in range(count):
        _, at = _read_uvarint(data, at)
        size, at = _read_uvarint(data, at)
        at += size
    return at


def _text(text: str) -> bytes:
    data = text.encode()
    return _uvarint(len(data) + 1) + data


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_uvarint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
