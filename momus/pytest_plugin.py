"""The pytest fixtures: `kafka_broker` gives every test a cluster of its own, in one process for the whole run.

Nothing is autouse: a project that has momus installed and asks for no fixture pays one light import. A
project changes what it gets by overriding the two session fixtures in its conftest.py:

    @pytest.fixture(scope="session")
    def kafka_broker_config():
        return {"num.partitions": 4}

and one test by the marker:

    @pytest.mark.momus(brokers=3, topics={"orders": 6}, seed=7)

Under xdist the controller starts the process when the first worker asks for it (momus/shared_process.py). Each option
of the command line has a variable (MOMUS_ADDRESS) and an ini key (momus_address); the earlier of these three wins.
"""

from __future__ import annotations

import os
import sys

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from typing import Any

    from momus import Broker
    from momus.cluster import Cluster
    from momus.control import Control
    from momus.handle import ClusterHandle
    from momus.shared_process import SharedProcess

# name -> (default, help)
OPTIONS = {
    "address": ("", "HOST:PORT of the control endpoint of a process that runs; without it, one is started."),
    "control_token": ("", "What that endpoint asks for."),
    "flush": ("memory", "Of the fixtures' clusters: memory, os or fsync."),
    "as_version": ("", "An Apache Kafka release, 2.1 to 4.3: what the fixtures' clusters offer clients is not newer."),
    "seed": ("", "A number from which the fixtures' clusters draw their ids, so that they repeat."),
    "journal_mb": ("4", "How much of its last requests a fixture's cluster keeps, for `journal` and reports; 0: none."),
    "keep_failed": ("", "A folder: of each failed test its whole run is kept there as a file for `momus replay`."),
    "log_level": ("warning", "Of the process that is started: debug, info, warning or error."),
}
MARKER = (
    "momus(topics, faults, **words): for the cluster of this test, or of its class or module. topics: name -> number of"
    " partitions; faults: a list as docs/faults.md has them; words: config, brokers, flush, as_version, seed,"
    " at, security, users."
)
ARRANGED = ("topics", "faults")  # words of the marker that act on a cluster that is there
OWN = {"kafka_broker", "kafka_broker_fork", "kafka_process_broker"}  # fixtures of one test
WIDER: dict[str, Any] = {  # fixtures of several -> whose markers they obey
    "kafka_broker_class": pytest.Class,
    "kafka_broker_module": pytest.Module,
    "kafka_broker_session": pytest.Session,
}
SHARED: pytest.StashKey[SharedProcess] = pytest.StashKey()
FAILED: pytest.StashKey[bool] = pytest.StashKey()
REPORT: pytest.StashKey[str] = pytest.StashKey()
WRONG: pytest.StashKey[list[str]] = pytest.StashKey()  # what closed clusters of make_kafka_broker left unmet


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("momus", "Kafka clusters for tests")
    for name, (default, about) in OPTIONS.items():
        group.addoption(f"--momus-{name.replace('_', '-')}", dest=f"momus_{name}", help=about)
        parser.addini(f"momus_{name}", about, default=default)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist, in the controller: tell a worker where to ask for the process."""
    if _option(node.config, "address"):
        return
    if SHARED not in node.config.stash:
        from momus.shared_process import SharedProcess  # 1 ms

        node.config.stash[SHARED] = SharedProcess(_option(node.config, "log_level"))
    node.workerinput["momus_shared"] = node.config.stash[SHARED].address


def pytest_unconfigure(config: pytest.Config) -> None:
    shared = config.stash.get(SHARED, None)
    if shared is not None:
        shared.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that no cluster of the test obeys fails it: it would pass without its faults, or with one broker."""
    for marker in item.iter_markers("momus"):
        if marker.args:
            pytest.fail(f"{MARKER.partition(':')[0]} takes words, not {marker.args[0]!r}", pytrace=False)
    names = set(getattr(item, "fixturenames", ()))
    words = None if names & OWN else _marked(item)
    for name, kind in WIDER.items() if words else ():
        node: Any = item.getparent(kind) or item.getparent(pytest.Module)
        if name in names and node is not None and _marked(node) != words:
            pytest.fail(f"{name} is shared with tests without this marker: use kafka_broker", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[REPORT] = report.longreprtext
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """A cluster of make_kafka_broker that was closed with something unverified is an error of the test."""
    wrong = item.config.stash.setdefault(WRONG, [])
    try:
        yield
    except BaseException as error:
        if wrong:
            error.add_note("\n".join(wrong))
            wrong.clear()
        raise
    if wrong:
        text = "\n".join(wrong)
        wrong.clear()
        pytest.fail(text, pytrace=False)


def _option(config: pytest.Config, name: str) -> str:
    given: str | None = config.getoption(f"momus_{name}")
    return given or os.environ.get(f"MOMUS_{name.upper()}") or str(config.getini(f"momus_{name}"))


# ---- what a project overrides ----


@pytest.fixture(scope="session")
def kafka_broker_config() -> Mapping[str, object]:
    """Kafka broker settings for the clusters of the fixtures; override it."""
    return {}


@pytest.fixture(scope="session")
def kafka_listen_address() -> tuple[str, int]:
    """Host and port that `kafka_broker` binds; port 0 lets the system choose, which is what parallel runs
    need."""
    return ("127.0.0.1", 0)


# ---- clusters ----


@pytest.fixture(scope="session")
def _momus_process(request: pytest.FixtureRequest) -> Iterator[tuple[Control, Callable[[], str] | None]]:
    """The control endpoint of the process, and what it has logged: one that runs, the controller's, or our own."""
    from momus.control import Control  # 25 ms

    config = request.config
    if address := _option(config, "address"):
        yield Control(address, _option(config, "control_token") or None), None
        return
    place = getattr(config, "workerinput", {}).get("momus_shared")
    if place is not None:
        from momus.shared_process import find_shared  # 1 ms

        found = find_shared(place)
        if found is not None:
            yield found
            return
    from momus import Broker

    with Broker(flush="memory", log_level=_option(config, "log_level")) as broker:
        yield broker.control, lambda: broker.log


@pytest.fixture(scope="session")
def make_kafka_broker(
    request: pytest.FixtureRequest,
    _momus_process: tuple[Control, Callable[[], str] | None],
    kafka_broker_config: Mapping[str, object],
    kafka_listen_address: tuple[str, int],
) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters: `make_kafka_broker(brokers=3, config={...}, seed=7)`. All are gone at the end of the session.

    Each is verified before it is closed.
    """
    from momus.cluster import Cluster, Keeper

    control, log = _momus_process
    seed, (host, port) = _option(request.config, "seed"), kafka_listen_address
    usual: dict[str, Any] = {"flush": _option(request.config, "flush"), "listen": f"{host}:{port}", "log": log}
    usual["journal_mb"] = int(_option(request.config, "journal_mb"))
    usual["as_version"] = _option(request.config, "as_version") or None
    if seed:
        usual["seed"] = int(seed)
    keeper = Keeper()
    keeper.wrong = request.config.stash.setdefault(WRONG, [])

    def make(*, config: Mapping[str, object] | None = None, **words: Any) -> Cluster:
        made = Cluster(control, **{**usual, **words}, config={**kafka_broker_config, **(config or {})})
        keeper.keep(made)
        return made

    yield make
    keeper.close()


def _verified(cluster: Cluster, node: pytest.Item | None, words: Mapping[str, Any]) -> Iterator[Cluster]:
    """A cluster for a test, verified and removed after it, and so are the forks that the test made of it.

    node    the test, if it is for one alone.
    words   what its markers ask for.
    """
    from momus.cluster import Keeper

    keeper = Keeper()
    if cluster.keeper is not None:
        cluster.keeper.give(cluster)
    cluster.keeper = keeper
    kept = _option(node.config, "keep_failed") if node is not None else ""
    with cluster:
        if kept:
            cluster.record()
        _arrange(cluster, words)
        yield cluster
        if node is not None and cluster.is_open:
            _show_last(node, cluster)
        # pytest shows captured output of failed tests only, which is when the log matters.
        sys.stderr.write(cluster.log)
        keeper.close()
        cluster.keeper = None
        wrong = [*(cluster.unverified() if cluster.is_open else ()), *keeper.wrong]
        if kept and node is not None and cluster.is_open and (bool(wrong) or node.stash.get(FAILED, False)):
            from momus.kept_run import keep_run  # 5 ms

            path = keep_run(kept, node.nodeid, cluster, "\n".join([node.stash.get(REPORT, ""), *wrong]))
            sys.stderr.write(f"this run is kept; play it again by: momus replay {path}\n")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def _arrange(cluster: ClusterHandle, words: Mapping[str, Any]) -> None:
    for name, partitions in words.get("topics", {}).items():
        cluster.create_topic(name, partitions)
    cluster.faults.load(words.get("faults", ()))


def _of_marker(words: Mapping[str, Any]) -> dict[str, Any]:
    """The words for whoever makes the cluster."""
    return {key: value for key, value in words.items() if key not in ARRANGED}


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, make_kafka_broker: Callable[..., Cluster]) -> Iterator[Cluster]:
    """A fresh cluster for this test; `kafka_broker.bootstrap_servers` is its address."""
    words = _marked(request.node)
    yield from _verified(make_kafka_broker(**_of_marker(words)), request.node, words)


def _show_last(node: pytest.Item, cluster: ClusterHandle) -> None:
    """In the report of a failed test: what its cluster was asked last."""
    if node.stash.get(FAILED, False):
        sys.stderr.write(f"the last requests:\n{cluster.journal.last() or 'none'}\n")


def _marked(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """What the markers of a test ask for; the closest to the test wins."""
    words: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("momus"))):
        words.update(marker.kwargs)
    return words


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker: Callable[..., Cluster]) -> Cluster:
    """What each `kafka_broker_fork` goes on from; override it to make topics, records and groups once."""
    return make_kafka_broker()


@pytest.fixture
def kafka_broker_fork(request: pytest.FixtureRequest, kafka_broker_template: Cluster) -> Iterator[Cluster]:
    """For this test, another cluster that goes on from `kafka_broker_template`, which no test changes."""
    words = _marked(request.node)
    if words.keys() - ARRANGED:
        pytest.fail(f"a fork is as its template: its marker takes {' and '.join(ARRANGED)} alone", pytrace=False)
    yield from _verified(kafka_broker_template.fork(), request.node, words)


@pytest.fixture(scope="class")
def kafka_broker_class(request: pytest.FixtureRequest, make_kafka_broker: Callable[..., Cluster]) -> Iterator[Cluster]:
    """A fresh cluster for the tests of a class."""
    words = _marked(request.node)
    yield from _verified(make_kafka_broker(**_of_marker(words)), None, words)


@pytest.fixture(scope="module")
def kafka_broker_module(request: pytest.FixtureRequest, make_kafka_broker: Callable[..., Cluster]) -> Iterator[Cluster]:
    """A fresh cluster for the tests of a module."""
    words = _marked(request.node)
    yield from _verified(make_kafka_broker(**_of_marker(words)), None, words)


@pytest.fixture(scope="session")
def kafka_broker_session(make_kafka_broker: Callable[..., Cluster]) -> Iterator[Cluster]:
    """A cluster for all tests; under xdist, for all tests of a worker."""
    yield from _verified(make_kafka_broker(), None, {})


@pytest.fixture
def kafka_process_broker(
    request: pytest.FixtureRequest,
    kafka_broker_config: Mapping[str, object],
    kafka_listen_address: tuple[str, int],
) -> Iterator[Broker]:
    """A process for this test alone, for what kills and restarts it; its data survives `kill`."""
    from momus import Broker
    from momus.cluster import Keeper

    (host, port), config = kafka_listen_address, request.config
    words: dict[str, Any] = {"log_level": _option(config, "log_level"), "listen": f"{host}:{port}"}
    words |= {"as_version": _option(config, "as_version") or None, "journal_mb": int(_option(config, "journal_mb"))}
    flush, seed = _option(config, "flush"), _option(config, "seed")
    words |= {"flush": "os" if flush == "memory" else flush, "seed": int(seed) if seed else None}
    marked = _marked(request.node)
    words |= _of_marker(marked)
    words["config"] = {**kafka_broker_config, **marked.get("config", {})}
    with Broker(**words) as broker:
        broker.keeper = keeper = Keeper()
        _arrange(broker, marked)
        yield broker
        if broker.running:
            _show_last(request.node, broker)
        sys.stderr.write(broker.log)
        wrong = broker.unverified()
        keeper.close()
        wrong += keeper.wrong
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
