"""The session that every job runs in: what it is set to, and what its workers can do."""

from __future__ import annotations

import os
import sys

import pyspark
import pytest
from pyspark import SparkConf
from pyspark.sql import functions as F

from pipeline import session as sessions
from pipeline.errors import PipelineError
from pipeline.spark_setup.java import java_home, java_version


def test_session_is_this_process_own_spark_in_universal_time(spark):
    assert spark.sparkContext.master == "local[2]"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.getConf().get("spark.driver.memory") == "2g"
    (row,) = spark.sql("select unix_seconds(timestamp '1970-01-01 00:00:00')").collect()
    assert row[0] == 0


def test_spark_runs_on_the_java_that_was_found(spark):
    version = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
    assert int(version.split(".")[0]) == java_version(java_home())


def test_workers_are_this_python_and_find_the_pipeline(spark):
    @F.udf("string")
    def looked_up(_):
        import sys

        import pyspark

        import pipeline.schema

        return f"{sys.executable} {pipeline.schema.__file__} {pyspark.__file__}"

    (row,) = spark.range(1).select(looked_up("id")).collect()
    executable, module, spark_module = row[0].split(" ")
    assert os.path.realpath(executable) == os.path.realpath(sys.executable)
    assert module == str(sessions.ROOT / "pipeline" / "schema.py")
    assert spark_module == pyspark.__file__  # and not the same in a zip, which is compiled each time anew


def test_connector_and_source_are_on_board(spark):
    jvm = spark.sparkContext._jvm
    assert jvm.org.apache.spark.util.Utils.classIsLoadable(sessions.CONNECTOR_CLASS)
    with pytest.raises(Exception, match="path"):
        spark.read.format("momus").load().count()


def test_tables_are_kept_in_delta_as_well(spark, tmp_path):
    place = str(tmp_path / "table")
    spark.range(5).write.format("delta").save(place)
    spark.range(3).write.format("delta").mode("append").save(place)
    assert spark.read.format("delta").load(place).count() == 8
    assert spark.read.format("delta").option("versionAsOf", 0).load(place).count() == 5


def test_settings_of_the_command_line_beat_ours_and_its_jars_come_beside_them():
    settings = SparkConf(loadDefaults=False).set("spark.ui.enabled", "false").set("spark.jars", "ours.jar,other.jar")
    sessions._override(settings, {"spark.ui.enabled": "true", "spark.jars": "mine.jar"})
    assert dict(settings.getAll()) == {"spark.ui.enabled": "true", "spark.jars": "ours.jar,other.jar,mine.jar"}


def test_submitted_job_that_needs_the_connector_says_how_to_give_it(spark, monkeypatch):
    monkeypatch.setattr(sessions, "CONNECTOR_CLASS", "org.apache.spark.sql.kafka010.NotThere")
    with pytest.raises(PipelineError, match=r'spark-submit --jars "\$\(momus pipeline jars\)"'):
        sessions._check_connector(spark)
