"""The DataFrame in Spark's words: a query of DuckDB over those that it was made of, run when rows are asked for.

A DataFrame that several others use is one common table expression of the query, computed once. `localCheckpoint` makes
it a temporary table, which DuckDB may write to disk where memory is short.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from pipeline.local import functions as F
from pipeline.local.columns import Column, column_of, ordering
from pipeline.local.spark_sql import condition, quoted

if TYPE_CHECKING:
    import pyarrow as pa


_NUMBERS: Final = itertools.count()


class Engine(Protocol):
    """What a DataFrame needs of its session."""

    def execute(self, sql: str) -> Any: ...
    def reader(self, sql: str) -> pa.RecordBatchReader: ...
    def types(self, sql: str) -> dict[str, Any]: ...


class Row(tuple[Any, ...]):
    """A row: its values by number or name. Structs in it are dicts."""

    names: Sequence[str]

    @classmethod
    def of(cls, names: Sequence[str], values: Sequence[Any]) -> Row:
        """A row with these names."""
        made = cls(values)
        made.names = names
        return made

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, self.names.index(key) if isinstance(key, str) else key)

    def asDict(self, recursive: bool = False) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Name -> value."""
        return dict(zip(self.names, self, strict=True))

    def __contains__(self, name: object) -> bool:
        return name in self.names


