"""Writes rows of the local engine as JSON lines or Parquet, in the form in which Spark writes them."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pipeline.local.frame import DataFrame

PART: Final = "part-00000.parquet"
_UTC: Final = pa.timestamp("us", tz="UTC")


def local_rows(rows: Any) -> DataFrame:
    """Rows that are the local engine's, though the code that made them says Spark's."""
    found: DataFrame = rows
    return found


def print_rows(rows: DataFrame) -> int:
    """Print rows as JSON lines, without fields that are null; returns how many there were."""
    count = 0
    for row in rows.toLocalIterator():
        sys.stdout.write(json.dumps(plain(row.asDict()), ensure_ascii=False, separators=(",", ":")) + "\n")
        count += 1
    return count


def write_rows(rows: DataFrame, path: str) -> int:
    """Write rows into a folder, as one file of Parquet; returns how many there were. Times are UTC."""
    Path(path).mkdir(parents=True, exist_ok=True)
    reader = rows.to_batches()
    fields = [_with_zone(field) for field in reader.schema]
    schema, count = pa.schema(fields), 0
    with pq.ParquetWriter(f"{path}/{PART}", schema) as writer:
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            count += batch.num_rows
    return count


def _with_zone(field: pa.Field) -> pa.Field:
    return field.with_type(_UTC) if pa.types.is_timestamp(field.type) else field


def plain(value: Any) -> Any:
    """A value as Spark's to_json has it: times in ISO 8601, and no field that is null."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        micros = f"{value.microsecond:06d}"
        return f"{value:%Y-%m-%dT%H:%M:%S}.{micros[:3] if micros.endswith('000') else micros}Z"
    if isinstance(value, date):
        return value.isoformat()
    return value
