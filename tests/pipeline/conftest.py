"""What the pipeline's tests share: a Spark for each worker, with the Kafka connector, and brokers to read from."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from momus import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ABSENT = [name for name in ("pyspark", "pyarrow", "numpy") if importlib.util.find_spec(name) is None]
# These modules import pyspark; `--require-spark` (tests/conftest.py) turns its absence into a failure.
collect_ignore_glob = ["*/test_*.py", "test_*.py"] if ABSENT else []

# Tests of momus' own brokers: no wait for further members, and a silent one is given up in a second.
PROMPT = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`audit_seed`: of a random history that an audit takes long to go through."""
    if "audit_seed" in metafunc.fixturenames:
        seeds = range(1, 6 if metafunc.config.getoption("--pipeline-long") else 2)
        metafunc.parametrize("audit_seed", seeds)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is marked `long` is not part of the short form."""
    if not config.getoption("--pipeline-long"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        left_out = set(long)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session: two cores, 2 GB, the Kafka connector and Delta on board."""
    from pipeline.session import JVM_OPTIONS, session

    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        # Tests are over before the JVM's second compiler pays: an audit takes 27 s of CPU instead of 45. Without it a
        # JVM reserves 48 MB for code, which the plans of a report beside other tests fill.
        "spark.driver.defaultJavaOptions": f"{JVM_OPTIONS} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    }
    made = session("tests", master="local[2]", kafka=True, delta=True, conf=conf)
    yield made
    made.stop()


@pytest.fixture(scope="module", params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The session of each engine, one after the other; code that the test runs makes columns for it."""
    if request.param == "spark":
        yield request.getfixturevalue("spark")
        return
    from pipeline.engine import local_engine
    from pipeline.local.session import LocalSession

    with local_engine():
        session = LocalSession()
        yield session
        session.stop()


@pytest.fixture
def nothing_is_small(spark: SparkSession) -> Iterator[None]:
    """No table is sent to every task but by force: so are plans where all tables are large."""
    name = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(name)
    spark.conf.set(name, -1)
    yield
    spark.conf.set(name, before)


@pytest.fixture
def momus_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker in a subprocess with an empty `data_dir`; it must have nothing to complain about in the end."""
    with Broker(config=PROMPT, data_dir=tmp_path / "data") as broker:
        yield broker
        assert broker.log == ""
