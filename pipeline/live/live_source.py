"""Opens a running broker as the input of a job, in Spark or in the local engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.broker_address import bootstrap_of, is_broker
from pipeline.connection_options import given_settings
from pipeline.engine import is_local
from pipeline.live.cut import Cut, take_cut

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


def register(spark: SparkSession, cut: Cut) -> None:
    """Have the session read this cut."""
    if is_local():
        local: Any = spark
        local.cut = cut
    else:
        from pipeline.live import spark_source  # 70 ms, and pyspark is absent where only the local engine is

        spark_source.register(spark, cut)


def open_input(spark: SparkSession, args: argparse.Namespace) -> Cut | None:
    """Have the session read the broker that --input names, as of now; None: it names files. Errors: PipelineError."""
    if not is_broker(args.input):
        return None
    cut = take_cut(bootstrap_of(args.input), given_settings(args))
    register(spark, cut)
    return cut
