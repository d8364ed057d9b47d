"""The table of a partition's producers: one row a producer id, packed into sorted columns of 46 bytes a row.

Kafka's map of objects takes some 300 bytes a producer; here a million producers on one partition fit into 50 MB, and so
do a thousand on each of a thousand partitions. Rows are in leaves of a few hundred, sorted by producer id: a look-up is
two bisections in C, an insertion moves some kilobytes, and nothing is ever merged. The place of the last look-up is
kept: most batches come from the producer of the batch before, and a row that is looked up is then written. A dict of
the recent producers would save little more.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from broker.base.facts import facts

MAX_SEQUENCE: Final = 2**31 - 1
LEAF_ROWS: Final = 512
NOBODY: Final = -(1 << 63) - 1  # no producer id: requests may name any of 64 bits, -1 too
_ROW: Final = Struct("<hiqiqiii")
_ROW_BYTES: Final = _ROW.size
FAR: Final = -(2**31)  # a marker_delay_ms that has no room in a row
_unpack: Final = _ROW.unpack_from
_pack: Final = _ROW.pack_into


class Row(NamedTuple):
    """The state of one producer. last_timestamp_ms is the Unix time of its last batch or marker.

    The last batch is of this epoch; without one, last_sequence and last_offset are -1.
    """

    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int  # from the first record of the last batch to its last one
    last_timestamp_ms: int
    coordinator_epoch: int
    written: int  # how many sequences up to the last one are known to be written without a gap
    marker_delay_ms: int  # last_timestamp_ms is that of a marker, so much later than the last batch; FAR: out of range


class ProducerSnapshot(NamedTuple):
    """A producer as a `.snapshot` file holds it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    txn_first_offset: int
    written: int = 0  # this and the next are in the file beside it; 0: not known
    marker_delay_ms: int = 0


