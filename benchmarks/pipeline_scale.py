"""How a pipeline job grows with its input: `python -m benchmarks.pipeline_scale [--records N ...] [--job NAME ...]`.

For every size a data directory is generated once and each job is run on it as a process of its own. While it runs, the
resident memory of its JVM (driver and executor in one: local[2]) and of its Python workers is sampled; what the JVM's
heap holds after a collection comes from its own log. Rows are counted in what was written.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import pyarrow.dataset

from benchmarks.commit_logs import generate
from pipeline.session import ROOT

BATCH, LOGS, GROUPS = 20, 8, 5
SAMPLE_S = 0.25
JOBS = ("archive", "offsets")
AFTER_COLLECTION = re.compile(r"\d+M->(\d+)M\(\d+M\)")


class Run(NamedTuple):
    """One job over one input."""

    job: str
    records: int
    seconds: float
    cpu_s: float
    rows: int
    heap_mb: int
    jvm_mb: int
    workers_mb: int
    output_bytes: int

    def line(self) -> str:
        cells = [self.job, f"{self.records:,}", f"{self.seconds:.0f} s", f"{self.cpu_s:.0f} s"]
        cells += [f"{self.records / self.seconds:,.0f}", f"{self.rows:,}", f"{self.output_bytes / 1e6:,.0f} MB"]
        cells += [f"{each} MB" for each in (self.heap_mb, self.jvm_mb, self.workers_mb)]
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| job | records | time | CPU | records/s | rows written | output | heap after collection, most "
    "| JVM resident, most | Python workers, most |\n|---|---|---|---|---|---|---|---|---|---|"
)


def run(job: str, source: Path, records: int, output: Path, heap: str, master: str) -> Run:
    """Run one job and watch it."""
    log = output.with_suffix(".gc")
    quiet = ROOT / "pipeline" / "log4j2.properties"
    command = [sys.executable, "-m", "momus", "pipeline", job, "--input", str(source), "--output", str(output)]
    command += ["--master", master, "--conf", f"spark.driver.memory={heap}", "--conf"]
    command += [f"spark.driver.extraJavaOptions=-Dlog4j2.configurationFile=file:{quiet} -Xlog:gc:file={log}"]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    jvm = workers = 0
    cpu_s: dict[int, float] = {}
    while process.poll() is None:
        now_jvm, now_workers = _look(process.pid, cpu_s)
        jvm, workers = max(jvm, now_jvm), max(workers, now_workers)
        time.sleep(SAMPLE_S)
    seconds = time.monotonic() - began
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    rows = pyarrow.dataset.dataset(output, format="parquet").count_rows()
    heap_mb = max((int(found) for found in AFTER_COLLECTION.findall(log.read_text())), default=0)
    size = sum(path.stat().st_size for path in output.rglob("*.parquet"))
    return Run(job, records, seconds, sum(cpu_s.values()), rows, heap_mb, jvm >> 20, workers >> 20, size)


def _look(pid: int, cpu_s: dict[int, float]) -> tuple[int, int]:
    """Resident bytes of the JVM and of all Python workers below a process; notes what each has computed so far."""
    jvm = workers = 0
    for child in psutil.Process(pid).children(recursive=True):
        try:
            cpu_s[child.pid] = sum(child.cpu_times()[:2])
            # Workers are forked from one daemon: what they share counts once.
            if child.name() == "java":
                jvm += child.memory_info().rss
            else:
                workers += child.memory_full_info().uss
        except psutil.NoSuchProcess:
            continue  # it ended while we looked
    return jvm, workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, nargs="+", default=[10_000_000, 100_000_000])
    parser.add_argument("--job", nargs="+", default=list(JOBS))
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, help="keep the generated logs here, and use them again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for records in args.records:
            source = (args.folder or Path(scratch)) / str(records)
            if not source.exists():
                began = time.monotonic()
                size = generate(source, records, batch=BATCH, logs=LOGS, groups=GROUPS)
                print(f"generated {records:,} records, {size:,} bytes in {time.monotonic() - began:.0f} s", flush=True)
        print(HEAD)
        for records in args.records:
            source = (args.folder or Path(scratch)) / str(records)
            for job in args.job:
                output = Path(scratch) / f"{job}-{records}"
                print(run(job, source, records, output, args.heap, args.master).line(), flush=True)
                shutil.rmtree(output)


if __name__ == "__main__":
    main()
