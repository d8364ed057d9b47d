"""A clock that is moved passes all deadlines in their order, with what each of them begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from clientwork import until
from test_clusters import Wire, join

from momus import Broker
from momus.cluster import Cluster
from protocol.messages.classic_group import SyncGroupRequest


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    with process.create_cluster(config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        cluster.clock.freeze()
        yield cluster


@pytest.mark.parametrize("step_s", [45, 5, 1])
def test_rebalance_that_an_expulsion_begins_ends_in_its_own_time_however_the_clock_is_moved(cluster, step_s):
    with closing(Wire(cluster.bootstrap_servers)) as short, closing(Wire(cluster.bootstrap_servers)) as long:
        first, second = join("g"), join("g")
        first.session_timeout_ms, second.session_timeout_ms = 10_000, 300_000
        first.rebalance_timeout_ms = second.rebalance_timeout_ms = 30_000
        first.member_id = short.call(first, 3).member_id
        long.send(second, 3)
        until(lambda: len(short.call(first, 3).members) == 2, "both have joined")
        joined = long.receive(second, 3)
        for wire, member_id in ((short, first.member_id), (long, joined.member_id)):
            sync = SyncGroupRequest(group_id="g", generation_id=joined.generation_id, member_id=member_id)
            assert wire.call(sync, 2).error_code == 0
        cluster.wait_for_group("g", "stable", members=2, timeout=0)
        # Both fall silent: one is expelled after 10 s. The other has 30 s then to join again.
        for at_s in range(step_s, 46, step_s):
            cluster.clock.advance(seconds=step_s)
            if 10 <= at_s < 40:
                cluster.wait_for_group("g", "preparing-rebalance", members=1, timeout=0)
        cluster.wait_for_group("g", "empty", members=0, timeout=0)
