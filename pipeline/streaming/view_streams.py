"""The views of the logs as streams, and running streaming queries: once over what is there, or until stopped."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.schema import spark_schema
from pipeline.source.read_options import spark_options
from pipeline.streaming.stop_signal import stop_on_signals
from pipeline.streaming.transient_errors import RetryBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

POLL_S: Final = 1  # between two checks of the queries


def add_stream_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a streaming job."""
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="keep running, with a micro-batch that often; without it, once"
    )
    parser.add_argument(
        "--max-bytes", type=int, default=1 << 28, metavar="N", help="of the logs in a micro-batch [268435456]"
    )


def view_stream(
    spark: SparkSession,
    path: str,
    records: str,
    topic: str | None = None,
    max_bytes: int | None = None,
    columns: Sequence[str] | None = None,
    plan: str = "",
) -> DataFrame:
    """One view as a stream, with the columns of pipeline/schema.py or only the named ones, in that order.

    max_bytes: of the logs in a micro-batch; plan: the plan file (source/plan_file.py), or none. An archive's table
    ignores both.

    Errors:  PipelineError: it is a table of Delta Lake and the session has no Delta Lake.
    """
    if tables.is_archive(path):
        table = f"{path}/{records}"
        if tables.is_delta(table):
            tables.require_delta(spark, table)
            found = tables.with_all_columns(spark.readStream.format("delta").load(table), spark_schema(records))
        else:
            from pyspark.sql.types import DateType  # 70 ms, and absent where only the local engine is

            found = spark.readStream.schema(spark_schema(records).add(tables.DAY, DateType())).parquet(table)
        return tables.select_view(found, path, records, topic, columns)
    options = spark_options(path, records, topic, columns)
    options |= {"maxBytesPerTrigger": str(max_bytes or ""), "plan": plan}
    return spark.readStream.format("momus").options(**options).load()


def with_trigger(writer: DataStreamWriter, every_s: float | None) -> DataStreamWriter:
    """Process all that is there, in as many micro-batches as the size limit needs, then end; or again every every_s."""
    if every_s is None:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{int(every_s * 1000)} milliseconds")


def run_queries(starts: Sequence[Callable[[], StreamingQuery]], poll: Callable[[], None] = lambda: None) -> None:
    """Start the queries and wait until all end or SIGTERM or SIGINT stops them.

    `poll` is called about every POLL_S and once at the end. A query that fails transiently is started again.

    Errors:  PipelineError: a query has failed; the others are stopped.
    """
    from pyspark.errors import StreamingQueryException  # 70 ms, as above

    queries: list[StreamingQuery] = []
    with stop_on_signals() as stop:
        try:
            queries += [start() for start in starts]
            running = {at: RetryBudget() for at in range(len(starts))}
            while running and not stop.is_set:
                with suppress(StreamingQueryException):  # reported below, by query.exception()
                    queries[next(iter(running))].awaitTermination(POLL_S)
                poll()
                for at in [at for at in running if not queries[at].isActive]:
                    error = queries[at].exception()
                    if error is None:
                        del running[at]
                    elif running[at].allows_retry(error, has_progressed=queries[at].lastProgress is not None):
                        queries[at] = starts[at]()
                    else:
                        raise PipelineError(f"the stream has failed: {str(error).splitlines()[0]}") from error
            for query in queries:
                query.stop()
            poll()
        finally:
            for query in queries:
                if query.isActive:
                    query.stop()
