"""The jobs that both engines run, side by side.

    python -m benchmarks.pipeline_engines [--records N ...] [--job NAME ...]

For every size a data directory of commits is generated once (40 groups with 20 partitions each, eight logs). Each job
runs on it as a process of its own, once in each engine, and its rows go to a file. Printed: seconds, seconds of
processor time of all its processes, the most resident memory, and the rows.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.commit_logs import generate
from pipeline.session import ROOT

JOBS = ("offsets", "lag", "resets", "audit", "coverage")
WORDS = {"lag": ("--last",)}  # the lag now
ENGINES = ("local", "spark")
BATCH, LOGS, GROUPS = 20, 8, 5
SAMPLE_S = 0.2
HEAD = "| job | records | engine | time | CPU | memory | rows |\n|---|---|---|---|---|---|---|"


def run(job: str, source: Path, engine: str, limit_s: float) -> str:
    """Run one job; the cells after its name and size."""
    command = [sys.executable, "-m", "momus", "pipeline", job, "--input", str(source), "--engine", engine]
    began = time.monotonic()
    cpu_s: dict[int, float] = {}
    most = 0
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([*command, *WORDS.get(job, ())], cwd=ROOT, stdout=output, stderr=subprocess.DEVNULL)
        root = psutil.Process(process.pid)
        while process.poll() is None:
            resident = 0
            for each in [root, *root.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):  # it ended while we looked
                    cpu_s[each.pid] = sum(each.cpu_times()[:2])
                    resident += each.memory_info().rss
            most = max(most, resident)
            if time.monotonic() - began > limit_s:
                for each in root.children(recursive=True):
                    each.kill()
                process.kill()
                process.wait()
                return f"{engine} | not within {limit_s:.0f} s | | {most >> 20} MB | |"
            time.sleep(SAMPLE_S)
        seconds = time.monotonic() - began
        output.seek(0)
        rows = sum(1 for _ in output)
    state = "" if process.returncode == 0 else f", exit {process.returncode}"
    return f"{engine} | {seconds:.1f} s{state} | {sum(cpu_s.values()):.1f} s | {most >> 20} MB | {rows:,} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--job", nargs="+", default=list(JOBS))
    parser.add_argument("--engine", nargs="+", default=list(ENGINES))
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="a job takes no longer [300]")
    parser.add_argument("--folder", type=Path, help="keep the generated logs here, and use them again")
    args = parser.parse_args()
    sys.stdout.write(f"{HEAD}\n")
    with tempfile.TemporaryDirectory() as scratch:
        for records, job, engine in itertools.product(args.records, args.job, args.engine):
            source = (args.folder or Path(scratch)) / f"{records}-{GROUPS}"
            if not source.exists():
                generate(source, records, batch=BATCH, logs=LOGS, groups=GROUPS)
            sys.stdout.write(f"| {job} | {records:,} | {run(job, source, engine, args.limit)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
