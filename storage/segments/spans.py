"""Commits over several batches: which records belong together, and whether all of them are there.

Each record of such a commit has two headers: `txid` i64, the same for all its records, and `txsize` i32, how many
records it has. They follow one another in the log, in one segment. A run of records with one id that is shorter or
longer than its size is a part: what a crash left of a write, and it counts for nothing.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from protocol.record import Headers

TXID: Final = "txid"
TXSIZE: Final = "txsize"
SPAN_HEADERS: Final = frozenset((TXID, TXSIZE))

Span = tuple[int, int]
T = TypeVar("T")


def span_headers(txid: int, txsize: int) -> Headers:
    """What each record of a commit over several batches carries."""
    return ((TXID, txid.to_bytes(8, "big", signed=True)), (TXSIZE, txsize.to_bytes(4, "big")))


def span_of(headers: Headers) -> Span | None:
    """(txid, txsize) of a record; None: its batch is the whole commit."""
    txid = txsize = None
    for name, value in headers:
        if name == TXID and value is not None and len(value) == 8:
            txid = int.from_bytes(value, "big", signed=True)
        elif name == TXSIZE and value is not None and len(value) == 4:
            txsize = int.from_bytes(value, "big")
    return None if txid is None or txsize is None else (txid, txsize)


class Runs(Generic[T]):
    """Records in log order, put together to runs of one commit each."""

    __slots__ = ("_held", "_span")

    def __init__(self) -> None:
        self._span: Span | None = None
        self._held: list[T] = []

    @property
    def is_open(self) -> bool:
        """Whether the last record may have a sequel."""
        return self._span is not None

    def goes_on(self, headers: Headers) -> bool:
        """Whether a record with these headers belongs to the open run."""
        return self._span is not None and span_of(headers) == self._span

    def add(self, span: Span, item: T) -> None:
        """One more record of the commit `span`; a run of another one is closed before."""
        self._span = span
        self._held.append(item)

    def close(self) -> tuple[list[T], bool]:
        """The run that ends here, and whether it is whole."""
        held, whole = self._held, self._span is not None and len(self._held) == self._span[1]
        self._span, self._held = None, []
        return held, whole
