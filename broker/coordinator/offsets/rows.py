"""The rows of one group and topic, partition -> offset, leader epoch and commit time, in as few bytes as can be.

Nothing committed: None. One row, as most groups have it: one integer, see `_one`. Else an array of int64: a head (first
partition, epoch, time, count and flags), then row after row: the offset; epoch and time where they differ between rows;
the partition where there are gaps. A function that changes rows returns new ones, and may have changed the array that
it was given.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import lt
from typing import Final

Rows = int | array  # type: ignore[type-arg]  # array[int], which exists for type checkers alone
Cells = tuple[range | array, int | array, int | array, int | array]  # type: ignore[type-arg]  # the same

PARTITION_BITS: Final = 31
TIME_BITS: Final = 44  # until the year 2527
EPOCH_BITS: Final = 32
MOST_PARTITION: Final = (1 << PARTITION_BITS) - 1
MOST_TIME: Final = (1 << TIME_BITS) - 1
MOST_EPOCH: Final = (1 << EPOCH_BITS) - 1

START: Final = 0  # the cells of the head
EPOCH: Final = 1
TIME: Final = 2
SHAPE: Final = 3
HEAD: Final = 4  # where the rows begin
EPOCHS: Final = 1  # flags of SHAPE: what each row has
TIMES: Final = 2
GAPS: Final = 4
FLAG_BITS: Final = 3
ALL: Final = EPOCHS | TIMES | GAPS
WIDTH: Final = tuple(1 + flags.bit_count() for flags in range(ALL + 1))  # cells a row, by flags
TIME_AT: Final = tuple(1 + (flags & EPOCHS) for flags in range(ALL + 1))  # where in a row its time is
FEW: Final = 8  # rows that are set one by one are fewer than those there by this factor
MANY: Final = 64  # rows, from which on an array that grows has room to spare

RANGES_KEPT: Final = 4096
LARGEST_SHARED: Final = 256
_ranges: dict[tuple[int, int], range] = {}


def _one(partition: int, offset: int, epoch: int, time_ms: int) -> Rows:
    """One row: offset, epoch + 1, time + 1, partition, from the highest bit to the lowest; 48 bytes."""
    if partition < 0 or not -1 <= time_ms < MOST_TIME or not -1 <= epoch < MOST_EPOCH:
        return array("q", (partition, epoch, time_ms, 1 << FLAG_BITS, offset))
    return ((offset << EPOCH_BITS | epoch + 1) << TIME_BITS | time_ms + 1) << PARTITION_BITS | partition


def _of_one(rows: int) -> tuple[int, int, int, int]:
    """Partition, offset, epoch and time of one row."""
    above = rows >> PARTITION_BITS
    rest = above >> TIME_BITS
    return rows & MOST_PARTITION, rest >> EPOCH_BITS, (rest & MOST_EPOCH) - 1, (above & MOST_TIME) - 1


def count(rows: Rows | None) -> int:
    """How many there are."""
    if rows is None:
        return 0
    return 1 if isinstance(rows, int) else rows[SHAPE] >> FLAG_BITS


def get(rows: Rows | None, partition: int) -> tuple[int, int, int] | None:
    """Offset, epoch and time of a partition, if it has a row."""
    if rows is None:
        return None
    if isinstance(rows, int):
        if rows & MOST_PARTITION != partition:
            return None
        above = rows >> PARTITION_BITS  # as _of_one does
        rest = above >> TIME_BITS
        return rest >> EPOCH_BITS, (rest & MOST_EPOCH) - 1, (above & MOST_TIME) - 1
    at = _find(rows, partition)
    if at < 0:
        return None
    shape = rows[SHAPE]
    epoch = rows[at + 1] if shape & EPOCHS else rows[EPOCH]
    return rows[at], epoch, rows[at + TIME_AT[shape & ALL]] if shape & TIMES else rows[TIME]


def get_all(rows: Rows | None, partitions: Sequence[int]) -> list[tuple[int, int] | None]:
    """Offset and epoch of each of these partitions, if it has a row."""
    if rows is None or isinstance(rows, int) or rows[SHAPE] & GAPS:
        one_by_one = (get(rows, each) for each in partitions)
        return [found and found[:2] for found in one_by_one]
    start, epoch, _, shape = rows[:HEAD]
    n, width = shape >> FLAG_BITS, WIDTH[shape & ALL]
    places = [HEAD + (each - start) * width if 0 <= each - start < n else 0 for each in partitions]
    if shape & EPOCHS:
        return [(rows[place], rows[place + 1]) if place else None for place in places]
    return [(rows[place], epoch) if place else None for place in places]


def oldest_ms(rows: Rows) -> int:
    """The time of the oldest commit."""
    times = cells(rows)[3]
    return times if isinstance(times, int) else min(times)


def cells(rows: Rows | None) -> Cells:
    """Partitions, offsets, epochs and times; one value stands for a column whose cells are equal, or of one row."""
    if rows is None:
        return range(0), 0, -1, -1
    if isinstance(rows, int):
        partition, offset, epoch, time_ms = _of_one(rows)
        return _range(partition, partition + 1), offset, epoch, time_ms
    start, epoch, time_ms, shape = rows[:HEAD]
    n, flags = shape >> FLAG_BITS, shape & ALL
    width = WIDTH[flags]
    return (
        array("i", rows[HEAD + width - 1 :: width]) if flags & GAPS else _range(start, start + n),
        rows[HEAD] if n == 1 else rows[HEAD::width],
        rows[HEAD + 1 :: width] if flags & EPOCHS else epoch,
        rows[HEAD + TIME_AT[flags] :: width] if flags & TIMES else time_ms,
    )


def of_cells(partitions: Sequence[int], offsets: Sequence[int], epochs: Sequence[int], times: Sequence[int]) -> Rows:
    """The rows of columns that are not empty, partitions in order."""
    n, start = len(partitions), partitions[0]
    if n == 1:
        return _one(start, offsets[0], epochs[0], times[0])
    flags = (EPOCHS if epochs.count(epochs[0]) != n else 0) | (TIMES if times.count(times[0]) != n else 0)
    flags |= GAPS if partitions[-1] - start + 1 != n else 0
    width = WIDTH[flags]
    rows = array("q", (start, epochs[0], times[0], n << FLAG_BITS | flags)) + array("q", (0,)) * (n * width)
    rows[HEAD::width] = array("q", offsets)
    if flags & EPOCHS:
        rows[HEAD + 1 :: width] = array("q", epochs)
    if flags & TIMES:
        rows[HEAD + TIME_AT[flags] :: width] = array("q", times)
    if flags & GAPS:
        rows[HEAD + width - 1 :: width] = array("q", partitions)
    return rows


def put(rows: Rows | None, partition: int, offset: int, epoch: int, time_ms: int) -> Rows:
    """Set one row."""
    if rows is None:
        return _one(partition, offset, epoch, time_ms)
    if isinstance(rows, int):
        if rows & MOST_PARTITION == partition:
            return _one(partition, offset, epoch, time_ms)
        known = _of_one(rows)
        rows = array("q", (known[0], known[2], known[3], 1 << FLAG_BITS, known[1]))
    at = _find(rows, partition)
    if at < 0:
        rows, at = _insert(rows, partition)
    elif rows[SHAPE] >> FLAG_BITS == 1:
        return _one(partition, offset, epoch, time_ms)
    if epoch != rows[EPOCH] and not rows[SHAPE] & EPOCHS:
        rows, at = _vary(rows, EPOCHS, at)
    if time_ms != rows[TIME] and not rows[SHAPE] & TIMES:
        rows, at = _vary(rows, TIMES, at)
    flags = rows[SHAPE] & ALL
    rows[at] = offset
    if flags & EPOCHS:
        rows[at + 1] = epoch
    if flags & TIMES:
        rows[at + TIME_AT[flags]] = time_ms
    return rows


def put_run(
    rows: Rows | None, partitions: Sequence[int], offsets: Sequence[int], epochs: Sequence[int], time_ms: int
) -> Rows:
    """Set the rows of several partitions, in any order; of a partition that is named twice, the last one."""
    n = len(partitions)
    if n * FEW < count(rows):
        for partition, offset, epoch in zip(partitions, offsets, epochs, strict=True):
            rows = put(rows, partition, offset, epoch, time_ms)
        assert rows is not None
        return rows
    rises = all(map(lt, partitions, partitions[1:]))
    if rises and (rows is None or list(cells(rows)[0]) == list(partitions)):
        return of_cells(partitions, offsets, epochs, (time_ms,) * n)
    known, *others = cells(rows)
    columns = [(each,) * len(known) if isinstance(each, int) else each for each in others]
    merged = dict(zip(known, zip(*columns, strict=True), strict=True))
    merged.update(zip(partitions, zip(offsets, epochs, (time_ms,) * n, strict=True), strict=True))
    partitions = sorted(merged)
    return of_cells(partitions, *zip(*map(merged.__getitem__, partitions), strict=True))


def put_dense(
    rows: Rows | None, partitions: Sequence[int], offsets: Sequence[int], epochs: Sequence[int], time_ms: int
) -> Rows | None:
    """Set the rows of partitions without a gap, if these are all partitions that have one; else None."""
    n, start, epoch = len(partitions), partitions[0], epochs[0]
    if rows is not None:
        if isinstance(rows, int) or rows[START] != start or rows[SHAPE] >> FLAG_BITS != n or rows[SHAPE] & GAPS:
            return None
        flags = 0 if epochs.count(epoch) == n else EPOCHS
        if rows[SHAPE] & ALL == flags:  # as most consumers commit: all at one time
            rows[HEAD :: WIDTH[flags]] = array("q", offsets)
            rows[TIME] = time_ms
            if flags:
                rows[HEAD + 1 :: 2] = array("q", epochs)
            else:
                rows[EPOCH] = epoch
            return rows
    return of_cells(partitions, offsets, epochs, (time_ms,) * n)


def remove(rows: Rows | None, partition: int) -> Rows | None:
    """Remove a row. Nothing happens where there is none."""
    if rows is None or isinstance(rows, int):
        return None if rows is not None and rows & MOST_PARTITION == partition else rows
    at = _find(rows, partition)
    if at < 0:
        return rows
    partitions, *columns = cells(rows)
    at = (at - HEAD) // WIDTH[rows[SHAPE] & ALL]
    n = len(partitions) - 1
    if n == 0:
        return None
    left = [(column,) * n if isinstance(column, int) else (*column[:at], *column[at + 1 :]) for column in columns]
    return of_cells((*partitions[:at], *partitions[at + 1 :]), *left)


def _find(rows: array[int], partition: int) -> int:
    """Where a partition's row begins, or -1."""
    shape = rows[SHAPE]
    n, width = shape >> FLAG_BITS, WIDTH[shape & ALL]
    if not shape & GAPS:
        at = partition - rows[START]
        return HEAD + at * width if 0 <= at < n else -1
    at = _place(rows, partition)
    return at if at < len(rows) and rows[at + width - 1] == partition else -1


