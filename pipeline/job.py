"""The entry point of every job: `momus pipeline JOB ...` and `spark-submit pipeline/job.py JOB ...` both run main().

pipeline/jobs/registry.py lists the jobs. Exit codes: 0 good, 1 failed or a check found something, 2 bad usage.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

if __name__ == "__main__":
    # spark-submit puts this file's folder on sys.path; the packages are one folder above, or came by --py-files.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pipeline.broker_address import is_broker
from pipeline.demo import play
from pipeline.errors import PipelineError
from pipeline.jobs.registry import JOBS, parse
from pipeline.session import session
from pipeline.spark_setup import jars
from pipeline.spark_setup.java import java_home

# helper command -> its line in `momus pipeline --help`
HELPERS: Final = {
    "jars": "fetch the connector's jars; prints them as spark-submit --jars takes them",
    "bundle": "write what spark-submit needs on a cluster into a folder: job.py and momus.zip for --py-files",
    "demo": "start a broker and misbehaving clients, then run every job on what they wrote",
}
EXTRA_ABSENT: Final = (
    "the pipeline needs an extra: in a checkout of momus, pip install '.[pipeline]' for one machine, or '.[spark]'"
)
PACKAGES: Final = ("broker", "momus", "pipeline", "protocol", "storage")  # of the bundle
_EXTRA: Final = ("pyarrow", "numpy")
_ENGINES: Final = ("duckdb", "pyspark")


def main(argv: Sequence[str]) -> int:
    """Run the job or helper command that argv names; returns the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    name, *words = argv
    if name not in JOBS and name not in HELPERS:
        return _fail(f"no job {name!r}: one of {', '.join((*JOBS, *HELPERS))}", 2)
    absent = [package for package in _EXTRA if find_spec(package) is None]
    engines = [package for package in _ENGINES if find_spec(package) is not None]
    absent += [] if engines else [" or ".join(_ENGINES)]
    if absent:
        if "-h" in words or "--help" in words:
            print(f"{usage()}\n\n{EXTRA_ABSENT}")
            return 0
        return _fail(f"{EXTRA_ABSENT} ({', '.join(absent)} not found)", 1)
    try:
        return run_helper(name, words) if name in HELPERS else run_job(name, words)
    except PipelineError as error:
        return _fail(str(error), 1)


def run_helper(name: str, words: Sequence[str]) -> int:
    """Run one of HELPERS; returns the exit code. Errors: PipelineError."""
    if name == "demo":
        if not Path(__file__).with_name("demo").is_dir():
            raise PipelineError("demo starts brokers, which the bundle for spark-submit cannot: run it where momus is")
        return play.main(words)
    parser = argparse.ArgumentParser(prog=f"momus pipeline {name}", description=HELPERS[name])
    if name == "bundle":
        parser.add_argument("folder", type=Path)
        bundle(parser.parse_args(words).folder)
        return 0
    parser.parse_args(words)
    print(",".join(map(str, jars.fetch(jars.KAFKA, java_home()))))
    return 0


def bundle(folder: Path) -> None:
    """Write job.py and momus.zip into a folder: all packages, because jobs that ask a broker use momus' client."""
    root = Path(__file__).resolve().parent.parent
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(__file__, folder / "job.py")
    with zipfile.ZipFile(folder / "momus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                archive.write(path, path.relative_to(root))


def run_job(name: str, words: Sequence[str]) -> int:
    """Run one job in a new Spark session; returns the exit code. Errors: PipelineError."""
    if not {"-h", "--help"} & set(words):
        # At once: libraries take a second or two, and folders of ten thousand logs some more.
        print(f"momus pipeline: {name} begins", file=sys.stderr, flush=True)
    try:
        job, args = parse(name, words)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        raise PipelineError(
            f"the job {name} runs on Spark alone, and pyspark is not installed: in a checkout of momus, "
            "pip install '.[spark]'"
        ) from None
    # pyarrow takes 90 ms and is absent without the extra, where --help and the hint to install it must work.
    from pipeline.input_check import check_broker_input, check_input
    from pipeline.local import choice
    from pipeline.output_guard import check_output
    from pipeline.output_lock import locked_output

    if is_broker(args.input):
        check_broker_input(args, reads_broker=getattr(job, "READS_BROKER", False))
    elif args.input is not None:
        check_input(args.input)
    check_output(args)
    if args.skip_damaged:
        _list_damage(args)
    chosen = choice.choose(
        args, is_for_both=getattr(job, "FOR_BOTH", False), topics=choice.READS.get(name, choice.EVERYTHING)
    )
    print(f"momus pipeline: engine {chosen.engine} ({chosen.why})", file=sys.stderr, flush=True)
    with locked_output(args):
        if chosen.engine == choice.LOCAL:
            return import_module("pipeline.local.run").run_locally(job, args)  # type: ignore[no-any-return]  # an int
        return _run_in_spark(name, job, args)


def _run_in_spark(name: str, job: ModuleType, args: argparse.Namespace) -> int:
    from pipeline.tables import SKIP_DAMAGED  # pyspark takes 200 ms and is absent without the extra

    conf = dict(pair.split("=", 1) for pair in args.conf)
    level = args.log_level
    with _quiet_java() if level == "off" else nullcontext():
        spark = session(f"momus {name}", master=args.master, delta=args.format == "delta", conf=conf, log_level=level)
    spark.conf.set(SKIP_DAMAGED, str(args.skip_damaged).lower())
    try:
        return int(job.run(spark, args))
    except PipelineError:
        raise
    except Exception as error:
        if level == "debug":
            raise
        raise PipelineError(one_line(error)) from None
    finally:
        spark.stop()


@contextmanager
def _quiet_java() -> Iterator[None]:
    """Processes that are started meanwhile write nothing to standard error: Java's warnings, the notes of Spark."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def one_line(error: Exception) -> str:
    """An error of Spark in one line: what a worker said, if it was one, and not the stack traces around it."""
    text = str(error)
    found = re.search(r"(CorruptSegmentError|PipelineError): ([^\n]+)", text)
    if found:
        said = found[2].strip()
        return said if found[1] == "PipelineError" else f"{said}. --skip-damaged goes on after the damage, and lists it"
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} (-l debug shows all of it)"


def _list_damage(args: argparse.Namespace) -> None:
    """Print what --skip-damaged will pass over. Errors: PipelineError: this job cannot do without it."""
    # pyarrow, numpy and pyspark take 250 ms and are absent without the extra.
    from pipeline.source.segment_ranges import damaged
    from pipeline.tables import is_archive

    if args.input is None or args.job == "archive" or getattr(args, "follow", False) or is_archive(args.input):
        raise PipelineError(
            "--skip-damaged is for jobs that read a data directory once: an archive or --follow would keep the gap "
            "for good. Repair the log first, by momus repair"
        )
    count = 0
    for segment, damage in damaged(args.input):
        count += 1
        print(
            f"skipped: {segment.path} position {damage.position}, {damage.size} bytes: {damage.what}", file=sys.stderr
        )
    if not count:
        print("skipped: nothing, no log is damaged", file=sys.stderr)


def usage() -> str:
    """The jobs and helper commands, one a line."""
    width = max(map(len, JOBS))
    jobs, helpers = ([f"  {name:<{width}}  {what}" for name, what in table.items()] for table in (JOBS, HELPERS))
    lines = ["usage: momus pipeline JOB [--input PATH] ...", "", *jobs, "", *helpers, "", "momus pipeline JOB --help"]
    return "\n".join(lines)


def _fail(text: str, code: int) -> int:
    print(f"momus pipeline: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
