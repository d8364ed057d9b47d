"""Running values of a key with many rows, block by block of its offsets, so that no task holds all rows of a key.

A window over key and block gives the value inside a block, a window over the blocks' summaries that of the blocks
before: a summary is one row a key and block of a million offsets. The rows are computed twice for that, and the plans
are twice as large. So where few rows are known to be there, plain windows take their place: `plain_windows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.engine import F, Window, is_local
from pipeline.transforms.missing_offsets import block_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec

LAST, MAX, MIN, SUM = "last", "max", "min", "sum"
BLOCK: Final = "_block"
_are_plain: Final = ContextVar("_are_plain", default=False)


@dataclass(frozen=True, slots=True)
class Running:
    """A value over the rows of a key before each row: the last one that is not null, the highest, lowest, or the sum.

    inclusive  the row itself counts too
    backwards  the rows after are meant, not those before; the last is then the next
    """

    how: str
    value: Column
    inclusive: bool = False
    backwards: bool = False

    def frame(self, window: WindowSpec) -> WindowSpec:
        """The rows of a window, in order, that count in a block."""
        return window.rowsBetween(Window.unboundedPreceding, 0 if self.inclusive else -1)

    def over(self, window: WindowSpec, value: Column) -> Column:
        """The value over the rows of a window."""
        if self.how == LAST:
            return F.last(value, ignorenulls=True).over(window)
        return {MAX: F.max, MIN: F.min, SUM: F.sum}[self.how](value).over(window)

    def of_block(self, place: Column) -> Column:
        """The aggregate over all rows of a block. place: what orders them."""
        if self.how == LAST:
            known = F.when(self.value.isNotNull(), place)
            return F.min_by(self.value, known) if self.backwards else F.max_by(self.value, known)
        return {MAX: F.max, MIN: F.min, SUM: F.sum}[self.how](self.value)

    def joined(self, inside: Column, before: Column) -> Column:
        """The value of a row, from those inside its block and of the blocks before; null: no row has one."""
        if self.how == LAST:
            return F.coalesce(inside, before)
        if self.how == SUM:
            return F.coalesce(inside + before, inside, before)
        return F.greatest(inside, before) if self.how == MAX else F.least(inside, before)


@contextmanager
def plain_windows(*, wanted: bool = True) -> Iterator[None]:
    """Within it, with_running makes plain windows, if wanted: a task must be able to sort all rows of a key."""
    before = _are_plain.set(wanted)
    try:
        yield
    finally:
        _are_plain.reset(before)


def previous(value: Column) -> Running:
    """The value of the row before, null or not, as a struct with the field `value`; null: there is no row before."""
    return Running(LAST, F.struct(value.alias("value")))


def with_running(
    rows: DataFrame,
    key: Sequence[str],
    values: Mapping[str, Running],
    order: Sequence[str] = ("offset",),
    block: Column | None = None,
) -> DataFrame:
    """Rows with running values, by the names of their columns. Keys that are null are equal.

    order: the columns that order the rows of a key. block: which rows are folded together; it must not fall where the
    order rises; by default blocks of the first column of `order`, which then is an offset.
    """
    if _are_plain.get() or is_local():  # DuckDB sorts what memory does not hold
        return rows.withColumns(
            {name: each.over(_plain(each, key, order), each.value) for name, each in values.items()}
        )
    rows = rows.withColumn(BLOCK, block_of(order[0]) if block is None else block)
    names = [f"_running_{number}" for number in range(len(values))]
    part = (*key, BLOCK)
    inside, blocks = (
        {},
        rows.groupBy(*map(_quoted, part)).agg(
            *(each.of_block(F.struct(*order)).alias(name) for name, each in zip(names, values.values(), strict=True))
        ),
    )
    before = {}
    for name, each in zip(names, values.values(), strict=True):
        direction = F.desc if each.backwards else F.asc
        ordered = Window.partitionBy(*part).orderBy(*map(direction, order))
        inside[name] = each.over(each.frame(ordered), each.value)
        earlier = Window.partitionBy(*key).orderBy(direction(BLOCK)).rowsBetween(Window.unboundedPreceding, -1)
        before[name] = each.over(earlier, F.col(name)).alias(f"{name}_before")
    same = [f"_of_{number}" for number in range(len(part))]
    of_before = blocks.select(
        *(F.col(column).alias(name) for column, name in zip(part, same, strict=True)), *before.values()
    )
    is_same = [F.col(column).eqNullSafe(F.col(name)) for column, name in zip(part, same, strict=True)]
    # A left join: of logs that grow between the two reads, no row may be lost.
    found = rows.withColumns(inside).join(of_before, is_same, "left")
    made = {
        target: each.joined(F.col(name), F.col(f"{name}_before"))
        for (target, each), name in zip(values.items(), names, strict=True)
    }
    return found.withColumns(made).drop(BLOCK, *names, *(f"{name}_before" for name in names), *same)


def _plain(each: Running, key: Sequence[str], order: Sequence[str]) -> WindowSpec:
    direction = F.desc if each.backwards else F.asc
    return each.frame(Window.partitionBy(*key).orderBy(*map(direction, order)))


def _quoted(name: str) -> str:
    return f"`{name}`"
