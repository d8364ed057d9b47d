"""The format `momus` in sessions that others made: a notebook's, by its SQL, and one of Spark Connect on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from pipeline.source.segment_ranges import scan
from pipeline.spark_setup.java import java_home

pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).parents[3]
LOGS = ROOT / "tests" / "pipeline" / "golden" / "logs"
CONNECT = ("pandas>=2.2,<3", "grpcio-status<1.86", "googleapis-common-protos", "zstandard")  # pyspark[connect]

# What stands in a notebook: a session first, which knows nothing of momus.
NOTEBOOK = """
import json, os, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder
builder = builder.remote("local[2]") if sys.argv[1] == "connect" else builder.master("local[2]")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()

sys.path.insert(0, {root!r})  # under an installed momus: from momus import launch; launch.use_packages()
from pipeline.source.data_source import register

register(spark)
offsets = spark.read.format("momus").option("path", {logs!r}).option("records", "offsets").load()
read = offsets.count()

spark.sql("CREATE TEMPORARY VIEW commits USING momus OPTIONS (path '{logs}', records 'offsets')")
by_sql = spark.sql("SELECT `group`, count(*) n FROM commits WHERE kind = 'OffsetCommit' GROUP BY `group`").collect()
spark.sql("CREATE TEMPORARY VIEW shapes USING momus OPTIONS (path '{logs}', topic 'shapes', columns 'log,offset')")
view = spark.sql("SELECT * FROM shapes").columns
print("SEEN " + json.dumps([type(spark).__module__, read, {{row["group"]: row["n"] for row in by_sql}}, view]))
spark.stop()
"""


def seen(folder: Path, kind: str, python: str = sys.executable, **environment: str) -> list[Any]:
    """What the notebook prints. It runs in an empty folder, with nothing of ours on its path."""
    (folder / "notebook.py").write_text(NOTEBOOK.format(root=str(ROOT), logs=str(LOGS)))
    plain = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "SPARK", "PYSPARK"))}
    given = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python, "JAVA_HOME": str(java_home()), **environment}
    words = [python, "notebook.py", kind]
    done = subprocess.run(words, cwd=folder, env=plain | given, capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stderr[:3000]
    return list(json.loads(lines[0].removeprefix("SEEN ")))


def expected() -> tuple[int, dict[str, int]]:
    """The rows of the view, and the commits of each group, by the decoder without Spark."""
    rows = [row for batch in scan(str(LOGS), "offsets", columns=["kind", "group"]) for row in batch.to_pylist()]
    groups = [row["group"] for row in rows if row["kind"] == "OffsetCommit"]
    return len(rows), {group: groups.count(group) for group in groups}


@pytest.fixture
def plain_folder(tmp_path: Path) -> Path:
    """A Python whose path does not have the checkout, as the editable install puts it there."""
    home = tmp_path / "python"
    venv.create(home, with_pip=True, symlinks=True)
    [packages] = home.glob("lib/python*/site-packages")
    [ours] = [path for path in sys.path if path.endswith("site-packages")][:1]
    (packages / "base.pth").write_text(ours + "\n")  # whose own .pth files Python does not read then
    return home


def test_register_in_a_plain_session_gives_the_format_and_views_of_sql(plain_folder, tmp_path):
    module, read, commits, view = seen(tmp_path, "classic", str(plain_folder / "bin" / "python"))
    assert module == "pyspark.sql.session"
    assert (read, commits) == expected()
    assert view == ["log", "offset"]


@pytest.mark.long
def test_register_by_spark_connect_where_the_server_has_the_packages(plain_folder, tmp_path):
    python = str(plain_folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *CONNECT], check=True, timeout=600)
    module, read, commits, view = seen(tmp_path, "connect", python, PYTHONPATH=str(ROOT))
    assert module == "pyspark.sql.connect.session"
    assert (read, commits) == expected()
    assert view == ["log", "offset"]
