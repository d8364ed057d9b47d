"""The speed of reading committed offsets from segments: `python -m benchmarks.decode [--records N]`.

decode   one process, one core, files in the page cache, CRCs checked: records a second of CPU time; best of three
process  the same as a whole process, start included, beside Apache Kafka's kafka-dump-log --offsets-decoder on the same
         segments; needs Java, and Kafka's jars in --kafka-libs or KAFKA_LIBS
spark    the view into a sink that discards rows, local[2], best of three after two warm-up runs: all columns, and those
         that the job `offsets` reads, from the segments and from an archive of them (Parquet); CPU time of the JVM and
         the Python workers, and the JVM's part of it

The last column is wall-clock time divided by the number of cores. Each row checks that it has read every record.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.commit_logs import generate
from pipeline.schema import VIEWS
from pipeline.source.segment_ranges import scan

LOGS, GROUPS = 4, 5
DUMP = "org.apache.kafka.tools.DumpLogSegments"
CORES = 2


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def decoded(folder: Path, view: str, records: int) -> float:
    """Seconds of CPU time for one pass."""
    began = time.process_time()
    rows = sum(batch.num_rows for batch in scan(str(folder), view, "__consumer_offsets"))
    used = time.process_time() - began
    assert rows == records, f"{rows} rows of {records}"
    return used


def whole(command: list[str], count: Callable[[str], int], records: int) -> tuple[float, float]:
    """Seconds and CPU seconds of a process that must have seen all records."""
    cpu, began = children_cpu_s(), time.monotonic()
    with tempfile.TemporaryFile("w+") as printed:
        subprocess.run(command, check=True, stdout=printed, stderr=subprocess.PIPE)
        seconds = time.monotonic() - began
        printed.seek(0)
        seen = sum(map(count, printed))
    assert seen == records, f"{seen} rows of {records}"
    return seconds, children_cpu_s() - cpu


def ours(folder: Path, records: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.decode", "--scan", str(folder)]
    return whole(command, int, records)


def theirs(folder: Path, records: int, libs: str) -> tuple[float, float]:
    segments = ",".join(map(str, sorted(folder.glob("*/*.log"))))
    command = ["java", "-cp", f"{libs}/*", DUMP, "--offsets-decoder", "--deep-iteration", "--files", segments]
    pattern = re.compile(r"^\| offset: ")
    return whole(command, lambda line: pattern.match(line) is not None, records)


class Pass(NamedTuple):
    """One pass through Spark: seconds, and CPU seconds of the JVM and of the Python workers."""

    seconds: float
    jvm_s: float
    workers_s: float

    @property
    def cpu_s(self) -> float:
        return self.jvm_s + self.workers_s


def family_cpu_s() -> dict[bool, float]:
    """CPU seconds of this process' children and theirs so far: of Spark's JVM (True) and of its Python workers."""
    used = {True: 0.0, False: 0.0}
    for each in psutil.Process().children(recursive=True):
        times = each.cpu_times()
        used[each.name() == "java"] += times.user + times.system
    return used


def archived(folder: Path, archive: Path) -> None:
    """Copy the segments into an archive, by the job."""
    command = [sys.executable, "-m", "momus", "pipeline", "archive", "--input", str(folder), "--output", str(archive)]
    subprocess.run(command, check=True, capture_output=True)


def sparked(path: Path, records: int, columns: Sequence[str]) -> Pass:
    """A pass through Spark over logs or an archive, the best of three after two that warm it up. No columns: all."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    from pipeline import tables
    from pipeline.session import session

    spark = session("decode", master=f"local[{CORES}]")
    passes = []
    for _ in range(5):
        rows = Observation()
        frame = tables.offsets(spark, str(path), columns or None)
        began, cpu = time.monotonic(), family_cpu_s()
        frame.observe(rows, count(lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
        now = family_cpu_s()
        passes.append(Pass(time.monotonic() - began, now[True] - cpu[True], now[False] - cpu[False]))
        assert rows.get["rows"] == records, f"{rows.get['rows']} rows of {records}"
    return min(passes[2:], key=lambda each: each.cpu_s)


def row(*cells: object) -> None:
    print(f"| {' | '.join(str(each) for each in cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 5, 100], help="records a batch")
    parser.add_argument(
        "--only", nargs="+", choices=["decode", "process", "spark"], default=["decode", "process", "spark"]
    )
    parser.add_argument("--kafka-libs", default=os.environ.get("KAFKA_LIBS"), help="directory of Apache Kafka's jars")
    parser.add_argument("--scan", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scan:
        print(sum(batch.num_rows for batch in scan(str(options.scan), "offsets")))
        return
    print(f"{options.records:,} commits in {LOGS} logs; load of the machine before: {os.getloadavg()[0]:.1f}\n")
    row(
        "records a batch",
        "bytes a record",
        "what",
        "seconds",
        "CPU seconds",
        "records a CPU second",
        "a second and core",
    )
    row(*["---"] * 7)
    for batch in options.batch:
        with tempfile.TemporaryDirectory(prefix="momus-decode-") as name:
            folder = Path(name)
            size = generate(folder, options.records, batch=batch, logs=LOGS, groups=GROUPS) // options.records
            measure(folder, options, batch, size)


def measure(folder: Path, options: argparse.Namespace, batch: int, size: int) -> None:
    records = options.records

    def show(what: str, seconds: float, used: float, cores: int = 1) -> None:
        rates = [f"{records / used:,.0f}", f"{records / seconds / cores:,.0f}" if seconds else ""]
        row(batch, size, what, f"{seconds:.1f}" if seconds else "", f"{used:.2f}", *rates)

    if "decode" in options.only:
        for view in ("offsets", "raw"):
            show(f"decode, view {view}", 0, min(decoded(folder, view, records) for _ in range(3)))
    if "process" in options.only:
        show("momus, whole process", *ours(folder, records))
        if options.kafka_libs:
            show("kafka-dump-log, whole process", *theirs(folder, records, options.kafka_libs))
    if "spark" in options.only:
        from pipeline.transforms.commits import COLUMNS

        archive = folder.with_name(f"{folder.name}-archive")
        try:
            archived(folder, archive)
            for what, path, columns in (
                (f"all {len(VIEWS['offsets'])} columns", folder, ()),
                (f"the {len(COLUMNS)} of the job offsets", folder, COLUMNS),
                (f"the same {len(COLUMNS)} from an archive", archive, COLUMNS),
            ):
                best = sparked(path, records, columns)
                show(f"Spark, {what}; JVM {best.jvm_s / best.cpu_s:.0%}", best.seconds, best.cpu_s, CORES)
        finally:
            shutil.rmtree(archive, ignore_errors=True)


if __name__ == "__main__":
    main()
