"""Transactions and a broker that dies: at every change of the disk, at `fsync` with every mixture of what logs lost.

After each death a new broker starts on what is left. It must end what was decided, abort what was open, and lose
nothing that was answered; every partition gets its marker, a second one only where the first was not known to be
complete.
"""

from __future__ import annotations

import itertools

import pytest
from budget import slow
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


def cases(*in_the_gate: tuple[object, ...], over: tuple[list[object], ...]) -> list[object]:
    """Every combination: those named run in the gate, the others in `make test-slow`."""
    whole = list(itertools.product(*over))
    assert set(in_the_gate) <= set(whole)
    ids = {each: "-".join(getattr(part, "__name__", str(part)) for part in each) for each in whole}
    return [pytest.param(*each, id=ids[each]) if each in in_the_gate else slow(*each, name=ids[each]) for each in whole]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("flow", "v2", "short_bytes"),
    cases(
        *((flow, at % 2 == 0, 20 * (at % 2)) for at, flow in enumerate(FLOWS)),
        over=(list(FLOWS), [False, True], [0, 20]),
    ),
)
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


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("flow", "v2"),
    cases((Script.commits, False), (Script.runs_out_of_epochs, True), over=(list(FLOWS), [False, True])),
)
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


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("v2", "lose_unsynced", "step"),
    [(True, True, 35), *(slow(v2, lose, 7) for v2 in (False, True) for lose in (False, True))],
)
def test_killed_again_at_every_write_of_the_next_start(v2, lose_unsynced, step):
    deaths = 0
    for nth in itertools.count(1, step):
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
    assert deaths > 700 // step


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
