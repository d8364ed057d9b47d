"""The pytest fixtures: `kafka_broker` gives every test a cluster of its own, in one process for the whole run.

Nothing is autouse: a project that has momus installed and asks for no fixture pays one light import. A
project changes what it gets by overriding the two session fixtures in its conftest.py:

    @pytest.fixture(scope="session")
    def kafka_broker_config():
        return {"num.partitions": 4}

and one test by the marker:

    @pytest.mark.momus(brokers=3, topics={"orders": 6}, seed=7)

Under xdist the controller starts the process when the first worker asks for it (momus/kit/shared_process.py). Each
option of the command line has a variable (MOMUS_ADDRESS) and an ini key (momus_address); the earlier of these three
wins.
"""

from __future__ import annotations

import sys

import pytest

from momus.kit import explored
from momus.kit.hidden import hides
from momus.kit.plugin_options import DEFAULT_BUDGET, EXPLORE_MARKER, MARKER, OPTIONS, option
from momus.kit.verified import FAILED, REPORT, SKIPPED, arrange, marked_words, of_marker, show_last, verified
from momus.kit.words import ARRANGED, wrong_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from typing import Any

    from momus import Broker
    from momus.cluster import Cluster
    from momus.kit.fixture_process import FixtureProcess
    from momus.kit.plugin_options import MakeKafkaBroker
    from momus.kit.shared_process import SharedProcess
    from momus.kit.upstream.run import UpstreamRun

OWN = {"kafka_broker", "kafka_broker_fork", "kafka_process_broker"}  # fixtures of one test
WIDER: dict[str, Any] = {  # fixtures of several -> whose markers they obey
    "kafka_broker_class": pytest.Class,
    "kafka_broker_module": pytest.Module,
    "kafka_broker_session": pytest.Session,
}
SHARED: pytest.StashKey[SharedProcess] = pytest.StashKey()
PROCESS: pytest.StashKey[FixtureProcess] = pytest.StashKey()
WRONG: pytest.StashKey[list[str]] = pytest.StashKey()  # what closed clusters of make_kafka_broker left unmet


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register an option of the command line and an ini key for each of OPTIONS."""
    group = parser.getgroup("momus", "Kafka clusters for tests")
    for name, (default, about) in OPTIONS.items():
        words: dict[str, Any] = {"nargs": "?", "const": DEFAULT_BUDGET} if name == "explore" else {}
        group.addoption(f"--momus-{name.replace('_', '-')}", dest=f"momus_{name}", help=about, **words)
        parser.addini(f"momus_{name}", about, default=default)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    """`--momus-explore` may stand alone before a path, which is not its value."""
    for index, word in enumerate(args):
        if word == "--momus-explore":
            follows = args[index + 1] if index + 1 < len(args) else ""
            has_value = follows == "all" or follows.removesuffix("s").isdigit()
            args[index : index + 1 + has_value] = [f"{word}={follows if has_value else DEFAULT_BUDGET}"]


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and what an option asks for."""
    config.addinivalue_line("markers", MARKER)
    config.addinivalue_line("markers", EXPLORE_MARKER)
    if option(config, "explore") or option(config, "schedule"):
        _explore(config)
    if option(config, "upstream"):
        from momus.kit.upstream.run import UpstreamRun  # 1 ms

        config.pluginmanager.register(UpstreamRun(config), "momus-upstream")


