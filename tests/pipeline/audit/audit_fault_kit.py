"""A fault that a log was given, what the audit should say of it, and an audit of such logs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from made_logs import STATES, Logs

from broker.coordinator.transactions.transaction import State
from pipeline import tables
from pipeline.audit.audit import Audit, audit

CO = "__consumer_offsets"
TOPIC_ID = b"\1" * 16
CLEANED = "cleaned-0"


class Fault(NamedTuple):
    """kind at offset of log (None: no finding), and its sentence."""

    kind: str | None
    log: str = ""
    offset: int = 0
    says: str = ""


def in_transaction(logs: Logs, log: str, group: str, pid: int, offset: int) -> None:
    """A committed transaction that commits one offset."""
    topic, _, index = log.rpartition("-")
    partitions = {topic: [int(index)]}
    logs.state(f"{STATES}-0", group, State.ONGOING, pid, 0, partitions)
    logs.commit(log, group, {0: offset}, member="m", generation=1, pid=pid, epoch=0, sequence=0)
    logs.state(f"{STATES}-0", group, State.PREPARE_COMMIT, pid, 0, partitions)
    logs.marker(log, pid, 0)
    logs.state(f"{STATES}-0", group, State.COMPLETE_COMMIT, pid, 0)


def audited(session: Any, directory: Path, cleaned: Collection[str] | None = None) -> Audit:
    path = str(directory)
    views = tables.raw(session, path), tables.offsets(session, path), tables.transactions(session, path)
    return audit(*views, cleaned=cleaned)
