"""The session of the local engine: one DuckDB in memory, the views of logs as tables, and Python's functions in it."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from pipeline.local.frame import DataFrame
from pipeline.local.functions import SESSIONS
from pipeline.local.spark_sql import duck_type, fields_of, quoted

if TYPE_CHECKING:
    from pipeline.live.cut import Cut

_NUMBERS: Final = itertools.count()
BATCH_ROWS: Final = 100_000
_LARGE_BYTES: Final = 1 << 20
FEW_ROWS: Final = 50  # of given ones
_NAIVE: Final = pa.timestamp("us")
_PLAIN: Final = {
    "string": pa.string(), "long": pa.int64(), "bigint": pa.int64(), "int": pa.int32(), "boolean": pa.bool_(),
}  # fmt: skip  # several to a line


class LocalSession:
    """Tables, and what runs on them. `progress` is called as a view is read: see progress.Progress."""

    def __init__(self, progress: Callable[..., None] | None = None) -> None:
        spilled = tempfile.mkdtemp(prefix="momus-pipeline-")
        self._spilled = spilled
        self._connection = duckdb.connect(config={"temp_directory": spilled, "threads": os.cpu_count() or 1})
        self._progress = progress
        self._views: dict[object, DataFrame] = {}
        self.cut: Cut | None = None  # of the broker that is read
        self.skip_damaged = False
        SESSIONS.append(self)

    def stop(self) -> None:
        """Give everything back."""
        SESSIONS.remove(self)
        self._connection.close()
        for name in os.listdir(self._spilled):
            os.unlink(os.path.join(self._spilled, name))
        os.rmdir(self._spilled)

    def execute(self, sql: str) -> Any:
        """Run a statement."""
        return self._connection.execute(sql)

    def reader(self, sql: str) -> pa.RecordBatchReader:
        """What a query gives, in Arrow."""
        return self._connection.sql(sql).to_arrow_reader(BATCH_ROWS)

    def types(self, sql: str) -> dict[str, Any]:
        """Column -> DuckDB's type, of a query."""
        made = self._connection.sql(sql)
        return dict(zip(made.columns, made.types, strict=True))

    def createDataFrame(self, rows: Iterable[Sequence[Any]], schema: str) -> DataFrame:  # noqa: N802  # Spark's name
        """Given rows; schema: `a string, b long`."""
        fields = fields_of(schema)
        name = f"made_{next(_NUMBERS)}"
        columns = ", ".join(f"{quoted(field)} {duck_type(kind)}" for field, kind in fields)
        self.execute(f"CREATE TEMP TABLE {name} ({columns})")
        every = [tuple(row) for row in rows]
        if len(every) > FEW_ROWS and all(kind in _PLAIN for _, kind in fields):
            self._insert(name, fields, every)
        elif every:
            marks = ", ".join("?" for _ in fields)
            self._connection.executemany(f"INSERT INTO {name} VALUES ({marks})", every)
        return DataFrame(self, f"SELECT * FROM {name}", [field for field, _ in fields])

    def _insert(self, name: str, fields: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> None:
        """Through Arrow: DuckDB takes four milliseconds for a row of executemany."""
        columns = [
            pa.array(values, _PLAIN[kind]) for (_, kind), values in zip(fields, zip(*rows, strict=True), strict=True)
        ]
        self._connection.register("_incoming", pa.Table.from_arrays(columns, [field for field, _ in fields]))
        self.execute(f"INSERT INTO {name} SELECT * FROM _incoming")
        self._connection.unregister("_incoming")

    def table(
        self,
        key: object,
        what: str,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        share: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> DataFrame:
        """Rows in Arrow as a table, whose times are UTC; the same key gives the same table.

        share: how much was read, and of how much.
        """
        if key in self._views:
            return self._views[key]
        fields = [field.with_type(_NAIVE) if pa.types.is_timestamp(field.type) else field for field in schema]
        plain = pa.schema(fields)
        reader = pa.RecordBatchReader.from_batches(plain, self._counted(what, plain, batches, share))
        name = f"view_{next(_NUMBERS)}"
        self._connection.register("_incoming", reader)
        self.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM _incoming")
        self._connection.unregister("_incoming")
        self._views[key] = DataFrame(self, f"SELECT * FROM {name}", schema.names)
        return self._views[key]

    def files(self, key: object, paths: Sequence[str], names: Sequence[str]) -> DataFrame:
        """Parquet files, read when they are asked for; columns that they lack are null."""
        if key not in self._views:
            listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
            source = (
                f"read_parquet([{listed}], union_by_name = true, hive_partitioning = true, hive_types_autocast = false)"
            )
            there = self._connection.sql(f"SELECT * FROM {source}").columns
            columns = ", ".join(quoted(name) if name in there else f"NULL AS {quoted(name)}" for name in names)
            self._views[key] = DataFrame(self, f"SELECT {columns} FROM {source}", names)
        return self._views[key]

    def register(self, function: Callable[..., Any], kind: str) -> str:
        """Make a function of Python one of SQL; returns its name."""
        name = f"python_{next(_NUMBERS)}"
        connection: Any = self._connection
        connection.create_function(name, function, None, duck_type(kind), null_handling="special")
        return name

    def _counted(
        self, what: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch], share: Callable[[], tuple[int, int]]
    ) -> Iterator[pa.RecordBatch]:
        count = 0
        waiting: list[pa.RecordBatch] = []
        size = 0

        def joined() -> Iterator[pa.RecordBatch]:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()

        # DuckDB takes three milliseconds for a batch, however small: those of small segments are joined.
        for batch in batches:
            count += batch.num_rows
            if self._progress is not None:
                self._progress(what, count, *share())
            arrays = [array.cast(field.type) for array, field in zip(batch.columns, schema, strict=True)]
            waiting.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            size += batch.num_rows
            if size >= BATCH_ROWS or batch.nbytes >= _LARGE_BYTES:
                yield from joined()
                waiting.clear()
                size = 0
        if waiting:
            yield from joined()