def _place(rows: array[int], partition: int) -> int:
    """Where the first row of this partition or a later one begins, among rows with gaps; or their end."""
    n, width = rows[SHAPE] >> FLAG_BITS, WIDTH[rows[SHAPE] & ALL]
    low, high, last = 0, n, HEAD + width - 1
    while low < high:
        middle = (low + high) >> 1
        if rows[last + middle * width] < partition:
            low = middle + 1
        else:
            high = middle
    return HEAD + low * width


def _insert(rows: array[int], partition: int) -> tuple[array[int], int]:
    """The rows with one more, whose other cells the caller sets, and where it begins."""
    start, n = rows[START], rows[SHAPE] >> FLAG_BITS
    if not rows[SHAPE] & GAPS and partition not in (start - 1, start + n):
        rows, _ = _vary(rows, GAPS, HEAD)
    flags = rows[SHAPE] & ALL
    at = _place(rows, partition) if flags & GAPS else HEAD if partition < start else len(rows)
    rows[at:at] = array("q", (partition,)) * WIDTH[flags]  # the last of them is right where there are gaps
    rows[START] = min(start, partition)
    rows[SHAPE] += 1 << FLAG_BITS
    if flags & GAPS and rows[-1] - rows[START] == n:  # the last gap is closed
        width = WIDTH[flags]
        del rows[HEAD + width - 1 :: width]
        rows[SHAPE] &= ~GAPS
        at = HEAD + (at - HEAD) // width * (width - 1)
    return rows[:] if n < MANY else rows, at  # a copy has no room to spare


