"""The whole pipeline in one command: a broker, clients that misbehave, every job over what they left, the report.

momus pipeline demo [--folder DIR] [--seconds N]        make pipeline-demo does the same on a machine with nothing on it
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from momus import Broker

CLIENTS = ("aiokafka", "confluent_kafka", "kafka")
PROMPT = {"group.initial.rebalance.delay.ms": 0, "archive.retain.group": "archive"}


def steps(folder: Path, source: str, target: str) -> list[tuple[str, list[str]]]:
    """Every job with its words; source and target are brokers' addresses."""
    data, archive = str(folder / "data"), str(folder / "archive")
    return [
        ("archive", ["--input", data, "--output", archive, "--topics", "[!_]*", "--bootstrap-server", source]),
        ("offsets", ["--input", archive, "--output", str(folder / "offsets")]),
        ("lag", ["--input", data, "--output", str(folder / "lag")]),
        ("audit", ["--input", data, "--output", str(folder / "audit")]),
        ("compaction", ["--input", data, "--output", str(folder / "compaction")]),
        ("migrate", ["--input", data, "--bootstrap-server", target, "--output", str(folder / "proof.json")]),
        ("bridge", ["--checkpoint", f"{folder}/copy/_checkpoint", "--group", "spark", "--bootstrap-server", source]),
        ("report", ["--input", data, "--output", str(folder / "report.html")]),
    ]


def main(words: Sequence[str]) -> int:
    """Run the demo; returns 0 when every job ran."""
    parser = argparse.ArgumentParser(prog="momus pipeline demo", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where all of it goes; must not exist; without it a temporary one")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the clients go on [20]")
    args = parser.parse_args(words)
    absent = [package for package in CLIENTS if find_spec(package) is None]
    if absent:
        raise PipelineError(f"the demo needs its clients: pip install 'momus[demo]' ({', '.join(absent)} not found)")
    folder = args.folder or Path(tempfile.mkdtemp(prefix="momus-demo-"))
    if args.folder is not None:
        folder.mkdir(parents=True)
    return play(folder.absolute(), args.seconds)


def play(folder: Path, seconds: float, spark: SparkSession | None = None) -> int:
    """Traffic, then the jobs, all in one Spark: the one given, or one for the demo alone."""
    from momus import Broker
    from pipeline.demo_traffic import Traffic
    from pipeline.session import session

    began = time.monotonic()
    used = spark or session("momus demo", kafka=True)
    _say(f"Spark {used.version} is there after {time.monotonic() - began:.0f} s")
    try:
        with (
            Broker(data_dir=folder / "data", config=PROMPT) as source,
            Broker(data_dir=folder / "target", config=PROMPT) as target,
        ):
            _say(f"clients at work for {seconds:.0f} s against {source.bootstrap_servers}, data in {folder / 'data'}")
            for what, number in sorted(Traffic(source.bootstrap_servers).run(seconds).items()):
                _say(f"  {number:>6} {what}")
            stream_orders(used, source, folder / "copy")
            for name, words in steps(folder, source.bootstrap_servers, target.bootstrap_servers):
                run(used, name, words)
    finally:
        if spark is None:
            used.stop()
    _say(f"\nthe report: {folder / 'report.html'}")
    return 0


def stream_orders(spark: SparkSession, broker: Broker, folder: Path) -> None:
    """Spark as a client of the broker: what `bridge` then tells the position of."""
    _say("\norders into Parquet, by Structured Streaming")
    reader = spark.readStream.format("kafka").options(**broker.client_config("spark"))
    orders = reader.option("subscribe", "orders").option("startingOffsets", "earliest").load()
    writer = orders.writeStream.option("checkpointLocation", f"{folder}/_checkpoint").trigger(availableNow=True)
    writer.start(str(folder)).awaitTermination()


def run(spark: SparkSession, name: str, words: list[str]) -> None:
    """One job, as its command line would. Errors: PipelineError: it failed."""
    from pipeline.job import parse

    _say(f"\n$ momus pipeline {name} {' '.join(words)}")
    began = time.monotonic()
    job, args = parse(name, words)
    code = job.run(spark, args)
    # 1 is an audit that found something, which is what it is for.
    if code not in ((0, 1) if name == "audit" else (0,)):
        raise PipelineError(f"{name} ended with {code}")
    _say(f"  {time.monotonic() - began:.1f} s")


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PipelineError as error:
        sys.exit(f"momus pipeline: {error}")
