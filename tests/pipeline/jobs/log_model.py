"""Random histories of a log of committed offsets, as rows of the view `offsets`, and what a coordinator makes of them.

The model replays record by record, as a coordinator does when it loads its log; the jobs must say the same of the rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=1)
Key = tuple[str, str, int]


def time_of(offset: int) -> datetime:
    """Every record of the model is a second later than the one before."""
    return START + offset * STEP


@dataclass
class Model:
    """One log: the rows it holds, and what is committed after each of them."""

    log: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    committed: dict[Key, tuple[int, int]] = field(default_factory=dict)  # -> (value, offset of its record)
    pending: dict[int, dict[Key, tuple[int, int]]] = field(default_factory=dict)
    after: list[dict[Key, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.rows)

    def _add(self, **fields: Any) -> int:
        offset = self.end
        topic, _, partition = self.log.rpartition("-")
        place = {"log": self.log, "topic": topic, "partition": int(partition), "offset": offset}
        defaults = {"timestamp": time_of(offset), "producer_id": -1, "producer_epoch": -1, "tombstone": False}
        self.rows.append({**place, **defaults, "transactional": False, **fields})
        self.after.append({})
        return offset

    def _settle(self) -> None:
        self.after[-1] = {key: value for key, (value, _) in self.committed.items()}

    def commit(self, key: Key, value: int | None, producer_id: int = -1, **fields: Any) -> None:
        """One record; a value of None is a tombstone."""
        group, topic, partition = key
        offset = self._add(
            kind="OffsetCommit",
            group=group,
            commit_topic=topic,
            commit_partition=partition,
            commit_offset=value,
            tombstone=value is None,
            producer_id=producer_id,
            transactional=producer_id >= 0,
            **fields,
        )
        if value is None:
            self.committed.pop(key, None)
            for each in self.pending.values():
                each.pop(key, None)
        elif producer_id >= 0:
            self.pending.setdefault(producer_id, {})[key] = value, offset
        elif not fields.get("part"):
            self.committed[key] = value, offset
        self._settle()

    def wide(self, keys: list[Key], value: int, *, cut: int = 0) -> None:
        """A commit over several batches; without its last records when it was cut short."""
        first = self.end
        kept = keys[: len(keys) - cut]
        for key in kept:
            self.commit(key, value, commit_id=first, commit_size=len(keys), part=True)
            self.rows[-1].pop("part")
        for row in self.rows[first:]:  # one request is one moment
            row["timestamp"] = time_of(self.end - 1)
        if not cut:
            for at, key in enumerate(keys):
                self.committed[key] = value, first + at
        self._settle()

    def marker(self, producer_id: int, control: str) -> None:
        """The end of a producer's transaction."""
        self._add(control=control, producer_id=producer_id, transactional=True)
        for key, (value, offset) in self.pending.pop(producer_id, {}).items():
            if control == "COMMIT" and offset > self.committed.get(key, (0, -1))[1]:
                self.committed[key] = value, offset
        self._settle()


def random_model(log: str, seed: int, steps: int = 60) -> Model:
    """A history of a few keys and producers, so that they meet."""
    rng = random.Random(seed)
    model = Model(log)
    keys = [(f"g{g}", f"t{t}", p) for g in range(2) for t in range(2) for p in range(2)]
    for step in range(steps):
        choice = rng.random()
        if choice < 0.35:
            model.commit(rng.choice(keys), step)
        elif choice < 0.6:
            model.commit(rng.choice(keys), step, producer_id=rng.randrange(3))
        elif choice < 0.68:
            model.commit(rng.choice(keys), None, producer_id=rng.choice([-1, 0]))
        elif choice < 0.78:
            model.wide(rng.sample(keys, 3), step, cut=rng.choice([0, 0, 1]))
            model.commit(("other", "t0", 0), step)
        else:
            model.marker(rng.randrange(3), rng.choice(["COMMIT", "COMMIT", "ABORT"]))
    return model