def _vary(rows: array[int], flag: int, at: int) -> tuple[array[int], int]:
    """The rows with a column more, of what stood for it; and where the row that began at `at` begins."""
    partitions, offsets, epochs, times = cells(rows)
    shape, before = rows[SHAPE] | flag, WIDTH[rows[SHAPE] & ALL]
    n, width = len(partitions), WIDTH[shape & ALL]
    wider = rows[:HEAD] + array("q", (0,)) * (n * width)
    wider[SHAPE] = shape
    wider[HEAD::width] = array("q", (offsets,)) if isinstance(offsets, int) else offsets
    for is_there, place, column in (
        (shape & EPOCHS, 1, epochs),
        (shape & TIMES, TIME_AT[shape & ALL], times),
        (shape & GAPS, width - 1, partitions),
    ):
        if is_there:
            wider[HEAD + place :: width] = array("q", (column,)) * n if isinstance(column, int) else array("q", column)
    return wider, HEAD + (at - HEAD) // before * width


def _range(start: int, stop: int) -> range:
    """The one range object of these bounds."""
    if stop - start > LARGEST_SHARED:
        return range(start, stop)
    found = _ranges.get((start, stop))
    if found is None:
        if len(_ranges) >= RANGES_KEPT:
            _ranges.clear()
        found = _ranges[start, stop] = range(start, stop)
    return found
