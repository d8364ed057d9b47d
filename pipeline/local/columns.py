"""Columns and windows in Spark's words, each a piece of DuckDB's SQL."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pipeline.local.spark_sql import quoted, type_of

UNBOUNDED: Final = sys.maxsize


class Column:
    """An expression: its SQL, and the name of the column that it makes."""

    def __init__(self, sql: str, name: str | None = None) -> None:
        self.sql = sql
        self.name = sql if name is None else name

    def alias(self, name: str) -> Column:
        """The same under another name."""
        return Column(self.sql, name)

    def over(self, window: WindowSpec) -> Column:
        """An aggregate over the rows of a window."""
        return Column(f"{self.sql} OVER ({window.sql})")

    def cast(self, kind: str) -> Column:
        """As another type; null where it cannot be."""
        return Column(f"TRY_CAST({self.sql} AS {type_of(kind)})", self.name)

    def when(self, condition: Column, value: Any) -> Column:
        """A further case of a column that functions.when began."""
        raise NotImplementedError

    def otherwise(self, value: Any) -> Column:
        """What is left of a column that functions.when began."""
        raise NotImplementedError

    def getField(self, name: str) -> Column:  # noqa: N802  # Spark's name
        """A field of a struct."""
        return Column(f"({self.sql}).{quoted(name)}", name)

    def __getitem__(self, name: str) -> Column:
        return self.getField(name)

    def isNull(self) -> Column:  # noqa: N802  # Spark's name
        """Whether it is null."""
        return Column(f"({self.sql} IS NULL)")

    def isNotNull(self) -> Column:  # noqa: N802  # Spark's name
        """Whether it is not null."""
        return Column(f"({self.sql} IS NOT NULL)")

    def isin(self, *values: Any) -> Column:
        """Whether it is one of the values."""
        every = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple, set)) else values
        return Column(f"({self.sql} IN ({', '.join(literal(each) for each in every)}))" if every else "FALSE")

    def eqNullSafe(self, other: Any) -> Column:  # noqa: N802  # Spark's name
        """Whether it is equal, nulls included."""
        return Column(f"({self.sql} IS NOT DISTINCT FROM {sql_of(other)})")

    def rlike(self, pattern: str) -> Column:
        """Whether a regular expression is found in it."""
        return Column(f"regexp_matches({self.sql}, {literal(pattern)})")

    def desc(self) -> Column:
        """For an order: the highest first, nulls last."""
        return Column(f"{self.sql} DESC NULLS LAST", self.name)

    def asc(self) -> Column:
        """For an order: nulls first, then the lowest."""
        return Column(f"{self.sql} ASC NULLS FIRST", self.name)

    def _with(self, operator: str, other: Any, *, swapped: bool = False) -> Column:
        one, two = self.sql, sql_of(other)
        return Column(f"({two} {operator} {one})" if swapped else f"({one} {operator} {two})")

    def __add__(self, other: Any) -> Column:
        return self._with("+", other)

    def __sub__(self, other: Any) -> Column:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Column:
        return self._with("-", other, swapped=True)

    def __mul__(self, other: Any) -> Column:
        return self._with("*", other)

    def __truediv__(self, other: Any) -> Column:
        return self._with("/", other)

    def __neg__(self) -> Column:
        return Column(f"(-{self.sql})")

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.sql})")

    def __and__(self, other: Any) -> Column:
        return self._with("AND", other)

    def __or__(self, other: Any) -> Column:
        return self._with("OR", other)

    def __eq__(self, other: object) -> Column:  # type: ignore[override]  # as in Spark
        return self._with("=", other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]  # as in Spark
        return self._with("!=", other)

    def __lt__(self, other: Any) -> Column:
        return self._with("<", other)

    def __le__(self, other: Any) -> Column:
        return self._with("<=", other)

    def __gt__(self, other: Any) -> Column:
        return self._with(">", other)

    def __ge__(self, other: Any) -> Column:
        return self._with(">=", other)

    __hash__ = None  # type: ignore[assignment]  # as in Spark


class Cases(Column):
    """What functions.when began: cases, and null elsewhere."""

    def __init__(self, cases: Sequence[tuple[str, str]]) -> None:
        self._cases = tuple(cases)
        super().__init__(self._sql(""))

    def _sql(self, rest: str) -> str:
        cases = " ".join(f"WHEN {condition} THEN {value}" for condition, value in self._cases)
        return f"(CASE {cases}{rest} END)"

    def when(self, condition: Column, value: Any) -> Cases:
        """A further case."""
        return Cases([*self._cases, (condition.sql, sql_of(value))])

    def otherwise(self, value: Any) -> Column:
        """What is left."""
        return Column(self._sql(f" ELSE {sql_of(value)}"))


class Aggregate(Column):
    """An aggregate whose result is cast or completed: {} in `around` is the aggregate itself, or it over a window."""

    def __init__(self, core: str, around: str = "{}") -> None:
        self._core, self._around = core, around
        super().__init__(around.format(core))

    def over(self, window: WindowSpec) -> Column:
        """Over the rows of a window."""
        return Column(self._around.format(f"{self._core} OVER ({window.sql})"))


class WindowSpec:
    """Which rows a window has, in which order, and which of them count."""

    def __init__(self, key: Sequence[Column] = (), order: Sequence[Column] = (), frame: str = "") -> None:
        self._key, self._order, self._frame = tuple(key), tuple(order), frame

    @property
    def sql(self) -> str:
        """What stands in the brackets after OVER."""
        parts = []
        if self._key:
            parts.append("PARTITION BY " + ", ".join(each.sql for each in self._key))
        if self._order:
            parts.append("ORDER BY " + ", ".join(ordering(each) for each in self._order))
        return " ".join([*parts, self._frame])

    def partitionBy(self, *key: str | Column) -> WindowSpec:  # noqa: N802  # Spark's name
        """The rows that are alike in these columns."""
        return WindowSpec([column_of(each) for each in key], self._order, self._frame)

    def orderBy(self, *order: str | Column) -> WindowSpec:  # noqa: N802  # Spark's name
        """In the order of these columns."""
        return WindowSpec(self._key, [column_of(each) for each in order], self._frame)

    def rowsBetween(self, first: int, last: int) -> WindowSpec:  # noqa: N802  # Spark's name
        """From `first` rows after the row, below 0 before it, to `last`."""
        return WindowSpec(self._key, self._order, f"ROWS BETWEEN {_bound(first)} AND {_bound(last)}")


class Window:
    """Where windows begin."""

    unboundedPreceding: Final = -UNBOUNDED  # noqa: N815  # Spark's name
    unboundedFollowing: Final = UNBOUNDED  # noqa: N815  # Spark's name
    currentRow: Final = 0  # noqa: N815  # Spark's name

    @staticmethod
    def partitionBy(*key: str | Column) -> WindowSpec:  # noqa: N802  # Spark's name
        """See WindowSpec."""
        return WindowSpec().partitionBy(*key)

    @staticmethod
    def orderBy(*order: str | Column) -> WindowSpec:  # noqa: N802  # Spark's name
        """See WindowSpec."""
        return WindowSpec().orderBy(*order)


def _bound(rows: int) -> str:
    if not rows:
        return "CURRENT ROW"
    number = "UNBOUNDED" if abs(rows) >= UNBOUNDED else str(abs(rows))
    return f"{number} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"


def ordering(column: Column) -> str:
    """A column in an order; without a direction, as Spark orders."""
    return column.sql if column.sql.endswith(("NULLS LAST", "NULLS FIRST")) else column.asc().sql


def column_of(value: str | Column) -> Column:
    """A column, or the one of that name."""
    if isinstance(value, Column):
        return value
    return Column(quoted(value), value.split(".")[-1].strip("`"))


def sql_of(value: Any) -> str:
    """A column's SQL, or a literal."""
    return value.sql if isinstance(value, Column) else literal(value)


def literal(value: Any) -> str:
    """A Python value as SQL; times as UTC."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
    if isinstance(value, (int, float)):
        return str(value) if value >= 0 else f"({value})"
    return "'" + str(value).replace("'", "''") + "'"
