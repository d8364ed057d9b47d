"""Runs the demo: a broker, misbehaving clients, every job over what they wrote, and the report.

momus pipeline demo [--folder DIR] [--seconds N]        make pipeline-demo also installs what it needs
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import PipelineError
from pipeline.jobs.registry import parse
from pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from momus import Broker

CLIENTS: Final = ("aiokafka", "confluent_kafka", "kafka")
BROKER_CONFIG: Final = {"group.initial.rebalance.delay.ms": 0, "archive.retain.group": "archive"}


def steps(folder: Path, source: str, target: str) -> list[tuple[str, list[str]]]:
    """Every job with its options; source and target are brokers' addresses."""
    data, archive = str(folder / "data"), str(folder / "archive")
    return [
        ("archive", ["--input", data, "--output", archive, "--topics", "[!_]*", "--bootstrap-server", source]),
        ("offsets", ["--input", archive, "--output", str(folder / "offsets")]),
        ("lag", ["--input", data, "--output", str(folder / "lag")]),
        ("resets", ["--input", data, "--output", str(folder / "resets")]),
        ("audit", ["--input", data, "--output", str(folder / "audit")]),
        ("compaction", ["--input", data, "--output", str(folder / "compaction")]),
        ("migrate", ["--input", data, "--bootstrap-server", target, "--output", str(folder / "proof.json")]),
        ("bridge", ["--checkpoint", f"{folder}/copy/_checkpoint", "--group", "spark", "--bootstrap-server", source]),
        ("report", ["--input", data, "--output", str(folder / "report.html")]),
    ]


def main(words: Sequence[str]) -> int:
    """Run the demo from its command line; returns 0. Errors: PipelineError: a client is not installed, a job failed."""
    parser = argparse.ArgumentParser(prog="momus pipeline demo", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="a new folder for all files; without it a temporary one")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the clients run [20]")
    args = parser.parse_args(words)
    absent = [package for package in CLIENTS if find_spec(package) is None]
    if absent:
        raise PipelineError(f"the demo needs its clients: pip install '.[demo]' ({', '.join(absent)} not found)")
    folder = args.folder or Path(tempfile.mkdtemp(prefix="momus-demo-"))
    if args.folder is not None:
        folder.mkdir(parents=True)
    return play(folder.absolute(), args.seconds)


def play(folder: Path, seconds: float, spark: SparkSession | None = None) -> int:
    """Run the clients, then the jobs, all in one Spark session: the given one, or a new one. Returns 0."""
    from momus import Broker  # 9 ms
    from pipeline.demo.traffic import Traffic  # 140 ms for the clients, which only the extra `demo` installs

    began = time.monotonic()
    used = spark or session("momus demo", kafka=True)
    _print(f"Spark {used.version} started in {time.monotonic() - began:.0f} s")
    try:
        with (
            Broker(data_dir=folder / "data", config=BROKER_CONFIG) as source,
            Broker(data_dir=folder / "target", config=BROKER_CONFIG) as target,
        ):
            _print(f"clients run for {seconds:.0f} s against {source.bootstrap_servers}, data in {folder / 'data'}")
            for what, number in sorted(Traffic(source.bootstrap_servers, with_faults=True).run(seconds).items()):
                _print(f"  {number:>6} {what}")
            stream_orders(used, source, folder / "copy")
            for name, words in steps(folder, source.bootstrap_servers, target.bootstrap_servers):
                run(used, name, words)
    finally:
        if spark is None:
            used.stop()
    _print(f"\nthe report: {folder / 'report.html'}")
    return 0


def stream_orders(spark: SparkSession, broker: Broker, folder: Path) -> None:
    """Copy the orders to Parquet with Structured Streaming; the job `bridge` then commits this query's position."""
    _print("\norders into Parquet, by Structured Streaming")
    reader = spark.readStream.format("kafka").options(**broker.client_config("spark"))
    orders = reader.option("subscribe", "orders").option("startingOffsets", "earliest").load()
    writer = orders.writeStream.option("checkpointLocation", f"{folder}/_checkpoint").trigger(availableNow=True)
    writer.start(str(folder)).awaitTermination()


def run(spark: SparkSession, name: str, words: list[str]) -> None:
    """Run one job as its command line would. Errors: PipelineError: it failed."""
    _print(f"\n$ momus pipeline {name} {' '.join(words)}")
    began = time.monotonic()
    job, args = parse(name, words)
    code = job.run(spark, args)
    # The audit exits with 1 when it has findings, and these clients cause some.
    if code not in ((0, 1) if name == "audit" else (0,)):
        raise PipelineError(f"{name} ended with {code}")
    _print(f"  {time.monotonic() - began:.1f} s")


def _print(text: str) -> None:
    print(text, flush=True)
