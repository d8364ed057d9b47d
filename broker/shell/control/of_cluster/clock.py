"""Routes of a cluster's clock: show it, let time pass, stop it.

Moving the clock is answered when all due work is done: members have timed out, offsets have expired, transactions are
aborted, and connections that are idle by now are closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.control.routes import Call, Optional_, RefusedError, Route
from broker.shell.control.waiting import check_life

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

SETTLE_LIMIT_S: Final = 25.0  # for the work that a moved clock made due: clients wait 30 s for the response
PASS_LIMIT_S: Final = 10.0  # for deadlines on the way of a moved clock, which are passed one by one
FOLLOW_UPS: Final = 4  # a timer, its job, the markers of a transaction, what they complete
LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999
WORDS: Final = '"advance_ms", "set", "freeze", "resume" and "pass_waits_ms"'


class ClockRow(TypedDict):
    """The time of a clock in Unix milliseconds, and whether it stands."""

    now_ms: int
    stands: bool


class MovedClock(ClockRow):
    """A clock that was moved; `settled`: what became due is done."""

    settled: bool


async def show_clock(cluster: ClusterServer, call: Call) -> ClockRow:
    """The time of the cluster's clock."""
    clock = cluster.clock
    return {"now_ms": clock.now_ms(), "stands": clock.stands_at_ms is not None}


async def move_clock(cluster: ClusterServer, call: Call) -> MovedClock:
    """Move the clock, and wait for what became due.

    Errors:  RefusedError: nothing has moved; or the cluster was reset meanwhile, and its new clock has not moved.
    """
    clock = cluster.clock
    give_up_s = asyncio.get_running_loop().time() + SETTLE_LIMIT_S
    if len(call.body) != 1:
        raise RefusedError(400, f"give one of {WORDS}")
    ((word, value),) = call.body.items()
    if word == "pass_waits_ms":
        if not 0 <= value <= LAST_MS:
            raise RefusedError(400, f'"{word}" takes 0 to {LAST_MS}')
        clock.pass_waits(value)
    elif type(value) is bool:
        if value is not True:
            raise RefusedError(400, f'"{word}" takes true')
        if word == "resume":
            clock.resume()
        else:
            clock.stand()
    else:
        await _wait_for_load(cluster, give_up_s)
        now_ms = clock.now_ms()  # once: it runs
        until_ms = value if word == "set" else now_ms + value
        if not now_ms <= until_ms <= LAST_MS:
            raise RefusedError(400, f"the clock is at {now_ms} and moves only forward, to {LAST_MS} at most")
        await _pass_deadlines(cluster, clock.steady_ms() + until_ms - clock.now_ms(), give_up_s)
        if word == "set":
            clock.stand(until_ms)
        else:
            clock.advance(max(0, until_ms - clock.now_ms()))
    cluster.clock_moved()
    settled = await settle(cluster, give_up_s)
    await _close_idle(cluster, give_up_s)
    return {**await show_clock(cluster, call), "settled": settled}


async def _wait_for_load(cluster: ClusterServer, give_up_s: float) -> None:
    """After a start, wait until groups and transactions are loaded: their time begins then, as in Kafka."""
    broker, loop = cluster.broker, asyncio.get_running_loop()
    while broker.is_loading and loop.time() < give_up_s:
        await asyncio.sleep(0.001)
    check_life(cluster, broker)


async def _pass_deadlines(cluster: ClusterServer, until_ms: int, give_up_s: float) -> None:
    """Move the clock to each deadline on the way, one after the other: what ends at one may set the next.

    A member that is expelled after 45 s begins a rebalance, which ends 60 s after that and not after the whole move.
    Rounds of upkeep and parked fetches do not stop the clock: a move of days would take minutes. Nor do deadlines that
    are left after PASS_LIMIT_S: they pass at the end of the move.
    """
    clock, loop = cluster.clock, asyncio.get_running_loop()
    pass_s = min(loop.time() + PASS_LIMIT_S, give_up_s)
    while loop.time() < pass_s:
        due_ms = cluster.broker.turn.timers.next_deadline_ms
        if due_ms is None or due_ms >= until_ms:
            return
        clock.advance(max(0, due_ms - clock.steady_ms()))
        cluster.clock_moved()
        await settle(cluster, give_up_s)


async def _close_idle(cluster: ClusterServer, give_up_s: float) -> None:
    """Close connections that are idle by the moved clock; not those of which a request was answered by its move."""
    loop = asyncio.get_running_loop()
    cluster.sweep()
    while cluster.is_sweeping and loop.time() < give_up_s:
        await asyncio.sleep(0.001)


async def settle(cluster: ClusterServer, give_up_s: float) -> bool:
    """Wait until what is due by now is done, and what comes of it: a timer begins a job, which appends records.

    Under traffic there is always other work, which does not count: what is waited for is noted once for each of
    FOLLOW_UPS rounds. False: it was not done by `give_up_s`, a time of the loop.
    Errors:  RefusedError: the cluster was reset, restored or removed.
    """
    broker, loop = cluster.broker, asyncio.get_running_loop()
    turn = broker.turn
    until_ms, waits_until_ms = cluster.clock.steady_ms(), cluster.clock.wait_ms()
    durability = turn.durability
    for _ in range(FOLLOW_UPS):
        jobs, syncs = turn.jobs.waiting, durability.syncs_done
        while True:
            if loop.time() >= give_up_s:
                return False
            await asyncio.sleep(0.001)
            check_life(cluster, broker)
            due_ms, wait_ms = turn.timers.next_ms, turn.waits.next_ms
            if (due_ms is not None and due_ms <= until_ms) or (wait_ms is not None and wait_ms <= waits_until_ms):
                continue
            if not turn.jobs and durability.idle:
                return True
            # The first sync that ends may have begun before the records were appended.
            is_durable = durability.idle or durability.syncs_done >= syncs + 2
            if is_durable and not turn.jobs.has_any(jobs):
                break
    return True


ROUTES: Final = (
    Route("GET", "/clock", show_clock, "The time of the cluster's clock."),
    Route(
        "POST",
        "/clock",
        move_clock,
        f"Move the clock, by one of {WORDS}; answered when what became due is done."
        ' "pass_waits_ms" moves no clock: Fetches that wait have waited so much longer.',
        body={
            "advance_ms": Optional_(int),
            "set": Optional_(int),
            "freeze": Optional_(bool),
            "resume": Optional_(bool),
            "pass_waits_ms": Optional_(int),
        },
        example={"advance_ms": 45_000},
        errors={409: "the cluster was reset, restored or removed meanwhile"},
    ),
)