def _explore(config: pytest.Config) -> None:
    from momus.explore.suite import ExploreRun, ScheduleRun  # 20 ms

    text = option(config, "schedule")
    try:
        plugin = ScheduleRun(text) if text else ExploreRun(config)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(plugin, "momus-explore")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist, in the controller: tell a worker where to ask for the process."""
    if option(node.config, "address"):
        return
    if SHARED not in node.config.stash:
        from momus.kit.shared_process import SharedProcess  # 1 ms

        node.config.stash[SHARED] = SharedProcess(option(node.config, "log_level"), _upstream(node.config))
    node.workerinput["momus_shared"] = node.config.stash[SHARED].address


def _upstream(config: pytest.Config) -> UpstreamRun | None:
    """The run on a real cluster; None: this is none."""
    run: UpstreamRun | None = config.pluginmanager.get_plugin("momus-upstream")
    return run


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what all workers have created in a real cluster."""
    shared = session.config.stash.get(SHARED, None)
    if shared is not None:
        shared.finish()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process that the workers share."""
    shared = config.stash.get(SHARED, None)
    if shared is not None:
        shared.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that no cluster of the test obeys fails it: it would pass without its faults, or with one broker."""
    names = set(getattr(item, "fixturenames", ()))
    for marker in item.iter_markers("momus"):
        if marker.args:
            pytest.fail(f"{MARKER.partition(':')[0]} takes words, not {marker.args[0]!r}", pytrace=False)
        if wrong := wrong_word("the marker momus takes no word", marker.kwargs, _maker(names), ARRANGED):
            pytest.fail(wrong, pytrace=False)
    words = None if names & OWN else marked_words(item)
    for name, kind in WIDER.items() if words else ():
        node: Any = item.getparent(kind) or item.getparent(pytest.Module)
        if name in names and node is not None and marked_words(node) != words:
            pytest.fail(f"{name} is shared with tests without this marker: use kafka_broker", pytrace=False)


def _maker(names: set[str]) -> type:
    """Whose words a marker has: the class that makes the cluster of these fixtures."""
    if "kafka_process_broker" in names:
        from momus import Broker

        return Broker
    from momus.cluster import Cluster

    return Cluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep whether a test has failed, and its report: the fixtures show and keep more then."""
    report = yield
    if report.failed:
        item.stash[REPORT] = report.longreprtext
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """What a cluster of make_kafka_broker has left unverified, and the end of the process, are errors of the test."""
    wrong = item.config.stash.setdefault(WRONG, [])
    try:
        yield
    except BaseException as error:
        _add_death(item.config, wrong)
        if wrong:
            error.add_note("\n".join(wrong))
            wrong.clear()
        raise
    _add_death(item.config, wrong)
    if wrong:
        text = "\n".join(wrong)
        wrong.clear()
        pytest.fail(text, pytrace=False)


def _add_death(config: pytest.Config, wrong: list[str]) -> None:
    process = config.stash.get(PROCESS, None)
    if process is not None and (sentence := process.news()) is not None:
        wrong.insert(0, sentence)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """A test whose cluster is shared with others fails with a sentence when its process has ended before."""
    process = item.config.stash.get(PROCESS, None)
    for name in WIDER:
        cluster = getattr(item, "funcargs", {}).get(name)
        if (
            process is not None
            and cluster is not None
            and (sentence := process.death_of(cluster.control.address)) is not None
        ):
            pytest.fail(sentence, pytrace=False)


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
def _momus_process(request: pytest.FixtureRequest) -> Iterator[FixtureProcess]:
    """The process that the clusters are made in: one that runs, the controller's, or our own."""
    from momus.kit.fixture_process import FixtureProcess, OwnProcess, find_shared  # 25 ms

    config, found = request.config, None
    place = getattr(config, "workerinput", {}).get("momus_shared")
    if address := option(config, "address"):
        from momus.control import Control  # there already

        found = FixtureProcess(Control(address, option(config, "control_token") or None))
    elif place is not None and explored.watch is None:  # a test that is explored may hang, and its process with it
        found = find_shared(place)
    process = config.stash[PROCESS] = found or OwnProcess(option(config, "log_level"), _upstream(config))
    yield process
    process.close()


