"""Which replicas of a partition are in sync and who leads it, as brokers stop and start: pure rules.

    a broker stops     it leaves the in-sync replicas (isr); another of them leads, or an eligible one, or none
    a broker starts    it is in sync at once, if another one leads; else it leads, if it was in sync or eligible last
    a follower lags    it stays in sync until it has missed something for replica.lag.time.max.ms; then it leaves
    none may lead      with unclean.leader.election.enable any replica that is up leads, and what it has missed is lost

A replica that leaves the isr while that is below min.insync.replicas stays eligible: it has all that was committed
since. That needs the feature eligible.leader.replicas.version; without it the last in-sync replica stays in the isr.
Whoever leads without having been in sync to the end cuts the log where it was when it left.

Source: KIP-966; Kafka's PartitionChangeBuilder, and what three brokers of 4.3.1 answered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

NOBODY = -1


class Sync(NamedTuple):
    """Leader (NOBODY: none), in-sync replicas, eligible leader replicas, and who was either before."""

    leader: int
    isr: list[int]
    elr: list[int]
    last_known_elr: list[int]


def follow(
    now: Sync,
    replicas: Sequence[int],
    up: Collection[int],
    least: int,
    *,
    keeps_eligible: bool,
    unclean: bool,
    lagging: Collection[int] = (),
) -> Sync:
    """The state once exactly these nodes are up.

    least    how many in-sync replicas the high watermark needs
    lagging  nodes that do not follow, and are not in sync unless they lead
    """
    before = {*now.isr, *now.elr}
    alive = [node for node in replicas if node in up]
    if now.leader != NOBODY and now.leader in alive:
        leader = now.leader
    else:
        clean = [node for node in alive if node in now.isr] or [node for node in alive if node in now.elr]
        leader = (clean or (alive if unclean else []) or [NOBODY])[0]
    isr = [node for node in alive if node not in lagging or node == leader]  # who has started has caught up
    if leader == NOBODY:
        isr = [] if keeps_eligible else now.isr[:1]
    if not keeps_eligible or len(isr) >= least:
        return Sync(leader, isr, [], [])
    is_unclean = leader != NOBODY and leader not in before
    elr = [] if is_unclean else [node for node in replicas if node in before and node not in isr]
    last_known = now.last_known_elr if now.leader == NOBODY else [now.leader]
    return Sync(leader, isr, elr, list(last_known) if leader == NOBODY else [])


def least_in_sync(min_insync_replicas: Any, replicas: Sequence[int]) -> int:
    """How many in-sync replicas acks=all and the high watermark need: the setting, at most all."""
    return min(int(min_insync_replicas), len(replicas))
