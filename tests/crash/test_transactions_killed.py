"""Transactions and a broker that dies: at every change of the disk, at `fsync` with every mixture of what logs lost.

After each death a new broker starts on what is left. It must end what was decided, abort what was open, and lose
nothing that was answered; every partition gets its marker, a second one only where the first was not known to be
complete.
"""

from __future__ import annotations

import itertools

import pytest
from core_broker import SimulatedCrash
from transaction_deaths import (
    FLOWS,
    OFFSETS,
    TIMEOUT_MS,
    Script,
    check,
    died_at,
    is_deciding,
    last_state,
    logs_of,
    power_cut,
    start,
)
from txn_kit import ABORT, COMMIT, markers_of, states_in_log

from broker.coordinator.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)

# the states that the coordinator's log may be in when a flow is cut off
STATES = {
    Script.commits: {None, EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT},
    Script.aborts: {None, EMPTY, ONGOING, PREPARE_ABORT, COMPLETE_ABORT},
    Script.is_replaced: {None, EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT},
    Script.times_out: {None, EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT},
    Script.runs_out_of_epochs: {None, EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT},
}
FOUR_LOGS = {"/data/__transaction_state-0", f"/data/{OFFSETS}-0", "/data/t-0", "/data/t-1"}


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("short_bytes", [0, 20])
def test_killed_at_every_write(flow, v2, short_bytes):
    states = set()
    for nth in itertools.count(1):
        died = died_at("os", nth, flow, v2=v2, short_bytes=short_bytes)
        if died is None:
            break
        world, script = died
        files = world.files.crash()
        states.add(last_state(files))
        check(world, files, script)
    assert states == STATES[flow]


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_power_cut_at_every_write_with_every_mixture_of_losses(flow, v2):
    states, lost, together = set(), set(), 0
    for nth in itertools.count(1):
        died = died_at("fsync", nth, flow, v2=v2)
        if died is None:
            break
        world, script = died
        at_risk = logs_of(world.files)
        for count in range(len(at_risk) + 1):
            for losing in itertools.combinations(at_risk, count):
                files = power_cut(world.files, losing)
                states.add(last_state(files))
                check(world, files, script)
        lost.update(at_risk)
        together = max(together, len(at_risk))
    assert states == STATES[flow]
    assert lost >= FOUR_LOGS
    assert together >= 3  # the markers of both partitions and of the group


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("lose_unsynced", [False, True], ids=["kill", "power-cut"])
def test_killed_again_at_every_write_of_the_next_start(v2, lose_unsynced):
    deaths = 0
    for nth in itertools.count(1, 7):
        died = died_at("fsync", nth, Script.is_replaced, v2=v2)
        if died is None:
            break
        world, script = died
        left = world.files.crash(lose_unsynced=lose_unsynced)
        for again in itertools.count(1):
            files = left.crash()
            files.kill_at(again)
            try:
                world.again(files).advance(TIMEOUT_MS + 1)
            except SimulatedCrash:
                lost = files.crash(lose_unsynced=lose_unsynced)
                check(world, lost, script, sent_before=is_deciding(left))
                deaths += 1
            else:
                break
    assert deaths > 100


def test_script_that_nobody_kills_leaves_one_marker_a_transaction():
    for flush, v2, commit in itertools.product(("memory", "os", "fsync"), (False, True), (False, True)):
        world = start(flush)
        script = Script(world, v2=v2)
        (Script.commits if commit else Script.aborts)(script)
        ending = [PREPARE_COMMIT, COMPLETE_COMMIT] if commit else [PREPARE_ABORT, COMPLETE_ABORT]
        states = [state for state, _ in itertools.groupby(states_in_log(world))]
        assert states == [EMPTY, ONGOING, *ending, ONGOING, *ending]
        for topic, index in (("t", 0), ("t", 1), (OFFSETS, 0)):
            epochs = [1, 2] if v2 else [0, 0]
            kind = COMMIT if commit else ABORT
            assert markers_of(world, topic, index) == [(script.producer.id, epoch, kind) for epoch in epochs]