@pytest.fixture(scope="session")
def make_kafka_broker(
    request: pytest.FixtureRequest,
    _momus_process: FixtureProcess,
    kafka_broker_config: Mapping[str, object],
    kafka_listen_address: tuple[str, int],
) -> Iterator[MakeKafkaBroker]:
    """Makes clusters: `make_kafka_broker(brokers=3, config={...}, seed=7)`. All are gone at the end of the session.

    Each is verified before it is closed.
    """
    from momus.cluster import Cluster, Keeper
    from momus.control import BrokerDiedError

    seed, (host, port) = option(request.config, "seed"), kafka_listen_address
    usual: dict[str, Any] = {"flush": option(request.config, "flush"), "listen": f"{host}:{port}"}
    usual["log"] = _momus_process.log
    usual["journal_mb"] = int(option(request.config, "journal_mb"))
    usual["as_version"] = option(request.config, "as_version") or None
    if seed:
        usual["seed"] = int(seed)
    if _upstream(request.config) is not None:  # its settings are its own
        kafka_broker_config, usual["as_version"] = {}, None
    keeper = Keeper()
    keeper.wrong = request.config.stash.setdefault(WRONG, [])

    def make(*, config: Mapping[str, object] | None = None, **words: Any) -> Cluster:
        __tracebackhide__ = hides
        if wrong := wrong_word("make_kafka_broker takes no word", words, Cluster):
            raise ValueError(wrong)
        given: dict[str, Any] = {**usual, **words, "config": {**kafka_broker_config, **(config or {})}}
        try:
            made = Cluster(_momus_process.find(keeper), **given)
        except BrokerDiedError:  # since it was last asked for something: of no test's concern
            made = Cluster(_momus_process.find(keeper), **given)
            sys.stderr.write(f"{_momus_process.news()}\n")
        keeper.keep(made)
        return made

    yield make
    keeper.close()


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, make_kafka_broker: MakeKafkaBroker) -> Iterator[Cluster]:
    """A fresh cluster for this test; `kafka_broker.bootstrap_servers` is its address."""
    words = marked_words(request.node)
    yield from verified(make_kafka_broker(**of_marker(words)), request.node, words)


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker: MakeKafkaBroker) -> Cluster:
    """What each `kafka_broker_fork` goes on from; override it to make topics, records and groups once."""
    return make_kafka_broker()


@pytest.fixture
def kafka_broker_fork(request: pytest.FixtureRequest, kafka_broker_template: Cluster) -> Iterator[Cluster]:
    """For this test, another cluster that goes on from `kafka_broker_template`, which no test changes."""
    words = marked_words(request.node)
    if words.keys() - ARRANGED:
        pytest.fail(f"a fork is as its template: its marker takes {', '.join(ARRANGED)} alone", pytrace=False)
    yield from verified(kafka_broker_template.fork(), request.node, words)


@pytest.fixture(scope="class")
def kafka_broker_class(request: pytest.FixtureRequest, make_kafka_broker: MakeKafkaBroker) -> Iterator[Cluster]:
    """A fresh cluster for the tests of a class."""
    words = marked_words(request.node)
    yield from verified(make_kafka_broker(**of_marker(words)), None, words)


@pytest.fixture(scope="module")
def kafka_broker_module(request: pytest.FixtureRequest, make_kafka_broker: MakeKafkaBroker) -> Iterator[Cluster]:
    """A fresh cluster for the tests of a module."""
    words = marked_words(request.node)
    yield from verified(make_kafka_broker(**of_marker(words)), None, words)


@pytest.fixture(scope="session")
def kafka_broker_session(make_kafka_broker: MakeKafkaBroker) -> Iterator[Cluster]:
    """A cluster for all tests; under xdist, for all tests of a worker."""
    yield from verified(make_kafka_broker(), None, {})


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
    words: dict[str, Any] = {"log_level": option(config, "log_level"), "listen": f"{host}:{port}"}
    words |= {"as_version": option(config, "as_version") or None, "journal_mb": int(option(config, "journal_mb"))}
    flush, seed = option(config, "flush"), option(config, "seed")
    words |= {"flush": "os" if flush == "memory" else flush, "seed": int(seed) if seed else None}
    marked = marked_words(request.node)
    words |= of_marker(marked)
    words["config"] = {**kafka_broker_config, **marked.get("config", {})}
    run = _upstream(config)
    if run is not None:
        words = run.process_words({**words, "config": marked.get("config"), "as_version": marked.get("as_version")})
    with Broker(**words) if run is None else run.broker(**words) as broker:
        broker.keeper = keeper = Keeper()
        arrange(broker, marked)
        yield broker
        if broker.running:
            show_last(request.node, broker)
        sys.stderr.write(f"{broker.death() or broker.log}\n")
        wrong = broker.unverified()
        keeper.close()
        wrong += keeper.wrong
        if run is not None:
            run.finished(broker)
    if wrong and not request.node.stash.get(SKIPPED, False):
        pytest.fail("\n".join(wrong), pytrace=False)
