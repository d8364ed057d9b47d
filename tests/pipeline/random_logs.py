"""Histories of producers, transactions and groups in which things go wrong, now and then, in every way at once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from made_logs import ABORT, COMMIT, STATES, Logs

from broker.coordinator.transactions.transaction import State

CO = "__consumer_offsets"


class RandomLogs:
    """A data directory that grows step by step. After each step the broker that could have written it is at rest."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.logs = Logs(directory)
        self.done: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._epochs: Counter[int] = Counter()
        self._sequences: Counter[tuple[int, str]] = Counter()
        self._positions: Counter[tuple[str, int]] = Counter()
        self._generations: Counter[str] = Counter()
        self._strangers = 10_000

    def step(self) -> None:
        """One thing that happens."""
        ways = {
            self._write: 8,
            self._transact: 6,
            self._ship: 4,
            self._commit: 8,
            self._rebalance: 2,
            self._wide: 2,
            self._bump: 2,
            self._stray: 1,
        }
        [way] = self._rng.choices(list(ways), weights=list(ways.values()))
        way()

    def _is(self, what: str, chance: float) -> bool:
        happens = self._rng.random() < chance
        self.done[what] += happens
        return happens

    def _next(self, pid: int, log: str, count: int) -> int:
        sequence = self._sequences[pid, log]
        self._sequences[pid, log] += count
        return sequence

    def _write(self) -> None:
        """A producer without transactions."""
        pid, log, count = self._rng.randrange(1, 4), f"r-{self._rng.randrange(2)}", self._rng.randrange(1, 4)
        epoch = self._epochs[pid]
        first = self._next(pid, log, count)
        if self._is("late", 0.1):
            later = self._next(pid, log, count)
            self.logs.data(log, count, pid, epoch, later)
        elif self._is("missing", 0.1):
            first = self._next(pid, log, count)
        self.logs.data(log, count, pid, epoch, first)
        if self._is("twice", 0.1):
            self.logs.data(log, count, pid, epoch, first)
        self.logs.data(log, 1)

    def _bump(self) -> None:
        """A producer gets a new epoch, which its zombie may not notice."""
        pid = self._rng.randrange(1, 4)
        self._epochs[pid] += 1
        for log in ("r-0", "r-1"):
            zombie = self._next(pid, log, 1)
            self._sequences[pid, log] = 0
            self.logs.data(log, 1, pid, self._epochs[pid], self._next(pid, log, 1))
            if self._is("zombie", 0.3):
                self.logs.data(log, 1, pid, self._epochs[pid] - 1, zombie)

    def _transact(self) -> None:
        """A transaction of two records."""
        number = self._rng.randrange(3)
        pid, log, kind = 100 + number, f"s-{number % 2}", self._rng.choice([COMMIT, COMMIT, ABORT])
        markers = [(0, kind)]
        if number == 0 and self._is("resent", 0.2):
            markers *= 2
        elif number and self._is("untold", 0.2):
            markers = []
        elif number and self._is("wrong", 0.2):
            markers = [(0, 1 - kind)]
        self.logs.transaction(f"tx{number}", pid, 0, log, kind=kind, markers=markers, sequence=self._next(pid, log, 2))

    def _ship(self) -> None:
        """Offsets in a transaction."""
        group, pid, log = f"g{self._rng.randrange(2)}", 200, f"{CO}-1"
        kind = self._rng.choice([COMMIT, ABORT])
        states, where = f"{STATES}-1", {CO: [1]}
        self.logs.state(states, "ship", State.ONGOING, pid, 0, where)
        offsets = self._moved(group, 1, keep=kind == COMMIT)
        said = {"member": "m", "generation": self._generations[group]}
        self.logs.commit(log, group, offsets, pid=pid, epoch=0, sequence=self._next(pid, log, 1), **said)
        self.logs.state(states, "ship", State.PREPARE_COMMIT if kind else State.PREPARE_ABORT, pid, 0, where)
        self.logs.marker(log, pid, 0, kind)
        self.logs.state(states, "ship", State.COMPLETE_COMMIT if kind else State.COMPLETE_ABORT, pid, 0)

    def _moved(self, group: str, count: int, *, keep: bool = True) -> dict[int, int]:
        moved = {}
        for partition in self._rng.sample(range(3), count):
            by = -1 if self._is("back", 0.1) else self._rng.randrange(5)
            moved[partition] = max(self._positions[group, partition] + by, 0)
            if keep:
                self._positions[group, partition] = moved[partition]
        return moved

    def _commit(self) -> None:
        """A member, sometimes of an older generation."""
        group = f"g{self._rng.randrange(2)}"
        stale = self._generations[group] > 0 and self._is("stale", 0.1)
        generation = self._generations[group] - stale
        self.logs.commit(f"{CO}-1", group, self._moved(group, 2), member="m", generation=generation)

    def _rebalance(self) -> None:
        group = f"g{self._rng.randrange(2)}"
        self._generations[group] += 1
        self.logs.classic_group(f"{CO}-1", group, self._generations[group])

    def _wide(self) -> None:
        """A commit over two batches, of which the second may never come."""
        log = f"{CO}-2"
        first = self.logs.commit(log, "large", {0: 1, 1: 1}, size=3)
        if not self._is("torn", 0.3):
            self.logs.commit(log, "large", {2: 1}, commit_id=first, size=3)
        self.logs.commit(log, "other", {0: 2})

    def _stray(self) -> None:
        """What no coordinator knows of."""
        self._strangers += 1
        if self._is("stray", 0.5):
            self.logs.marker("s-0", self._strangers, 0)
        elif self._is("hanging", 1):
            self.logs.data("s-1", 1, self._strangers, 0, 0, txn=True)
