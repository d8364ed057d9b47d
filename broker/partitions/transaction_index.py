"""The `.txnindex` files beside a log: one for each segment, with the transactions that its markers have aborted.

Format, as Kafka's: 34 bytes for each, big-endian: i16 version 0 | i64 producer id | i64 first offset | i64 offset of
the marker | i64 last stable offset at the marker. A segment without any has no file. The files are used up to the
offset of a producer snapshot; what follows is read from the log again, and its lines are written with the next one.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable
from struct import Struct
from typing import Final

from broker.partitions.aborted import AbortedTransaction, AbortedTransactions
from storage.env import Files

logger = logging.getLogger("momus.partition")

SUFFIX: Final = ".txnindex"
_LINE: Final = Struct(">hqqqq")


def encode_index(transactions: Iterable[AbortedTransaction]) -> bytes:
    """The content of a file."""
    return b"".join([_LINE.pack(0, *transaction) for transaction in transactions])


def decode_index(data: bytes) -> list[AbortedTransaction]:
    """The lines of a file, up to the first invalid one."""
    found: list[AbortedTransaction] = []
    last = -1
    for version, producer_id, first_offset, last_offset, stable_offset in _LINE.iter_unpack(
        data[: len(data) // _LINE.size * _LINE.size]
    ):
        if version != 0 or last_offset <= last:
            break
        last = last_offset
        found.append(AbortedTransaction(producer_id, first_offset, last_offset, stable_offset))
    return found


class TransactionIndexFiles:
    """The `.txnindex` files of one log's directory."""

    __slots__ = ("_directory", "_files", "_lines")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._lines: dict[int, int] = {}  # base offset of a segment -> valid lines in its file; -1: some are invalid

    def load(self, aborted: AbortedTransactions, end_offset: int) -> None:
        """Add the transactions whose markers are below an offset."""
        self._lines.clear()
        for name in sorted(self._files.listdir(self._directory)):
            stem = name[: -len(SUFFIX)]
            if not name.endswith(SUFFIX) or len(stem) != 20 or not stem.isdigit():
                continue
            data = self._files.read_file(f"{self._directory}/{name}")
            lines = 0
            for transaction in decode_index(data):
                if transaction.last_offset >= end_offset:
                    break
                aborted.append(*transaction)
                lines += 1
            self._lines[int(stem)] = lines if lines * _LINE.size == len(data) else -1

    def save(self, aborted: AbortedTransactions, bases: list[int], end_offset: int) -> None:
        """Write the transactions below end_offset into the files of the segments with these base offsets.

        Durable: synced when this returns, so a snapshot may be written after it.
        """
        pending = {base for base, lines in self._lines.items() if lines < 0}
        before = max(self._lines, default=-1)
        first = max(0, bisect_right(bases, before) - 1)
        for at in range(len(bases)):
            base = bases[at]
            if at < first and base not in pending:
                continue  # sealed before the last save
            following = bases[at + 1] if at + 1 < len(bases) else end_offset
            lines = list(aborted.between(base, min(following, end_offset)))
            if len(lines) == self._lines.get(base, 0):
                continue
            path = f"{self._directory}/{base:020d}{SUFFIX}"
            if lines:
                self._files.write_file_atomic(path, encode_index(lines))
            elif self._files.exists(path):
                self._files.remove(path)
            self._lines[base] = len(lines)
        for base in pending.difference(bases):  # of segments that a crash lost
            path = f"{self._directory}/{base:020d}{SUFFIX}"
            if self._files.exists(path):
                self._files.remove(path)
            self._lines.pop(base, None)
