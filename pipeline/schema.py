"""The columns of the three views of a log: `raw`, `offsets` and `transactions`, as Arrow schemas and as Spark's.

It can be imported without Spark, which only `spark_schema` needs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TIME: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TXN_PARTITIONS: Final = pa.list_(pa.struct([pa.field("topic", pa.string()), pa.field("partition", pa.int32())]))

# Every view begins with these: where a record is, and the fields of its batch.
_LOCATION: Final = [
    ("log", pa.string()),  # name of the directory: TOPIC-PARTITION
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("topic_id", pa.string()),  # by partition.metadata, as Kafka prints it; null: the log's folder names none
    ("segment", pa.int64()),  # base offset of the file
    ("position", pa.int64()),  # of the batch in the file
    ("batch_base_offset", pa.int64()),
    ("batch_last_offset", pa.int64()),
    ("batch_size", pa.int32()),  # bytes, as stored
    ("batch_records", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", TIME),
    ("timestamp_type", pa.string()),  # CreateTime, LogAppendTime
    ("leader_epoch", pa.int32()),
    ("producer_id", pa.int64()),
    ("producer_epoch", pa.int16()),
    ("sequence", pa.int32()),  # of the record; -1: none
    ("transactional", pa.bool_()),
    ("control", pa.string()),  # null; COMMIT, ABORT, or the name of another kind of marker
    ("coordinator_epoch", pa.int32()),  # of COMMIT and ABORT
    ("compression", pa.string()),
    ("record_size", pa.int32()),  # bytes before compression, with its length field
]

RAW_FIELDS: Final = pa.schema([*_LOCATION, ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)])

OFFSETS_FIELDS: Final = pa.schema(
    [
        *_LOCATION,
        ("kind", pa.string()),  # Kafka's name of the record type; null for a marker
        ("key_version", pa.int16()),
        ("value_version", pa.int16()),
        ("tombstone", pa.bool_()),
        ("group", pa.string()),
        ("commit_topic", pa.string()),
        ("commit_partition", pa.int32()),
        ("commit_offset", pa.int64()),
        ("commit_leader_epoch", pa.int32()),
        ("commit_metadata", pa.string()),
        ("commit_timestamp", TIME),
        ("expire_timestamp", TIME),
        ("commit_topic_id", pa.string()),
        # Of the member that committed: headers of the batch's first record, repeated on all of its rows.
        ("member_id", pa.string()),
        ("instance_id", pa.string()),
        ("generation", pa.int32()),  # generation or member epoch
        ("client_id", pa.string()),
        ("commit_id", pa.int64()),  # of a commit over several batches, and its number of records
        ("commit_size", pa.int32()),
        ("key_json", pa.string()),  # of all kinds except OffsetCommit
        ("value_json", pa.string()),
    ]
)

TRANSACTIONS_FIELDS: Final = pa.schema(
    [
        *_LOCATION,
        ("kind", pa.string()),
        ("key_version", pa.int16()),
        ("value_version", pa.int16()),
        ("tombstone", pa.bool_()),
        ("transactional_id", pa.string()),
        ("txn_producer_id", pa.int64()),
        ("txn_producer_epoch", pa.int16()),
        ("txn_state", pa.string()),  # Empty, Ongoing, PrepareCommit, ...
        ("txn_timeout_ms", pa.int32()),
        ("txn_partitions", TXN_PARTITIONS),
        ("txn_start", TIME),
        ("txn_update", TIME),
        ("key_json", pa.string()),
        ("value_json", pa.string()),
    ]
)

VIEWS: Final = {"raw": RAW_FIELDS, "offsets": OFFSETS_FIELDS, "transactions": TRANSACTIONS_FIELDS}
LOCATION_COLUMNS: Final = tuple(name for name, _ in _LOCATION)
# Never null. Spark and Parquet skip the null check of columns declared so.
_NEVER_NULL: Final = {*LOCATION_COLUMNS, "tombstone"} - {"topic_id", "timestamp", "control", "coordinator_epoch"}
# The topics of a view where the option `topic` is not given.
TOPICS: Final = {"raw": "*", "offsets": "__consumer_offsets", "transactions": "__transaction_state"}


def view_fields(records: str, columns: Collection[str] | None) -> pa.Schema:
    """The fields of a view, or only the named ones, in the view's order.

    Errors:  ValueError: the view has no such column.
    """
    fields = VIEWS[records]
    if columns is None:
        return fields
    if unknown := [name for name in columns if name not in fields.names]:
        raise ValueError(f"the view {records} has no column {', '.join(unknown)}; it has {', '.join(fields.names)}")
    return pa.schema([field for field in fields if field.name in columns])


def with_nullability(fields: pa.Schema) -> pa.Schema:
    """The same fields, with those that are never null declared so."""
    return pa.schema([field.with_nullable(field.name not in _NEVER_NULL) for field in fields])


def spark_schema(records: str, columns: Collection[str] | None = None) -> StructType:
    """`view_fields` as a Spark schema. Errors: ValueError: the view has no such column."""
    from pyspark.sql.pandas.types import from_arrow_schema  # 70 ms that `scan` and the decoders do not need

    return from_arrow_schema(with_nullability(view_fields(records, columns)))
