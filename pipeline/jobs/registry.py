"""The table of jobs, and the command line that all of them share.

A job is a module of pipeline.jobs with

    add_arguments(parser)            its own options
    run(spark, args) -> exit code    0: good, 1: failed, or a check found something
    NEEDS_INPUT = False              --input is optional; without this line it is required
    READS_BROKER = True              --input may be a running broker, which run opens by live_source.open_input
    FOR_BOTH = True                  the local engine runs it too (pipeline/local); without this line it is Spark's

A new job is such a module and a line in JOBS.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from pipeline.broker_address import is_broker
from pipeline.connection_options import has_settings

# job -> its line in `momus pipeline --help`
JOBS: Final = {
    "archive": "copy the logs to Parquet before compaction removes records",
    "offsets": "history of committed offsets; what was committed at a time; what changed between two",
    "lag": "lag of every group and partition over time",
    "resets": "who set offsets back or ahead: commits that go back, jumps, removals",
    "coverage": "which offsets of each log are there, and which are missing and why",
    "audit": "check exactly-once; each finding names the log position that proves it",
    "compaction": "live and dead bytes a segment, and what a cleaning would free",
    "migrate": "copy topics and group offsets into a Kafka cluster, and verify the copy",
    "bridge": "commit a streaming query's progress as a consumer group",
    "report": "one HTML page of all of it",
}


def parse(name: str, words: Sequence[str]) -> tuple[ModuleType, argparse.Namespace]:
    """A job's module and its parsed options; bad options end the process with exit code 2, as argparse does."""
    job = import_module(f"pipeline.jobs.{name}")
    parser = job_parser(name, job)
    args = parser.parse_args(words)
    if args.input is None and getattr(job, "NEEDS_INPUT", True):
        parser.error("--input is missing: a data directory, an archive, or an address of either that pyarrow.fs opens")
    if has_settings(args) and not is_broker(args.input) and not getattr(args, "bootstrap_server", None):
        parser.error("-X and --config say how to connect: they need --bootstrap-server, or --input kafka://HOST:PORT")
    return job, args


def job_parser(name: str, job: ModuleType) -> argparse.ArgumentParser:
    """The command line of one job: the shared options, then its own."""
    parser = argparse.ArgumentParser(prog=f"momus pipeline {name}", description=JOBS[name])
    reads = ", or kafka://HOST:PORT" if getattr(job, "READS_BROKER", False) else ""
    parser.add_argument("--input", metavar="PATH", help=f"data directory, archive, an address of pyarrow.fs{reads}")
    parser.add_argument("--output", metavar="PATH", help="where the result goes; without it, standard output")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier result of this job at --output")
    parser.add_argument("--format", choices=("parquet", "delta"), default="parquet", help="of the tables written")
    parser.add_argument(
        "--engine", choices=("auto", "local", "spark"), default="auto",
        help="local: DuckDB in this process, without Java; auto: local up to 50 million records or 2 GB [auto]",
    )  # fmt: skip  # the choices on one line
    parser.add_argument("--master", help="Spark master; without it local[*], or what spark-submit was given")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], type=_pair, help="a Spark setting")
    parser.add_argument(
        "--skip-damaged", action="store_true", help="pass over damage in the middle of logs, and list it first"
    )
    parser.add_argument(
        "-l", "--log-level", choices=("off", "error", "debug"), default="off",
        help="of Spark's log on standard error; debug: stack traces of errors too [off]",
    )  # fmt: skip  # the choices on one line
    parser.set_defaults(job=name)
    job.add_arguments(parser)
    return parser


def _pair(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return text
