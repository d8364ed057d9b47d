"""The `.txnindex` files beside a log, as far as a partition reads and writes them; their format: storage.

They are used up to the offset of a producer snapshot; what follows is read from the log again, and its lines are
written with the next one. When the cleaner makes one segment of several, it merges their files itself.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from broker.partitions.aborted import AbortedTransactions
from storage.files.env import Files
from storage.segments.transaction_index import LINE, SUFFIX, decode_index, encode_index

NO_LINES: Final = (0, -1)
WRONG: Final = (-1, -1)  # some lines of a file are invalid, or of markers that the log has lost


class TransactionIndexFiles:
    """The `.txnindex` files of one log's directory."""

    __slots__ = ("_directory", "_files", "_lines")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        # base offset of a segment -> how many lines its file has, and the marker of the last one; WRONG: rewrite it
        self._lines: dict[int, tuple[int, int]] = {}

    def load(self, aborted: AbortedTransactions, end_offset: int) -> None:
        """Add the transactions whose markers are below an offset."""
        self._lines.clear()
        for name in sorted(self._files.listdir(self._directory)):
            stem = name[: -len(SUFFIX)]
            if not name.endswith(SUFFIX) or len(stem) != 20 or not stem.isdigit():
                continue
            data = self._files.read_file(f"{self._directory}/{name}")
            lines, last = NO_LINES
            for transaction in decode_index(data):
                if transaction.last_offset >= end_offset:
                    break
                aborted.append(*transaction)
                lines, last = lines + 1, transaction.last_offset
            self._lines[int(stem)] = (lines, last) if lines * LINE.size == len(data) else WRONG

    def save(self, aborted: AbortedTransactions, bases: list[int], end_offset: int) -> None:
        """Write the transactions below end_offset into the files of the segments with these base offsets.

        Durable: synced when this returns, so a snapshot may be written after it.
        """
        pending = {base for base, lines in self._lines.items() if lines == WRONG}
        before = max(self._lines, default=-1)
        first = max(0, bisect_right(bases, before) - 1)
        for at in range(len(bases)):
            base = bases[at]
            if at < first and base not in pending:
                continue  # sealed before the last save
            following = bases[at + 1] if at + 1 < len(bases) else end_offset
            lines = list(aborted.between(base, min(following, end_offset)))
            # Lines go where records are deleted or cleaned, and others come: the number alone may stay the same. A line
            # never comes in front of others, so with the same last one as well the file is as it should be.
            now = (len(lines), lines[-1].last_offset) if lines else NO_LINES
            if now == self._lines.get(base, NO_LINES):
                continue
            path = f"{self._directory}/{base:020d}{SUFFIX}"
            if lines:
                self._files.write_file_atomic(path, encode_index(lines))
            elif self._files.exists(path):
                self._files.remove(path)
            self._lines[base] = now
        for base in pending.difference(bases):  # of segments that a crash lost
            path = f"{self._directory}/{base:020d}{SUFFIX}"
            if self._files.exists(path):
                self._files.remove(path)
            self._lines.pop(base, None)
