"""The one way into every job: `momus pipeline JOB ...` and `spark-submit pipeline/job.py JOB ...` both come here.

A job is a module of pipeline.jobs with `add_arguments(parser)`, `run(spark, args) -> exit code`, and, where its needs
are not the usual ones, `NEEDS_KAFKA = True` (the connector's jars) or `NEEDS_INPUT = False`. Exit codes: 0 good,
1 failed or a check that found something, 2 bad usage.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import zipfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    # spark-submit puts this very folder on the path; the packages are one above, or came by --py-files.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pipeline.errors import PipelineError

# job -> what `momus pipeline --help` says of it
JOBS = {
    "archive": "copy the logs into Parquet, ahead of the cleaner",
    "offsets": "history of committed offsets; what stood at a time; what changed between two",
    "lag": "lag of every group and partition over time",
    "audit": "did exactly-once hold? each finding with the log position that proves it",
    "compaction": "live and dead bytes a segment, and what a cleaning would win",
    "migrate": "copy topics and group offsets into a Kafka cluster, and prove it",
    "bridge": "commit a streaming query's progress as a consumer group",
    "report": "one HTML page of all of it",
}
# word -> the same; what helps the jobs along and is none
HELPERS = {
    "jars": "fetch the connector's jars; prints them as spark-submit --jars takes them",
    "bundle": "write what spark-submit needs on a cluster into a folder: job.py and momus.zip for --py-files",
    "demo": "a broker, clients that misbehave, every job over what they left behind, and the report",
}
EXTRA_ABSENT = "the pipeline needs its extra: pip install 'momus[spark]'"
_EXTRA = ("pyspark", "pyarrow", "numpy")


def main(argv: Sequence[str]) -> int:
    """Run the job that argv names; returns the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    name, *words = argv
    if name not in JOBS and name not in HELPERS:
        return _fail(f"no job {name!r}: one of {', '.join((*JOBS, *HELPERS))}", 2)
    absent = [package for package in _EXTRA if find_spec(package) is None]
    if absent:
        if "-h" in words or "--help" in words:
            print(f"{usage()}\n\n{EXTRA_ABSENT}")
            return 0
        return _fail(f"{EXTRA_ABSENT} ({', '.join(absent)} not found)", 1)
    try:
        return help_along(name, words) if name in HELPERS else run_job(name, words)
    except PipelineError as error:
        return _fail(str(error), 1)


def help_along(name: str, words: Sequence[str]) -> int:
    """What is no job: see HELPERS."""
    if name == "demo":
        from pipeline import demo

        return demo.main(words)
    parser = argparse.ArgumentParser(prog=f"momus pipeline {name}", description=HELPERS[name])
    if name == "bundle":
        parser.add_argument("folder", type=Path)
        bundle(parser.parse_args(words).folder)
        return 0
    parser.parse_args(words)
    from pipeline import jars
    from pipeline.java import java_home

    print(",".join(map(str, jars.fetch(jars.KAFKA, java_home()))))
    return 0


def bundle(folder: Path) -> None:
    """Write job.py and momus.zip, the packages that it and Spark's workers import."""
    root = Path(__file__).resolve().parent.parent
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(__file__, folder / "job.py")
    with zipfile.ZipFile(folder / "momus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("pipeline", "protocol"):
            for path in sorted((root / package).rglob("*.py")):
                archive.write(path, path.relative_to(root))


def run_job(name: str, words: Sequence[str]) -> int:
    """Run one job in a session made for it."""
    job, args = parse(name, words)
    if args.input is not None:
        _check_input(args.input)
    conf = dict(pair.split("=", 1) for pair in args.conf)
    from pipeline.session import session

    spark = session(f"momus {name}", master=args.master, kafka=job.NEEDS_KAFKA, delta=args.format == "delta", conf=conf)
    try:
        return int(job.run(spark, args))
    finally:
        spark.stop()


def _check_input(path: str) -> None:
    """Said at once, in a sentence: Spark would take ten seconds to start, and say it in a hundred lines.

    Errors:  PipelineError: there is no such directory.
    """
    from pipeline.files import is_directory, open_directory

    if not is_directory(path):
        _, root = open_directory(path)  # without the secrets of an address
        raise PipelineError(f"--input: there is no directory {root}: it takes a broker's data directory, or an archive")


def parse(name: str, words: Sequence[str]) -> tuple[ModuleType, argparse.Namespace]:
    """A job's module and what its words say; bad words end the process with 2, as argparse does."""
    job = import_module(f"pipeline.jobs.{name}")
    parser = job_parser(name, job)
    args = parser.parse_args(words)
    if args.input is None and getattr(job, "NEEDS_INPUT", True):
        parser.error("--input is missing: a data directory, an archive, or either at an address of pyarrow.fs")
    return job, args


def job_parser(name: str, job: ModuleType) -> argparse.ArgumentParser:
    """The command line of one job: what all share, then its own."""
    parser = argparse.ArgumentParser(prog=f"momus pipeline {name}", description=JOBS[name])
    parser.add_argument("--input", metavar="PATH", help="data directory, archive, or an address of pyarrow.fs")
    parser.add_argument("--output", metavar="PATH", help="where the result goes; without it, standard output")
    parser.add_argument("--format", choices=("parquet", "delta"), default="parquet", help="of what is written")
    parser.add_argument("--master", help="Spark master; without it local[*], or what spark-submit was given")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], type=_pair, help="a Spark setting")
    job.add_arguments(parser)
    return parser


def usage() -> str:
    """The jobs, one a line."""
    width = max(map(len, JOBS))
    jobs, helpers = ([f"  {name:<{width}}  {what}" for name, what in table.items()] for table in (JOBS, HELPERS))
    lines = ["usage: momus pipeline JOB [--input PATH] ...", "", *jobs, "", *helpers, "", "momus pipeline JOB --help"]
    return "\n".join(lines)


def _pair(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return text


def _fail(text: str, code: int) -> int:
    print(f"momus pipeline: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
