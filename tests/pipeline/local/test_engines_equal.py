"""Both engines give the same rows, whatever happened: random histories of producers, transactions and groups."""

from __future__ import annotations

import argparse
import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import functions as F
from random_logs import RandomLogs

from pipeline import tables
from pipeline.audit.directory import audit_of
from pipeline.engine import local_engine
from pipeline.jobs.offsets import choose
from pipeline.local.frame import DataFrame as LocalRows
from pipeline.local.output import plain
from pipeline.local.session import LocalSession
from pipeline.transforms import commits, lag

STEPS = 60


def rows_of(rows: Any) -> list[str]:
    """Rows as JSON, in order of their text."""
    if isinstance(rows, LocalRows):
        found = [plain(row.asDict()) for row in rows.collect()]
    else:
        found = [json.loads(row[0]) for row in rows.select(F.to_json(F.struct("*"))).collect()]
    return sorted(json.dumps(row, sort_keys=True) for row in found)


def answers(session: Any, path: str, moments: list[datetime]) -> dict[str, list[str]]:
    """What every transform says of the logs."""
    made = dict(audit_of(session, path).tables())
    changes = commits.effective(tables.offsets(session, path, commits.COLUMNS))
    words = {"group": None, "topic": None, "as_of": None, "history": False, "diff": None}
    for name, asked in {
        "latest": {},
        "as_of": {"as_of": moments[0]},
        "history": {"history": True},
        "diff": {"diff": moments},
        "glob": {"group": "g[01]", "topic": "?*"},
    }.items():
        made[name] = choose(changes, argparse.Namespace(**{**words, **asked}))
    slots = lag.slots_of(changes, None, None, 0.05)
    assert slots is not None
    made["lag"] = lag.lag_over_time(changes, tables.raw(session, path, columns=lag.RECORDS), slots)
    made["sums"] = lag.sums(made["lag"])
    made["covered"] = tables.coverage(session, path, "raw")
    return {name: rows_of(rows) for name, rows in made.items()}


def test_both_engines_say_the_same_of_random_histories(spark, tmp_path, audit_seed):
    made, rng = RandomLogs(tmp_path / "data", audit_seed), random.Random(audit_seed)
    for _ in range(STEPS):
        made.step()
        if rng.random() < 0.05:
            made.logs.skip("r-0", 3)  # the cleaner has been here
            made.logs.data("r-0", 1)
    begun = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=1_800_000_000_000)
    ended = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=made.logs.now_ms)
    moments = [begun + (ended - begun) / 3, begun + (ended - begun) * 2 / 3]
    path = str(made.logs.directory)
    session = LocalSession()
    with local_engine():
        local = answers(session, path, moments)
    session.stop()
    distributed = answers(spark, path, moments)
    for name, rows in distributed.items():
        assert local[name] == rows, name
    assert all(local[name] for name in ("findings", "transactions", "latest", "history", "diff", "lag", "covered"))
