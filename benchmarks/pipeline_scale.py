"""How a pipeline job grows with its input: `python -m benchmarks.pipeline_scale [--records N ...] [--job NAME ...]`.

For every size a data directory is generated once, and each job runs on it as a process of its own. Meanwhile the
resident memory of the driver's and the executor's JVM and of the Python workers is sampled; the heap left after a
garbage collection is read from the JVM's own log. In local[2] one JVM is driver and executor; local-cluster[1,2,MB] has
two, and shows what the driver alone needs. Rows are counted in the output.
"""

from __future__ import annotations

import argparse
import itertools
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

BATCH, LOGS = 20, 8
SAMPLE_S = 0.25
JOBS = ("archive", "offsets")
EXECUTOR = "CoarseGrainedExecutorBackend"
AFTER_COLLECTION = re.compile(r"\d+M->(\d+)M\(\d+M\)")


class Memory(NamedTuple):
    """Megabytes, the most there were."""

    heap: int  # after a collection
    resident: int

    def __str__(self) -> str:
        return f"{self.heap} MB of {self.resident}"


class Run(NamedTuple):
    """One job over one input."""

    job: str
    master: str
    records: int
    seconds: float
    cpu_s: float
    rows: int
    output_bytes: int
    driver: Memory
    executor: Memory | None  # None: the driver is it
    workers_mb: int

    def line(self) -> str:
        cells = [self.job, self.master, f"{self.records:,}", f"{self.seconds:.0f} s", f"{self.cpu_s:.0f} s"]
        cells += [f"{self.records / self.seconds:,.0f}", f"{self.rows:,}", f"{self.output_bytes / 1e6:,.0f} MB"]
        cells += [str(self.driver), str(self.executor or "the same"), f"{self.workers_mb} MB"]
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| job | master | records | time | CPU | records/s | rows written | output | driver: heap after collection of "
    "resident | executor | Python workers |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


class Watched:
    """What the processes below one take, sampled."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._cpu_s: dict[int, float] = {}
        self.most = dict.fromkeys(("driver", "executor", "workers"), 0)

    def look(self) -> None:
        """One sample. Workers are forked from one daemon: what they share counts once."""
        now = dict.fromkeys(self.most, 0)
        for child in self._root.children(recursive=True):
            try:
                self._cpu_s[child.pid] = sum(child.cpu_times()[:2])
                if child.name() != "java":
                    now["workers"] += child.memory_full_info().uss
                else:
                    role = "executor" if any(EXECUTOR in word for word in child.cmdline()) else "driver"
                    now[role] += child.memory_info().rss
            except psutil.NoSuchProcess:
                continue  # it ended while we looked
        self.most = {name: max(size, now[name]) for name, size in self.most.items()}

    def cpu_s(self) -> float:
        """CPU seconds of all that were seen."""
        return sum(self._cpu_s.values())

    def memory(self, role: str, log: Path) -> Memory | None:
        """The most that the JVM of a role has held, or None when there was none."""
        if not self.most[role]:
            return None
        heap = max((int(found) for found in AFTER_COLLECTION.findall(log.read_text())), default=0)
        return Memory(heap, self.most[role] >> 20)


def run(job: str, source: Path, records: int, output: Path, heap: str, master: str) -> Run:
    """Run one job and watch it."""
    logs = {role: output.with_suffix(f".{role}") for role in ("driver", "executor")}
    quiet = f"-Dlog4j2.configurationFile=file:{ROOT / 'pipeline' / 'log4j2.properties'}"
    command = [sys.executable, "-m", "momus", "pipeline", job, "--input", str(source), "--output", str(output)]
    command += ["--master", master, "--conf", f"spark.driver.memory={heap}", "--conf", f"spark.executor.memory={heap}"]
    for role, log in logs.items():
        options = f"-Xlog:gc:file={log}" if role == "executor" else f"{quiet} -Xlog:gc:file={log}"
        command += ["--conf", f"spark.{role}.extraJavaOptions={options}"]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    watched = Watched(process.pid)
    while process.poll() is None:
        watched.look()
        time.sleep(SAMPLE_S)
    seconds = time.monotonic() - began
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    driver = watched.memory("driver", logs["driver"])
    assert driver is not None
    return Run(
        job,
        master,
        records,
        seconds,
        watched.cpu_s(),
        pyarrow.dataset.dataset(output, format="parquet").count_rows(),
        sum(path.stat().st_size for path in output.rglob("*.parquet")),
        driver,
        watched.memory("executor", logs["executor"]),
        watched.most["workers"] >> 20,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, nargs="+", default=[10_000_000, 100_000_000])
    parser.add_argument("--job", nargs="+", default=list(JOBS))
    parser.add_argument("--groups", type=int, default=5, help="a log: with 20 partitions each, the keys")
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--master", nargs="+", default=["local[2]", "local-cluster[1,2,2048]"])
    parser.add_argument("--folder", type=Path, help="keep the generated logs here, and use them again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for records in args.records:
            source = (args.folder or Path(scratch)) / f"{records}-{args.groups}"
            if not source.exists():
                began = time.monotonic()
                size = generate(source, records, batch=BATCH, logs=LOGS, groups=args.groups)
                print(f"generated {records:,} records, {size:,} bytes in {time.monotonic() - began:.0f} s", flush=True)
        print(HEAD)
        for records in args.records:
            source = (args.folder or Path(scratch)) / f"{records}-{args.groups}"
            for job, master in itertools.product(args.job, args.master):
                output = Path(scratch) / f"{job}-{records}"
                print(run(job, source, records, output, args.heap, master).line(), flush=True)
                shutil.rmtree(output)


if __name__ == "__main__":
    main()
