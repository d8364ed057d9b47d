"""The pytest fixtures with xdist: one process for all workers, started once, and ended with the run."""

from __future__ import annotations

import pytest
from fixtures_kit import ALONE, TELL

from momus.cluster import Keeper
from momus.kit.fixture_process import find_shared
from momus.kit.shared_process import SharedProcess

pytest_plugins = ["pytester"]


def test_workers_of_xdist_share_the_controllers_process(pytester, told):
    pytester.makepyfile(
        TELL
        + """
@pytest.mark.parametrize("number", range(8))
def test_it_6(kafka_broker, number):
    tell(kafka_broker, worker=os.environ["PYTEST_XDIST_WORKER"])
"""
    )
    pytester.runpytest_subprocess(*ALONE[:4], "-n", "2", "--dist", "each").assert_outcomes(passed=16)
    found = told()
    assert {each["worker"] for each in found} == {"gw0", "gw1"}
    assert len({each["control"] for each in found}) == 1
    assert len({each["cluster_id"] for each in found}) == 16
    with pytest.raises(OSError, match="refused"):
        _ask_again(found[0]["control"])


def _ask_again(address: str) -> None:
    from momus.control import Control

    Control(address).ask("GET", "/healthz")


def test_shared_process_starts_with_the_first_worker_that_asks_and_ends_with_the_run():
    shared = SharedProcess("warning")
    assert not shared._brokers
    first, second = find_shared(shared.address), find_shared(shared.address)
    assert first is not None
    assert second is not None
    control = first.find(Keeper())
    assert control.address == second.find(Keeper()).address
    assert first.log() == ""
    assert control.ask("GET", "/healthz") == {"status": "ok"}
    shared.close()
    with pytest.raises(OSError, match="refused"):
        _ask_again(control.address)
    assert find_shared(shared.address) is None
    idle = SharedProcess("warning")
    idle.close()
    assert not idle._brokers


def test_shared_process_that_does_not_start_is_told_to_each_worker():
    shared = SharedProcess("no such level")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"was not started: .*exit code"):
            find_shared(shared.address)
    shared.close()
