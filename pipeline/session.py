"""Builds the SparkSession of every job and test, in one place.

In `momus pipeline` and in tests this process starts the JVM and chooses Java, memory and jars. Under spark-submit the
JVM already runs with the settings of its command line, and none of those is changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
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
# The parallel collector for throughput. Spark checks a column's nulls and bounds itself, so Arrow need not do it again.
JVM_OPTIONS = "-XX:+UseParallelGC -Darrow.enable_null_check_for_get=false -Darrow.enable_unsafe_memory_access=true"
CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def session(
    app: str,
    *,
    master: str | None = None,
    kafka: bool = False,
    delta: bool = False,
    conf: Mapping[str, str] | None = None,
    log_level: str = "error",
) -> SparkSession:
    """The Spark session of this process, with the data source `momus` registered.

    kafka adds the connector's jars, delta those of Delta Lake. conf overrides the settings made here, except
    `spark.jars`, which are added to the jars that are needed. log_level: of Spark's log on standard error.

    Errors:  PipelineError: there is no Java 17, a jar cannot be fetched, or spark-submit was not given the connector.
    """
    # pyspark takes 70 ms and is absent without the extra, where `momus pipeline --help` must work.
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if _submitted():
        SparkContext._ensure_initialized()  # without a JVM, SparkConf() would lack all that spark-submit was given
    else:
        _prepare_process()
    settings = SparkConf()
    settings.setAppName(app)
    if master is not None or not settings.contains("spark.master"):
        settings.setMaster(master or DEFAULT_MASTER)
    for key, value in _defaults(settings, kafka=kafka, delta=delta, log_level=log_level).items():
        settings.setIfMissing(key, value)
    _override(settings, conf or {})
    spark = SparkSession.builder.config(conf=settings).getOrCreate()
    if _submitted():
        spark.sparkContext.setLogLevel(log_level.upper())
        if kafka:
            _check_connector(spark)
    # The data source takes 100 ms more, of pyarrow and numpy, and needs the extra as well.
    from pipeline.source.data_source import register

    register(spark)
    return spark


def _override(settings: SparkConf, conf: Mapping[str, str]) -> None:
    for key, value in conf.items():
        needed = settings.get(key, "") if key == "spark.jars" else ""
        settings.set(key, f"{needed},{value}" if needed else value)


def _check_connector(spark: SparkSession) -> None:
    """Check that the JVM of spark-submit has the connector: it takes jars only on its command line.

    Errors:  PipelineError: it does not have it.
    """
    jvm = spark.sparkContext._jvm
    if jvm is not None and not jvm.org.apache.spark.util.Utils.classIsLoadable(CONNECTOR_CLASS):
        raise PipelineError('this program needs the Kafka connector: spark-submit --jars "$(momus pipeline jars)" ...')


def _submitted() -> bool:
    """Whether spark-submit started this process, so that its JVM already runs."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _prepare_process() -> None:
    """Set the environment that the JVM and the Python workers inherit."""
    os.environ["JAVA_HOME"] = str(java_home())
    # Without these, workers run the first python3 on PATH, and Spark resolves its own host name over DNS.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["SPARK_HOME"] = str(_spark_home())


def _spark_home() -> Path:
    """A SPARK_HOME of links to the installed Spark, without its zipped Python.

    Workers then import the installed, compiled pyspark: starting one takes 0.24 s of CPU instead of 0.86. Spark gives a
    worker up after ten seconds, which the zip reaches on a busy machine.
    """
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).resolve().parent
    home = cache_folder("spark") / hashlib.sha256(str(installed).encode()).hexdigest()[:12]
    home.mkdir(exist_ok=True)
    for part in ("bin", "jars", "sbin"):
        with contextlib.suppress(FileExistsError):  # made earlier, or by another process meanwhile
            (home / part).symlink_to(installed / part)
    return home


def _defaults(settings: SparkConf, *, kafka: bool, delta: bool, log_level: str) -> dict[str, str]:
    made = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # Conditions on log, topic and partition leave out segments.
        "spark.sql.python.filterPushdown.enabled": "true",
        # With Arrow they need pandas, which the extra does not install: Spark would warn and fall back to this.
        "spark.sql.execution.pythonUDF.arrow.enabled": "false",
        # The standard type. Spark's default, INT96, is larger and has no statistics.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # A task has rows of few logs and days: with several open files Spark need not sort them before writing.
        "spark.sql.maxConcurrentOutputFileWriters": "16",
    }
    # Workers on this machine import the pipeline from its folder, or from the bundle. A cluster's get it by --py-files;
    # there this is for the driver's own Python process, in which Spark plans a stream: it is not given those files.
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(ROOT), *([inherited] if inherited else [])])
    made["spark.executorEnv.PYTHONPATH"] = path
    if settings.get("spark.master", "").startswith("local"):
        made["spark.ui.enabled"] = "false"
        made["spark.sql.shuffle.partitions"] = "4"
        if not _submitted():
            made["spark.driver.memory"] = DRIVER_MEMORY
    if not _submitted():
        quiet = ROOT / "pipeline" / "log4j2.properties"
        made["spark.driver.defaultJavaOptions"] = JVM_OPTIONS
        made["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile=file:{quiet} -Dmomus.log.level={log_level}"
        wanted = [*(jars.KAFKA if kafka else ()), *(jars.DELTA if delta else ())]
        if wanted:
            made["spark.jars"] = ",".join(map(str, jars.fetch(wanted, java_home())))
    if delta:
        # The default, fifty tasks to read a table's log, is for tables of millions of files.
        made["spark.databricks.delta.snapshotPartitions"] = "2"
        made["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        made["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    return made