class DataFrame:
    """A query. sql: with the names of the DataFrames in `needs` as tables; columns: the names of what it gives."""

    def __init__(self, session: Engine, sql: str, columns: Sequence[str], needs: Sequence[DataFrame] = ()) -> None:
        self.sparkSession = session
        self.sql = sql
        self.columns = list(columns)
        self.needs = tuple(needs)
        self.table = f"t_{next(_NUMBERS)}"

    # -- running it

    def query(self) -> str:
        """The whole statement."""
        uses: Counter[str] = Counter()
        order: dict[str, DataFrame] = {}
        stack: list[tuple[DataFrame, bool]] = [(self, False)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                order.setdefault(node.table, node)
            elif node.table not in order:
                stack.append((node, True))
                stack.extend((each, False) for each in reversed(node.needs))
        for node in order.values():
            uses.update(each.table for each in node.needs)
        parts = [
            f"{node.table} AS {'' if uses[node.table] > 1 else 'NOT '}MATERIALIZED ({node.sql})"
            for node in order.values()
            if node is not self
        ]
        return f"WITH {', '.join(parts)} {self.sql}" if parts else self.sql

    def collect(self) -> list[Row]:
        """All rows."""
        return [Row.of(self.columns, values) for values in self.sparkSession.execute(self.query()).fetchall()]

    def toLocalIterator(self) -> Iterator[Row]:  # noqa: N802  # Spark's name
        """All rows, one after the other."""
        found = self.sparkSession.execute(self.query())
        while values := found.fetchmany(10_000):
            yield from (Row.of(self.columns, each) for each in values)

    def to_batches(self) -> pa.RecordBatchReader:
        """All rows, in Arrow."""
        return self.sparkSession.reader(self.query())

    def count(self) -> int:
        """How many rows there are."""
        counted = self._made(f"SELECT count(*) FROM {self.table}", ["count"])
        return int(self.sparkSession.execute(counted.query()).fetchall()[0][0])

    def isEmpty(self) -> bool:  # noqa: N802  # Spark's name
        """Whether there are none."""
        return not self.limit(1).collect()

    def first(self) -> Row | None:
        """The first row."""
        return next(iter(self.limit(1).collect()), None)

    def localCheckpoint(self) -> DataFrame:  # noqa: N802  # Spark's name
        """The rows, computed now."""
        name = f"kept_{next(_NUMBERS)}"
        self.sparkSession.execute(f"CREATE TEMP TABLE {name} AS {self.query()}")
        return DataFrame(self.sparkSession, f"SELECT * FROM {name}", self.columns)

    persist = localCheckpoint

    # -- rows

    def where(self, test: str | Column) -> DataFrame:
        """The rows for which a condition holds."""
        sql = test.sql if isinstance(test, Column) else condition(test)
        return self._made(f"SELECT * FROM {self.table} WHERE {sql}", self.columns)

    def limit(self, count: int) -> DataFrame:
        """The first rows."""
        return self._made(f"SELECT * FROM {self.table} LIMIT {count}", self.columns)

    def distinct(self) -> DataFrame:
        """Each row once."""
        return self._made(f"SELECT DISTINCT * FROM {self.table}", self.columns)

    def orderBy(self, *order: str | Column) -> DataFrame:  # noqa: N802  # Spark's name
        """In order."""
        by = ", ".join(ordering(column_of(each)) for each in order)
        return self._made(f"SELECT * FROM {self.table} ORDER BY {by}", self.columns)

    def exceptAll(self, other: DataFrame) -> DataFrame:  # noqa: N802  # Spark's name
        """Without the rows of the other, each as often as it is there."""
        sql = f"SELECT * FROM {self.table} EXCEPT ALL SELECT * FROM {other.table}"
        return self._made(sql, self.columns, other)

    def unionByName(self, other: DataFrame, allowMissingColumns: bool = False) -> DataFrame:  # noqa: N802, N803  # Spark's
        """With the rows of the other; columns that one lacks are null there.

        Errors:  ValueError: the columns differ, and may not.
        """
        if not allowMissingColumns and set(self.columns) != set(other.columns):
            raise ValueError(f"the columns differ: {set(self.columns) ^ set(other.columns)}")
        names = list(dict.fromkeys([*self.columns, *other.columns]))
        one, two = (
            ", ".join(quoted(name) if name in each.columns else f"NULL AS {quoted(name)}" for name in names)
            for each in (self, other)
        )
        return self._made(f"SELECT {one} FROM {self.table} UNION ALL SELECT {two} FROM {other.table}", names, other)

    # -- columns

    def __getitem__(self, name: str) -> Column:
        return column_of(name)

    def select(self, *columns: Any) -> DataFrame:
        """These columns; `*` is all, `a.*` all fields of a struct."""
        made: list[Column] = []
        for each in self._listed(columns):
            if isinstance(each, Column):
                made.append(each)
            elif each == "*":
                made += [column_of(name) for name in self.columns]
            elif each.endswith(".*"):
                made += [column_of(f"{each[:-2]}.{name}") for name in self._fields(each[:-2])]
            else:
                made.append(column_of(each))
        return self._made(f"SELECT {_named(made)} FROM {self.table}", [each.name for each in made])

    def withColumn(self, name: str, column: Column) -> DataFrame:  # noqa: N802  # Spark's name
        """With another column, or one that is replaced."""
        return self.withColumns({name: column})

    def withColumns(self, columns: dict[str, Column]) -> DataFrame:  # noqa: N802  # Spark's name
        """With several more."""
        made = [columns[name].alias(name) if name in columns else column_of(name) for name in self.columns]
        made += [column.alias(name) for name, column in columns.items() if name not in self.columns]
        return self.select(*made)

    def withColumnRenamed(self, old: str, new: str) -> DataFrame:  # noqa: N802  # Spark's name
        """With another name for a column."""
        return self.toDF(*(new if name == old else name for name in self.columns))

    def toDF(self, *names: str) -> DataFrame:  # noqa: N802  # Spark's name
        """With these names, in order."""
        return self.select(*(column_of(old).alias(new) for old, new in zip(self.columns, names, strict=True)))

    def drop(self, *names: str) -> DataFrame:
        """Without these columns."""
        return self.select(*(name for name in self.columns if name not in names))

    def transform(self, change: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """What a function makes of it."""
        return change(self)

    # -- several at once

    def groupBy(self, *key: str | Column) -> Grouped:  # noqa: N802  # Spark's name
        """To aggregate the rows that are alike in these columns."""
        return Grouped(self, [column_of(each) for each in key])

    def agg(self, *columns: Column) -> DataFrame:
        """Aggregates over all rows, in one row."""
        return self.groupBy().agg(*columns)

    def crossJoin(self, other: DataFrame) -> DataFrame:  # noqa: N802  # Spark's name
        """Each row with each of the other."""
        sql = f"SELECT * FROM {self.table} CROSS JOIN {other.table}"
        return self._made(sql, [*self.columns, *other.columns], other)

    def join(self, other: DataFrame, on: Any, how: str = "inner") -> DataFrame:
        """With the rows of the other that are alike in columns of these names, or for which a condition holds."""
        names = [on] if isinstance(on, str) else on if isinstance(on, list) and isinstance(on[0], str) else None
        one, two = self.table, other.table
        if names is not None:
            how_sql = "USING (" + ", ".join(map(quoted, names)) + ")"
        else:
            tests = on if isinstance(on, list) else [on]
            how_sql = "ON " + " AND ".join(each.sql for each in tests)
        if how in ("left_semi", "left_anti"):
            kind = "SEMI" if how == "left_semi" else "ANTI"
            return self._made(f"SELECT {one}.* FROM {one} {kind} JOIN {two} {how_sql}", self.columns, other)
        kind = {"inner": "INNER", "left": "LEFT", "full_outer": "FULL OUTER"}[how]
        shared = names or []
        mine = [name for name in self.columns if name not in shared]
        others = [name for name in other.columns if name not in shared]
        parts = [
            *(quoted(name) for name in shared),
            *(f"{one}.{quoted(name)}" for name in mine),
            *(f"{two}.{quoted(name)}" for name in others),
        ]
        sql = f"SELECT {', '.join(parts)} FROM {one} {kind} JOIN {two} {how_sql}"
        return self._made(sql, [*shared, *mine, *others], other)

    def hint(self, _: str) -> DataFrame:
        """Itself: a hint to Spark."""
        return self

    # -- within

    def _made(self, sql: str, columns: Sequence[str], *others: DataFrame) -> DataFrame:
        return DataFrame(self.sparkSession, sql, columns, (self, *others))

    def _fields(self, name: str) -> list[str]:
        kind = self.sparkSession.types(self.select(F.col(name).alias("it")).query())["it"]
        return [field for field, _ in kind.children]

    @staticmethod
    def _listed(columns: Sequence[Any]) -> Iterator[Any]:
        for each in columns:
            if isinstance(each, (list, tuple)):
                yield from each
            else:
                yield each


class Grouped:
    """Rows that are alike in some columns, to be aggregated."""

    def __init__(self, rows: DataFrame, key: Sequence[Column]) -> None:
        self._rows, self._key = rows, key

    def agg(self, *columns: Column) -> DataFrame:
        """One row a key."""
        every = [*self._key, *columns]
        by = f" GROUP BY {', '.join(str(at + 1) for at in range(len(self._key)))}" if self._key else ""
        sql = f"SELECT {_named(every)} FROM {self._rows.table}{by}"
        return self._rows._made(sql, [each.name for each in every])

    def count(self) -> DataFrame:
        """The number of rows of each key, in `count`."""
        return self.agg(F.count(F.lit(1)).alias("count"))

    def sum(self, name: str) -> DataFrame:
        """The sums of a column."""
        return self.agg(F.sum(name).alias(f"sum({name})"))


def _named(columns: Sequence[Column]) -> str:
    """Of columns of the same name, the last keeps it, as a later one replaces an earlier one."""
    return ", ".join(f"{each.sql} AS {quoted_name(each.name)}" for each in columns)


def quoted_name(name: str) -> str:
    """A name as a whole, dots included."""
    return '"' + name.replace('"', '""') + '"'
