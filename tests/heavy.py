"""Keeps `make test` light: a test that starts a process, or takes more than a second of the processor, is `heavy`.

`make test-heavy`, the second part of the gate, runs those. A test without the mark that starts a process fails; one
that takes more than a second is named at the end. What a fixture of a module or of the session starts is shared by
tests and does not count; tests of another target and files of LIGHT may start what they like.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from typing import Any

import pytest
from not_run import TARGETS

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
# Files that make test runs though they start processes: no others reach so many lines for so little, nine of a hundred
# in a tenth of what all of tests/e2e takes. A test of them that starts many, or takes long, has the mark all the same.
LIGHT = {
    f"tests/{name}.py"
    for name in (
        *("property/test_loads_read_back", "tidy/test_readme", "e2e/test_broker_paused", "e2e/test_control_requests"),
        *("e2e/test_diff", "e2e/test_doctor", "e2e/test_group_describe", "e2e/test_group_seek"),
        *("e2e/test_languages_doc", "e2e/test_openapi", "e2e/test_page_server", "e2e/test_share_streams_verbs"),
        *("e2e/test_verify_route", "e2e/handle/test_handle_groups", "e2e/handle/test_handle_records"),
        *("e2e/proxy/test_proxy", "e2e/proxy/test_proxy_page", "e2e/registry/test_registry_faults"),
        *("e2e/registry/test_registry_security", "e2e/packaging/test_fixtures_unmet", "e2e/samples/test_samples"),
        *("e2e/transactions/test_txn_commands", "e2e/proxy/test_proxy_metrics", "e2e/test_offset_commands"),
        *("e2e/light/test_control_words", "e2e/light/test_loads", "e2e/light/test_log_reads"),
        *("e2e/light/test_page_views", "e2e/test_record_commands", "e2e/security/test_secured_commands"),
    )
}
OWN_PROCESSES = {"broker_factory"}  # fixtures that start one for each test
TOLD_S = 1.5  # of the processor's time: a test of a second takes no more, even where others use the same processor
PARSERS = "tests/tidy/"  # not told: the first of them on a worker parses the sources for all others
STARTED = "starts a process, in {}: mark it `heavy`, or start it once for the module"


class Heavy:
    """Hears of every process that is started, and knows the test and the fixture it is started for."""

    def __init__(self) -> None:
        self.watched = False  # whether a test runs that may start none
        self.fixture = ""  # of the test, that is being set up
        self.started: list[str] = []
        self.long: list[tuple[float, str]] = []

    def heard(self, event: str, _: object) -> None:
        """An audit event of Python."""
        if event in STARTS and self.watched:
            self.started.append(self.fixture or "the test")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.started.clear()
        in_light = item.nodeid.partition("::")[0] in LIGHT
        self.watched = not in_light and not any(item.get_closest_marker(each) for each in TARGETS)
        self._since = time.process_time()
        try:
            return (yield)
        finally:
            self.watched = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        before = self.watched, self.fixture
        self.watched, self.fixture = self.watched and fixturedef.scope == "function", fixturedef.argname
        try:
            return (yield)
        finally:
            self.watched, self.fixture = before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        yield
        took_s = time.process_time() - self._since
        if self.watched and took_s > TOLD_S and not item.nodeid.startswith(PARSERS):
            item.user_properties.append(("processor_s", took_s))
        if self.started:
            pytest.fail(STARTED.format(", ".join(sorted(set(self.started)))), pytrace=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the controller, where workers' reports arrive."""
        took_s = dict(report.user_properties).get("processor_s")
        if report.when == "teardown" and isinstance(took_s, float):
            self.long.append((took_s, report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for took_s, test in sorted(self.long, reverse=True):
            terminalreporter.write_line(f"HEAVY: {took_s:.1f} s of the processor, and is not marked so: {test}")


def watch(config: pytest.Config) -> None:
    """Hear of processes from now on, as long as Python runs."""
    heavy = Heavy()
    sys.addaudithook(heavy.heard)
    config.pluginmanager.register(heavy)