class CachedBatch(NamedTuple):
    """An appended batch: what it takes to recognise and answer its repetition."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class _Leaf:
    __slots__ = ("producer_ids", "rows")

    def __init__(self, producer_ids: array[int], rows: bytearray) -> None:
        self.producer_ids = producer_ids
        self.rows = rows


class ProducerTable:
    """Producer id -> Row."""

    __slots__ = ("_firsts", "_leaves", "_recent_at", "_recent_id", "_recent_rows", "_size")

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_firsts": "where leaves are cut depends on the order in which producers came",
        "_leaves": "as _firsts; facts() compares their rows",
        "_recent_at": "of the last look-up",
        "_recent_id": "of the last look-up",
        "_recent_rows": "of the last look-up",
    }

    def __init__(self) -> None:
        self._recent_id = NOBODY  # the last id found, and where
        self._recent_rows = bytearray()
        self._recent_at = 0
        self._leaves = [_Leaf(array("q"), bytearray())]
        self._firsts: list[int] = [-(1 << 63)]  # the least producer id each leaf may hold
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        for leaf in self._leaves:
            yield from leaf.producer_ids

    def __contains__(self, producer_id: int) -> bool:
        return self.get(producer_id) is not None

    def __getitem__(self, producer_id: int) -> Row:
        row = self.get(producer_id)
        if row is None:
            raise KeyError(producer_id)
        return Row(*row)

    def get(self, producer_id: int) -> tuple[int, ...] | None:
        """The fields of a Row, in order."""
        if producer_id == self._recent_id:
            return _unpack(self._recent_rows, self._recent_at)
        leaves = self._leaves
        leaf = leaves[0] if len(leaves) == 1 else leaves[bisect_right(self._firsts, producer_id) - 1]
        producer_ids = leaf.producer_ids
        at = bisect_left(producer_ids, producer_id)
        if at == len(producer_ids) or producer_ids[at] != producer_id:
            return None
        self._recent_id = producer_id
        self._recent_rows = leaf.rows
        self._recent_at = at = at * _ROW_BYTES
        return _unpack(leaf.rows, at)

    def last_batch_of(self, producer_id: int) -> tuple[int, int] | None:
        """(last offset of the last batch of records, or -1, and epoch); None: the producer is not known."""
        row = self.get(producer_id)
        return None if row is None else (row[2], row[0])

    def put(
        self,
        producer_id: int,
        producer_epoch: int,
        last_sequence: int,
        last_offset: int,
        offset_delta: int,
        last_timestamp_ms: int,
        coordinator_epoch: int,
        written: int,
        marker_delay_ms: int,
    ) -> None:
        """Set the row of a producer."""
        if producer_id != self._recent_id and self.get(producer_id) is None:
            self._insert(producer_id)
        _pack(
            self._recent_rows,
            self._recent_at,
            producer_epoch,
            last_sequence,
            last_offset,
            offset_delta,
            last_timestamp_ms,
            coordinator_epoch,
            written,
            marker_delay_ms,
        )

    def fill(self, rows: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """Set the rows of an empty table, given by rising id."""
        leaves = []
        for start in range(0, len(rows), LEAF_ROWS):
            part = rows[start : start + LEAF_ROWS]
            ids = array("q", [producer_id for producer_id, _ in part])
            leaves.append(_Leaf(ids, bytearray().join([_ROW.pack(*row) for _, row in part])))
        if leaves:
            self._leaves = leaves
            self._firsts = [self._firsts[0], *(leaf.producer_ids[0] for leaf in leaves[1:])]
            self._size = len(rows)

    def _insert(self, producer_id: int) -> None:
        """Make an empty row."""
        index = bisect_right(self._firsts, producer_id) - 1
        leaf = self._leaves[index]
        at = bisect_left(leaf.producer_ids, producer_id)
        if len(leaf.producer_ids) >= LEAF_ROWS:
            self._split(index, at)
            self._insert(producer_id)
            return
        self._recent_id = producer_id
        self._recent_rows = leaf.rows
        self._recent_at = at * _ROW_BYTES
        leaf.producer_ids.insert(at, producer_id)
        leaf.rows[at * _ROW_BYTES : at * _ROW_BYTES] = bytes(_ROW_BYTES)
        self._size += 1

    def _split(self, index: int, at: int) -> None:
        """Split a full leaf. New ids are mostly the highest: then the full leaf stays full."""
        leaf = self._leaves[index]
        rising = at == LEAF_ROWS and index == len(self._leaves) - 1
        cut = LEAF_ROWS - 1 if rising else LEAF_ROWS // 2
        ids, rows = leaf.producer_ids, leaf.rows
        after = _Leaf(ids[cut:], rows[cut * _ROW_BYTES :])
        leaf.producer_ids, leaf.rows = ids[:cut], rows[: cut * _ROW_BYTES]
        self._leaves.insert(index + 1, after)
        self._firsts.insert(index + 1, after.producer_ids[0])

    def remove(self, producer_id: int) -> None:
        """Remove a row, if there is one."""
        leaf = self._leaves[bisect_right(self._firsts, producer_id) - 1]
        at = bisect_left(leaf.producer_ids, producer_id)
        if at < len(leaf.producer_ids) and leaf.producer_ids[at] == producer_id:
            self._recent_id = NOBODY
            del leaf.producer_ids[at], leaf.rows[at * _ROW_BYTES : (at + 1) * _ROW_BYTES]
            self._size -= 1

    def remove_if_before(self, timestamp_ms: int, kept: dict[int, int]) -> Iterator[int]:
        """Remove the rows up to a time, except for the ids in `kept`. Yields how many, leaf by leaf."""
        for leaf in list(self._leaves):
            self._recent_id = NOBODY
            ids, rows = leaf.producer_ids, leaf.rows
            stay = [
                at
                for at, (producer_id, row) in enumerate(zip(ids, _ROW.iter_unpack(rows), strict=True))
                if row[4] > timestamp_ms or producer_id in kept
            ]
            gone = len(ids) - len(stay)
            if gone:
                leaf.producer_ids = array("q", [ids[at] for at in stay])
                leaf.rows = bytearray().join([rows[at * _ROW_BYTES : (at + 1) * _ROW_BYTES] for at in stay])
                self._size -= gone
            yield gone
        self._drop_empty_leaves()

    def _drop_empty_leaves(self) -> None:
        at = len(self._leaves) - 1
        while at > 0:
            if not self._leaves[at].producer_ids:
                del self._leaves[at]
                del self._firsts[at]
            at -= 1

    def items(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(producer id, fields of its row), by rising id."""
        for leaf in self._leaves:
            yield from zip(leaf.producer_ids, _ROW.iter_unpack(leaf.rows), strict=True)

    def facts(self) -> dict[str, object]:
        """What replaying the log must reproduce: every row."""
        return {**facts(self), "rows": list(self.items())}

    def copy(self) -> ProducerTable:
        """A copy, to be read while this table changes; it takes some milliseconds for a million rows."""
        other = ProducerTable()
        other._leaves = [_Leaf(leaf.producer_ids[:], leaf.rows[:]) for leaf in self._leaves]
        other._firsts = self._firsts[:]
        other._size = self._size
        return other


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequences count modulo 2^31: 0 follows 2147483647."""
    return (sequence + increment) & MAX_SEQUENCE
