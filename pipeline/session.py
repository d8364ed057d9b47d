"""Builds the SparkSession of every job and test, in one place.

Two ways lead here. In a process of its own (`momus pipeline`, tests) the JVM is started from here, so that Java, memory
and jars are ours to choose. Under spark-submit the JVM runs already with what the command line asked for: nothing that
was given there is touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError
from pipeline.spark_setup import jars
from pipeline.spark_setup.cache import cache_folder
from pipeline.spark_setup.java import java_home

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_MASTER = "local[*]"
DRIVER_MEMORY = "2g"
# For throughput; and Spark asks a column for nulls and its length before it asks for a value, so Arrow need not again.
JVM_OPTIONS = "-XX:+UseParallelGC -Darrow.enable_null_check_for_get=false -Darrow.enable_unsafe_memory_access=true"
CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def session(
    app: str,
    *,
    master: str | None = None,
    kafka: bool = False,
    delta: bool = False,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process, with the data source `momus` registered.

    kafka adds the connector's jars, delta those of Delta Lake; conf beats every setting made here, but for
    `spark.jars`: those come beside the ones that are needed.
    """
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    if not _submitted():
        _prepare_process()
    settings = SparkConf()
    settings.setAppName(app)
    if master is not None or not settings.contains("spark.master"):
        settings.setMaster(master or DEFAULT_MASTER)
    for key, value in _defaults(settings, kafka=kafka, delta=delta).items():
        settings.setIfMissing(key, value)
    _override(settings, conf or {})
    spark = SparkSession.builder.config(conf=settings).getOrCreate()
    if _submitted():
        spark.sparkContext.setLogLevel("ERROR")
        if kafka:
            _check_connector(spark)
    _register(spark)
    return spark


def _override(settings: SparkConf, conf: Mapping[str, str]) -> None:
    for key, value in conf.items():
        needed = settings.get(key, "") if key == "spark.jars" else ""
        settings.set(key, f"{needed},{value}" if needed else value)


def _check_connector(spark: SparkSession) -> None:
    """The JVM of spark-submit takes jars on its command line only."""
    jvm = spark.sparkContext._jvm
    if jvm is not None and not jvm.org.apache.spark.util.Utils.classIsLoadable(CONNECTOR_CLASS):
        raise PipelineError('this job needs the Kafka connector: spark-submit --jars "$(momus pipeline jars)" ...')


def _submitted() -> bool:
    """Whether spark-submit started this process: its JVM is up already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _prepare_process() -> None:
    """What the JVM and the Python workers inherit from this process."""
    os.environ["JAVA_HOME"] = str(java_home())
    # Without these, workers run whatever python3 PATH holds, and Spark asks the resolver for its own host name.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["SPARK_HOME"] = str(_spark_home())


def _spark_home() -> Path:
    """The Spark that pip installed, without its zipped Python.

    A worker that finds no zip takes pyspark from where it is installed, compiled: to start one costs 0.24 s of CPU
    and not 0.86, and Spark gives it up after ten seconds, whatever else the machine is busy with.
    """
    import pyspark

    installed = Path(pyspark.__file__).resolve().parent
    home = cache_folder("spark") / hashlib.sha256(str(installed).encode()).hexdigest()[:12]
    home.mkdir(exist_ok=True)
    for part in ("bin", "jars", "sbin"):
        with contextlib.suppress(FileExistsError):  # made before, or by another process just now
            (home / part).symlink_to(installed / part)
    return home


def _defaults(settings: SparkConf, *, kafka: bool, delta: bool) -> dict[str, str]:
    made = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # By Arrow they need pandas, which the extra does not bring: Spark would warn and do this.
        "spark.sql.execution.pythonUDF.arrow.enabled": "false",
        # The type that everybody reads; INT96, Spark's own default, costs more and has no statistics.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # A task has the rows of few logs and days, one after the other: no need to sort them to write them apart.
        "spark.sql.maxConcurrentOutputFileWriters": "16",
    }
    if settings.get("spark.master", "").startswith("local"):
        # Workers on this machine import the pipeline from where it lies; a cluster's get it by --py-files.
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(ROOT), *([inherited] if inherited else [])])
        made["spark.executorEnv.PYTHONPATH"] = path
        made["spark.ui.enabled"] = "false"
        made["spark.sql.shuffle.partitions"] = "4"
        if not _submitted():
            made["spark.driver.memory"] = DRIVER_MEMORY
    if not _submitted():
        quiet = ROOT / "pipeline" / "log4j2.properties"
        made["spark.driver.defaultJavaOptions"] = JVM_OPTIONS
        made["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile=file:{quiet}"
        wanted = [*(jars.KAFKA if kafka else ()), *(jars.DELTA if delta else ())]
        if wanted:
            made["spark.jars"] = ",".join(map(str, jars.fetch(wanted, java_home())))
    if delta:
        # Fifty tasks to read a table's log are for tables of millions of files.
        made["spark.databricks.delta.snapshotPartitions"] = "2"
        made["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        made["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    return made


def _register(spark: SparkSession) -> None:
    from pipeline.source.data_source import register

    register(spark)
