"""Kafka's `.snapshot`: the producers of a partition at one offset, so that a start need not read all batches.

Layout: version i16 1 | CRC-32C u32 of everything from 6 on | count i32 | producers. A producer: id i64, epoch
i16, last sequence i32, last offset i64, offset delta i32, timestamp i64, coordinator epoch i32, first offset of
its open transaction i64 (-1 none).
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from storage.env import Files

SUFFIX: Final = ".snapshot"
VERSION: Final = 1
_VERSION_CRC: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")


class ProducerEntry(NamedTuple):
    """One producer, in wire order."""

    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = -1
    coordinator_epoch: int = -1
    txn_first_offset: int = -1


def path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SUFFIX}"


def encode(producers: Iterable[ProducerEntry]) -> bytes:
    entries = [_ENTRY.pack(*producer) for producer in producers]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _VERSION_CRC.pack(VERSION, crc32c(body)) + body


def decode(data: bytes) -> list[ProducerEntry] | None:
    """None when the bytes are damaged: the log has to be read instead."""
    try:
        version, crc = _VERSION_CRC.unpack_from(data)
        body = data[_VERSION_CRC.size :]
        (count,) = _COUNT.unpack_from(body)
    except error:
        return None
    if version != VERSION or crc32c(body) != crc or len(body) != _COUNT.size + count * _ENTRY.size:
        return None
    return [ProducerEntry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def write(files: Files, directory: str, offset: int, producers: Iterable[ProducerEntry]) -> None:
    files.write_file_atomic(path(directory, offset), encode(producers), sync=False)


def latest(files: Files, directory: str, end_offset: int) -> tuple[int, list[ProducerEntry]] | None:
    """The newest readable snapshot that is not ahead of the log, with its offset."""
    names = [name for name in files.listdir(directory) if name.endswith(SUFFIX) and name[:20].isdigit()]
    for name in sorted(names, reverse=True):
        offset = int(name[:20])
        if offset <= end_offset:
            producers = decode(files.read_file(f"{directory}/{name}"))
            if producers is not None:
                return offset, producers
    return None
