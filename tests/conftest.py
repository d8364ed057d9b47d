"""What every test can ask for: a broker of its own, a factory of brokers, Apache Kafka's jars; and the
options of the long forms."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from budget import load_profile
from garbage import Garbage
from heavy import LIGHT, OWN_PROCESSES, watch
from kafka_jars import fetch_jars
from not_run import FOLDERS, NotRun

from momus import Broker
from momus.handle import ClusterHandle

load_profile()
# Tests of momus set faults that are not to act. Of those that users have, test_left_block.py turns it on.
ClusterHandle.verifies = False

REPOSITORY = Path(__file__).parent.parent
LEFT_OUT = {REPOSITORY / folder for folder in FOLDERS}
TO_READ = {REPOSITORY / name for name in LIGHT}


def pytest_addoption(parser: pytest.Parser) -> None:
    options = parser.getgroup("momus' own tests")
    options.addoption("--codec", default="generated", help="of every broker in a subprocess: generated or construct")
    options.addoption("--crash-rounds", type=int, default=1, help="kill -9 so many times in each crash test")
    options.addoption("--fuzz-seconds", type=float, default=0.5, help="how long each fuzz test goes on")
    options.addoption("--light", action="store_true", help="leave whole folders out that make test does not run")
    options.addoption("--pipeline-long", action="store_true", help="the pipeline: ten kills, more random histories")
    options.addoption("--require-spark", action="store_true", help="fail, not skip, where pyspark is absent")
    options.addoption(
        "--require-page", action="store_true", help="fail, not skip, where playwright or chromium is absent"
    )
    options.addoption("--require-java", action="store_true", help="fail, not skip, where java or mvn is absent")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NotRun(config))
    config.pluginmanager.register(Garbage())
    watch(config)
    if config.getoption("--codec") != "generated":
        os.environ["KAFKA_CODEC"] = config.getoption("--codec")  # for `momus serve`
        Broker.__init__.__kwdefaults__["codec"] = config.getoption("--codec")
    absent = [name for name in ("pyspark", "pyarrow", "numpy") if importlib.util.find_spec(name) is None]
    if absent and config.getoption("--require-spark"):
        raise pytest.UsageError(f"{', '.join(absent)} not installed: pip install '.[spark]'")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by folder (e2e, crash, pipeline, image), and by the fixtures that start processes or bring jars."""
    for item in items:
        place = item.nodeid.partition("::")[0]
        for folder in ("e2e", "crash"):
            if f"/{folder}/" in place:
                item.add_marker(folder)
        if place.startswith("tests/e2e/page/") and "page" in getattr(item, "fixturenames", ()):
            item.add_marker("page")
        if place.startswith("tests/e2e/image/"):
            item.add_marker("image")
        if place.startswith("tests/e2e/kafka_python/"):
            # it leaves the sockets of refused connections to the garbage collector; that is not our warning
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
        if place.startswith("tests/pipeline/"):
            item.add_marker("spark")
        if {"kafka_libs", "old_kafka_libs"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("java")
        starts = "/e2e/" in place or OWN_PROCESSES & set(getattr(item, "fixturenames", ()))
        if starts and place not in LIGHT:
            item.add_marker("heavy")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --light, do not even read the tests of what is heavy or has another target as a whole: 5 s of a worker."""
    if not config.getoption("--light") or collection_path.is_dir() or collection_path in TO_READ:
        return None
    return True if any(folder in collection_path.parents for folder in LEFT_OUT) else None


@pytest.fixture
def crash_rounds(request: pytest.FixtureRequest) -> int:
    """How often a crash test kills its broker."""
    return int(request.config.getoption("--crash-rounds"))


@pytest.fixture
def broker_factory() -> Iterator[Callable[..., Broker]]:
    """Makes started brokers from this checkout, with the arguments of momus.Broker; all end with the test."""
    with ExitStack() as brokers:

        def make(**arguments: object) -> Broker:
            made = Broker(**arguments)
            brokers.enter_context(made)
            # pytest shows captured output of failed tests only, which is when the broker's log matters.
            brokers.callback(lambda: sys.stderr.write(made.log))
            return made

        yield make


@pytest.fixture
def broker(broker_factory: Callable[..., Broker]) -> Broker:
    """A started broker with nothing in it."""
    return broker_factory()


@pytest.fixture(scope="session")
def kafka_libs(request: pytest.FixtureRequest) -> str:
    """Class path of Apache Kafka's clients, console tools and streams, newest version."""
    return _jars(request, "current")


@pytest.fixture(scope="session")
def old_kafka_libs(request: pytest.FixtureRequest) -> str:
    """Class path of the 3.9 Java client."""
    return _jars(request, "old-client")


def _jars(request: pytest.FixtureRequest, profile: str) -> str:
    """Fetch a profile's jars once; absent tools are a reason to skip, anything else is a failure."""
    absent = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
    if absent:
        reason = f"{' and '.join(absent)} not installed"
        if request.config.getoption("--require-java"):
            pytest.fail(reason)
        pytest.skip(reason)
    return f"{fetch_jars(profile)}/*"
