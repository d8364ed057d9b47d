"""spring-kafka: a transactional listener reads, processes and writes; some records are rolled back first, and the
application is killed by -9 and started again."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above

PARTITIONS = 2
RECORDS = 3000


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bootstrap = stack.enter_context(Broker()).bootstrap_servers
        for topic in ("in", "out"):
            kit.make_topic(bootstrap, topic, PARTITIONS)
        values = [f"record {number}" for number in range(RECORDS)]
        kit.write(bootstrap, "in", values, PARTITIONS)

        def copied() -> int:
            return sum(map(len, kit.read(bootstrap, "out", PARTITIONS)))

        command = (*kit.JVM, "-cp", kit.compiled(HERE, "Copy.java"), "Copy", bootstrap)
        log = folder / "copy.log"
        with kit.Program(command, log) as program:
            kit.until(lambda: program.said("listening") and copied() > RECORDS // 4, "a quarter is copied")
            program.kill()
            assert copied() < RECORDS, "it was done before it was killed"
            program.start()
            kit.until(lambda: copied() >= RECORDS, "all is copied")
        wanted = [[value.upper() for value in values[partition::PARTITIONS]] for partition in range(PARTITIONS)]
        assert kit.read(bootstrap, "out", PARTITIONS) == wanted
        written = sum(map(len, kit.read(bootstrap, "out", PARTITIONS, committed=False)))
        assert written > RECORDS, "nothing was rolled back"
        return (
            f"transactional listener, two threads, one kill -9: {RECORDS:,} records read, changed and written, "
            f"each once and in order; the log holds {written - RECORDS} more that were rolled back"
        )


if __name__ == "__main__":
    kit.run("spring-kafka", kit.version_in(HERE, "spring-kafka.version"), prove)
