"""Flink's two-phase-commit sink: a job copies a topic exactly once; it is killed by -9 between two checkpoints, with
records in open transactions, and goes on from the last checkpoint."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above

PARTITIONS = 2  # of "in", each read by a task of its own; "out" has one
KILLS = 3
RECORDS = 2000  # written at once, before each kill and after the last


def last_checkpoint(folder: Path) -> list[Path]:
    """The newest whole checkpoint of all jobs so far; none before the first."""
    whole = sorted(folder.glob("*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime_ns)
    return [path.parent for path in whole[-1:]]


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        checkpoints = folder / "checkpoints"
        bootstrap = stack.enter_context(Broker()).bootstrap_servers
        kit.make_topic(bootstrap, "in", PARTITIONS)
        kit.make_topic(bootstrap, "out")
        command = (*kit.JVM, "-cp", kit.compiled(HERE, "Job.java"), "Job", bootstrap, checkpoints)
        written: list[str] = []

        def write_more() -> None:
            values = [f"record {number}" for number in range(len(written), len(written) + RECORDS)]
            kit.write(bootstrap, "in", values, PARTITIONS)
            written.extend(values)

        def committed() -> int:
            return len(kit.read(bootstrap, "out")[0])

        def inside() -> bool:
            """Whether records are in open transactions, beside those that aborted ones left; if not, writes more."""
            if uncommitted() > aborted:
                return True
            if committed() >= len(written):
                write_more()
            return False

        def uncommitted() -> int:
            """Records of open transactions and of aborted ones."""
            return len(kit.read(bootstrap, "out", committed=False)[0]) - committed()

        for kill in range(KILLS):
            log = folder / f"job-{kill}.log"
            with kit.Program((*command, *last_checkpoint(checkpoints)), log) as job:
                kit.until(lambda: committed() >= len(written), "all before is committed")
                aborted = uncommitted()
                kit.until(inside, "a transaction is open")
                job.kill()
        with kit.Program((*command, *last_checkpoint(checkpoints)), folder / "job.log"):
            write_more()
            kit.until(lambda: committed() >= len(written), "all is committed")
        copied = kit.read(bootstrap, "out")[0]
        for partition in range(PARTITIONS):
            assert [each for each in copied if int(each.split()[1]) % PARTITIONS == partition] == written[partition::2]
        assert len(copied) == len(written)
        assert uncommitted() > 0, "no transaction was aborted"
        return (
            f"KafkaSink, EXACTLY_ONCE, two tasks; {KILLS} kill -9 of the job between checkpoints: {len(written):,} "
            f"records, each once and in order; the log holds {uncommitted():,} more, of transactions that were aborted"
        )


if __name__ == "__main__":
    version = f"{kit.version_in(HERE, 'flink.version')}, connector {kit.version_in(HERE, 'connector.version')}"
    kit.run("Flink", version, prove)
